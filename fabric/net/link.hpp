// A link: two directions, each a serialiser and a delay line. Only the first frame of a direction
// is in the event heap, since a direction delivers in order; the end of transmission is not an
// event of its own. A link that goes down destroys what is in flight on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fabric/core/event_loop.hpp"
#include "fabric/core/rate.hpp"
#include "fabric/core/sim_time.hpp"
#include "fabric/net/frame.hpp"
#include "fabric/net/network_services.hpp"
#include "fabric/net/port.hpp"

namespace fabric {

class LinkDirection;

enum class LinkState : std::uint8_t { kDown, kUp };

constexpr std::string_view to_string(LinkState state) {
    return state == LinkState::kUp ? "UP" : "DOWN";
}

// What a filter wants done with a frame.
enum class Verdict : std::uint8_t { kPass, kDrop };

// Sees each frame when it is given to the direction, before it waits for the transmitter, and may
// change it; a dropped frame still takes its time on the wire. Protocol code knows no filters.
class LinkFilter {
  public:
    virtual Verdict inspect(SimTime now, Frame& frame, const LinkDirection& direction) = 0;

  protected:
    ~LinkFilter() = default;
};

class LinkDirection final : public EventHandler {
  public:
    // A queue longer than this is a mistake of the model, not traffic.
    static constexpr std::uint32_t kMaxFramesInFlight = 1U << 22;

    LinkDirection(Port& from, Port& to, Rate rate, SimDuration latency,
                  const NetworkServices& services);
    ~LinkDirection();
    LinkDirection(const LinkDirection&) = delete;
    LinkDirection& operator=(const LinkDirection&) = delete;

    [[nodiscard]] Port& from() const { return from_; }
    [[nodiscard]] Port& to() const { return to_; }
    [[nodiscard]] std::uint32_t frames_in_flight() const { return in_flight_; }

    // Filters are asked in the order of their adding, until one drops. They outlive their stay.
    void add_filter(LinkFilter& filter) { filters_.push_back(&filter); }
    void remove_filter(LinkFilter& filter) { std::erase(filters_, &filter); }

    void handle(const Event& event) override;

  private:
    friend class Link;
    friend class Port;

    void transmit(FramePtr frame, SimTime ready);
    void enqueue(FramePtr frame, SimTime arrival);
    FramePtr dequeue();
    [[nodiscard]] bool filters_drop(Frame& frame);
    void drop_all(DropReason reason);

    template <class F>
    void for_each_in_flight(F&& visit) const {
        for (Frame* frame = head_; frame != nullptr; frame = frame->next) {
            visit(*frame);
        }
    }

    const NetworkServices& services_;
    Port& from_;
    Port& to_;
    Rate rate_;
    SimDuration latency_;
    EventKey key_;
    SimTime busy_until_{};
    Frame* head_ = nullptr;  // in the heap while not null
    Frame* tail_ = nullptr;
    std::uint32_t in_flight_ = 0;
    std::vector<LinkFilter*> filters_;
};

class Link {
  public:
    Link(std::size_t index, std::string name, std::array<Port*, 2> ends, Rate rate,
         SimDuration latency, const NetworkServices& services);
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
    // What holds an end has changed.
    void refresh() { set_state(plugged_); }
    // From the next frame on; both ports say that their speed has changed.
    void set_rate(LinkWidth width, LinkSpeed speed);

    // First the direction from end 0, then from end 1; each in order of arrival.
    template <class F>
    void for_each_frame_in_flight(F&& visit) const {
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
