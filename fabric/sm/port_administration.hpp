// Changes of an InfiniBand port that an administrator asks a subnet manager for; each raises the
// event that says so, at once or as soon as the port has been told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/net/gid.hpp"
#include "fabric/net/lid.hpp"
#include "fabric/net/port.hpp"

namespace fabric {

class PortAdministration {
  public:
    // False, and no change: no unicast LID, or another port's. Routes lead there from now on.
    virtual bool set_lid(Port& port, Lid lid) = 0;
    // Entries that are left out hold 0, which is no P_Key: a table never gets shorter.
    virtual void set_pkeys(Port& port, std::vector<std::uint16_t> pkeys) = 0;
    // `index` is an entry of the table or the first behind it. False: only GUIDs can be set, behind
    // the port's own and under the subnet's prefix.
    virtual bool set_gid(Port& port, std::size_t index, const Gid& gid) = 0;
    virtual void set_sm_lid(Port& port, Lid lid) = 0;
    virtual void ask_to_reregister(Port& port) = 0;

  protected:
    ~PortAdministration() = default;
};

}  // namespace fabric
