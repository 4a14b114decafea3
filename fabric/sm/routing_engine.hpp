// What computes the routes of a swept subnet: a function from a plain graph of switches to their
// linear forwarding tables.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fabric/net/lid.hpp"

namespace fabric {

struct RoutingGraph {
    static constexpr std::uint32_t kNoSwitch = 0xFFFF'FFFF;
    struct Neighbour {
        std::uint32_t switch_index = kNoSwitch;
        std::uint8_t port = 0;
    };
    // The last switch on the way to a LID, and its port; 0: the switch itself.
    struct Target {
        Lid lid;
        std::uint32_t switch_index;
        std::uint8_t port;
    };

    std::vector<std::vector<Neighbour>> switches;  // [switch][port], over links that are up
    std::vector<Target> targets;                   // ascending by LID
};

// [switch][lid]: the port to leave by; 255: none.
using LinearTables = std::vector<std::vector<std::uint8_t>>;
using RoutingEngine = std::function<LinearTables(const RoutingGraph&)>;

// The fewest hops; among equally near ports the LID chooses.
LinearTables min_hop_routes(const RoutingGraph& graph);

}  // namespace fabric
