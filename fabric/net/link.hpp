// A link: two directions, and the state that both share. A link that goes down destroys what is in
// flight on it and what waits for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fabric/core/rate.hpp"
#include "fabric/core/sim_time.hpp"
#include "fabric/net/frame.hpp"
#include "fabric/net/link_direction.hpp"
#include "fabric/net/network_services.hpp"
#include "fabric/net/port.hpp"

namespace fabric {

enum class LinkState : std::uint8_t { kDown, kUp };

constexpr std::string_view to_string(LinkState state) {
    return state == LinkState::kUp ? "UP" : "DOWN";
}

class Link {
  public:
    Link(std::size_t index, std::string name, std::array<Port*, 2> ends,
         const LinkProperties& properties, const NetworkServices& services);
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    [[nodiscard]] std::size_t index() const { return index_; }
    [[nodiscard]] const std::string& name() const { return name_; }  // "h0-s0"
    [[nodiscard]] Rate rate() const { return rate_; }
    [[nodiscard]] SimDuration latency() const { return latency_; }
    [[nodiscard]] LinkState state() const { return state_; }
    [[nodiscard]] Port& end(std::size_t which) const { return *ends_[which]; }  // 0 or 1

    [[nodiscard]] LinkDirection& direction_from(const Port& port);
    [[nodiscard]] LinkDirection& direction_from(NodeId node);

    // Down: both ports go DOWN (kPortError if they were ACTIVE) and frames in flight are dropped.
    // Up: both ports go to INIT, and a subnet manager takes them further; on Ethernet to ACTIVE.
    // It stays down while an end holds it.
    void set_state(LinkState state);
    // Looks again at what holds its ends.
    void refresh() { set_state(plugged_); }
    // From the next frame on; both ports say that their speed has changed.
    void set_rate(LinkWidth width, LinkSpeed speed);
    // Says in the trace what it is and how.
    void describe() const;
    // Frames on it and waiting for it are gone.
    void drop_all(DropReason reason);

    // First the direction from end 0, then from end 1; each in order of arrival.
    template <class F>
    void for_each_frame_in_flight(F&& visit) {
        directions_[0].for_each_in_flight(visit);
        directions_[1].for_each_in_flight(visit);
    }

  private:
    const NetworkServices& services_;
    std::size_t index_;
    std::string name_;
    std::array<Port*, 2> ends_;
    Rate rate_;
    SimDuration latency_;
    LinkState state_ = LinkState::kDown;
    LinkState plugged_ = LinkState::kDown;  // what it would be if no end held it
    std::array<LinkDirection, 2> directions_;
};

}  // namespace fabric
