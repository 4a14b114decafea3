// Everything that faults need of the simulation in which they act.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "fabric/core/event_loop.hpp"
#include "fabric/net/network.hpp"
#include "fabric/sm/port_administration.hpp"
#include "fabric/trace/bus.hpp"

#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/injected_fault.hpp"

namespace simverbs {

class BranchPoints;
class HostPrograms;

class FaultEnvironment {
  public:
    [[nodiscard]] virtual fabric::EventLoop& loop() = 0;
    [[nodiscard]] virtual fabric::trace::Bus& bus() = 0;
    [[nodiscard]] virtual fabric::Network& network() = 0;
    // The generator or file that the network was made from, for error messages.
    [[nodiscard]] virtual std::string_view topology() const = 0;
    [[nodiscard]] virtual std::uint64_t seed() const = 0;

    // nullptr: nobody, or somebody who is not part of the simulation.
    [[nodiscard]] virtual fabric::PortAdministration* subnet_manager() = 0;
    // It does nothing any more, as if it had died. False: there is none.
    virtual bool stop_subnet_manager() = 0;

    [[nodiscard]] virtual Hca& hca(std::size_t index) const = 0;
    // nullptr: a node that is none.
    [[nodiscard]] virtual Hca* hca_at(fabric::NodeId node) const = 0;
    // The devices of a host, in the order of their names; none: there is no such host.
    [[nodiscard]] virtual std::vector<std::size_t> hcas_of(std::string_view host) const = 0;
    // By its name, or the first HCA of the host of that name; nullptr: there is none.
    [[nodiscard]] virtual Hca* find_hca(std::string_view name) const = 0;

    // Who is asked whether devices are to fail; nullptr: nobody.
    virtual void set_device_faults(DeviceFaults* faults) = 0;
    // Through whom faults reach the programs of hosts; nullptr: they do not.
    [[nodiscard]] virtual HostPrograms* programs() const = 0;
    // Whom faults of an explored program ask; nullptr: no program is explored.
    [[nodiscard]] virtual BranchPoints* branch_points() const = 0;

  protected:
    ~FaultEnvironment() = default;
};

}  // namespace simverbs
