// The changes that an operator makes to a running fabric.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "fabric/core/timer.hpp"
#include "fabric/net/link.hpp"
#include "fabric/net/port.hpp"

#include "simverbs/protocol/served_protocol.hpp"
#include "simverbs/server/fabric_answer.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {

class FabricChanges final : private fabric::EventHandler {
  public:
    // The simulation outlives it.
    explicit FabricChanges(Simulation& simulation) : simulation_(simulation) {}

    FabricAnswer change_link(FabricAction action, fabric::Link& link, const std::string& value);
    FabricAnswer change_port(FabricAction action, fabric::Port& port, const std::string& value);

  private:
    FabricAnswer take_down(fabric::Link& link, const std::string& duration);
    FabricAnswer take_up(fabric::Link& link);
    FabricAnswer manage_port(FabricAction action, fabric::Port& port, const std::string& value);
    FabricAnswer set_address(fabric::Port& port, const std::string& value);
    FabricAnswer set_lid(fabric::Port& port, const std::string& value);
    FabricAnswer set_pkeys(fabric::Port& port, const std::string& value);
    FabricAnswer set_gid(fabric::Port& port, const std::string& value);
    FabricAnswer hold(fabric::Port& port, bool enable);
    [[nodiscard]] const PortLimits& limits_of(const fabric::Port& port) const;

    void handle(const fabric::Event& event) override;  // a link that was down for a while

    Simulation& simulation_;
    std::map<std::size_t, fabric::Timer> mending_;  // by the link's index
};

}  // namespace simverbs
