// Checks of forwarding tables, whoever made them: an independent reader of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/sm/routing/graph.hpp"
#include "fabric/sm/routing/tables.hpp"

namespace fabric::routing {

// A direction of a link between switches: what leaves by a port.
struct Channel {
    SwitchIndex from = kNobody;
    std::uint16_t port = 0;

    friend bool operator==(const Channel&, const Channel&) = default;
};

struct Report {
    // Ordered pairs of hosts' ports, and pairs of one port and one switch.
    std::uint64_t pairs = 0;
    std::uint64_t unreachable = 0;  // of these; a route that comes round is none
    std::uint64_t longer_than_needed = 0;
    std::uint32_t longest = 0;   // links between switches
    std::uint32_t diameter = 0;  // the longest of the shortest possible

    // Routes between hosts by channel.
    std::uint64_t channels = 0;
    std::uint64_t routes =
        0;  // of all channels together: a route counts once for each of its links
    std::uint64_t most_routes = 0;

    // Channels, each of which waits for room in the next, the last in the first, when all buffers
    // are full (Dally and Seitz, 1987); empty: this cannot happen. Of packets that hosts send.
    std::vector<Channel> credit_loop;

    [[nodiscard]] std::uint64_t mean_routes() const {  // rounded up
        return channels == 0 ? 0 : (routes + channels - 1) / channels;
    }
};

Report check(const Graph& graph, const Tables& tables);

// "s0:1 s1:2"; `switches` are their names, by index.
std::string describe(std::span<const Channel> channels, std::span<const std::string> switches);
// In one line, without its end; `switches` are their names, by index.
std::string describe(const Report& report, std::span<const std::string> switches);

}  // namespace fabric::routing
