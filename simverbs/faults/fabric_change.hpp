// Changes of a fabric: what operators do by the control API or by commands of a served world, and
// what faults do to links, ports and switches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "fabric/core/rate.hpp"
#include "fabric/net/gid.hpp"
#include "fabric/net/lid.hpp"
#include "fabric/net/link.hpp"
#include "fabric/net/node.hpp"
#include "fabric/net/port.hpp"

#include "simverbs/faults/fault_environment.hpp"

namespace simverbs {

struct SetLinkState {
    fabric::Link& link;
    fabric::LinkState state;
};
// All links of a node.
struct SetNodeLinks {
    const fabric::Node& node;
    fabric::LinkState state;
};
struct SetLinkRate {
    fabric::Link& link;
    fabric::LinkWidth width;
    fabric::LinkSpeed speed;
};
// Keeps a port that has a link in a physical state; LinkUp lets it go.
struct HoldPort {
    fabric::Port& port;
    fabric::PhysicalState state;
};

// Changes that a subnet manager makes to an InfiniBand port.
struct SetLid {
    fabric::Port& port;
    fabric::Lid lid;
};
struct SetPkeys {
    fabric::Port& port;
    std::vector<std::uint16_t> pkeys;
};
struct SetGid {
    fabric::Port& port;
    std::size_t index;
    fabric::Gid gid;
};
struct SetSmLid {
    fabric::Port& port;
    fabric::Lid lid;
};
struct AskToReregister {
    fabric::Port& port;
};

using FabricChange = std::variant<SetLinkState, SetNodeLinks, SetLinkRate, HoldPort, SetLid,
                                  SetPkeys, SetGid, SetSmLid, AskToReregister>;

// Makes the change at once. Returns why it could not be made, "" if it was.
std::string_view apply(const FabricChange& change, FaultEnvironment& environment);

}  // namespace simverbs
