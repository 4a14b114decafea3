// A subnet as routing sees it: switches, what their ports lead to, and where each LID is. Knows no
// time, no states and no names. Hosts forward nothing, so they are destinations only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "fabric/net/lid.hpp"

namespace fabric::routing {

// By number, from 0, in the order of adding.
using SwitchIndex = std::uint32_t;
inline constexpr SwitchIndex kNobody = std::numeric_limits<SwitchIndex>::max();

struct Neighbour {
    SwitchIndex at = kNobody;  // kNobody: no link that is up, or a host
    std::uint16_t port = 0;
};

struct Destination {
    Lid lid;
    SwitchIndex at = kNobody;
    std::uint16_t port = 0;  // that leads out to it; 0: the switch itself
};

class Graph {
  public:
    // Ports 1..ports.
    SwitchIndex add_switch(std::uint16_t ports);
    // Asserts that the ports exist and that the switches are there.
    void connect(SwitchIndex a, std::uint16_t port_a, SwitchIndex b, std::uint16_t port_b);
    void add_destination(const Destination& destination);

    [[nodiscard]] std::size_t switch_count() const { return first_.size(); }
    // By port number; [0] is nobody.
    [[nodiscard]] std::span<const Neighbour> ports(SwitchIndex one) const {
        return {neighbours_.data() + first_[one], port_counts_[one] + std::size_t{1}};
    }
    [[nodiscard]] std::size_t destination_count() const { return destinations_.size(); }
    [[nodiscard]] std::span<const Destination> destinations() const { return destinations_; }
    // Those of each switch, in the order of adding.
    [[nodiscard]] std::vector<std::vector<Destination>> destinations_by_switch() const;
    // Ports with hosts: where packets come from.
    [[nodiscard]] std::vector<std::uint32_t> hosts_by_switch() const;
    [[nodiscard]] std::size_t lid_count() const { return lid_count_; }  // the largest and 1

  private:
    std::vector<std::size_t> first_;  // of neighbours_
    std::vector<std::uint16_t> port_counts_;
    std::vector<Neighbour> neighbours_;
    std::vector<Destination> destinations_;
    std::size_t lid_count_ = 0;
};

// Links between switches on the shortest way from each switch to `target`; kUnreachable.
inline constexpr std::uint32_t kUnreachable = std::numeric_limits<std::uint32_t>::max();
std::vector<std::uint32_t> hops_to(const Graph& graph, SwitchIndex target);

}  // namespace fabric::routing
