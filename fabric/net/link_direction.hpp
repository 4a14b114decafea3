// One direction of a link: the queues of the sending port, a serialiser and a delay line.
//
// A frame that finds the transmitter free (or that only follows others of its lane from a host) and
// has its credits goes on the wire at once, as arithmetic. Only what has to wait costs an event
// more: it queues by lane, and the lanes take turns by the port's arbitration tables. Of what is on
// the wire only the first frame is in the event heap, since a direction delivers in order.
//
// Packets that nothing tells apart are one frame, a train (trains.cpp), also where they pass a
// switch (passages.cpp).
//
// On Ethernet a switch drops, marks or pauses by the length of its queues (ethernet_port.cpp).
//
// Refuses the stalled state of a lane that keeps losing frames to the lifetime limit (IBA 18.2.5.4)
// and the errors that flow control packets may have themselves.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/core/event_loop.hpp"
#include "fabric/core/rate.hpp"
#include "fabric/core/sim_time.hpp"
#include "fabric/core/timer.hpp"
#include "fabric/net/credits.hpp"
#include "fabric/net/ethernet_queueing.hpp"
#include "fabric/net/frame.hpp"
#include "fabric/net/lane_queues.hpp"
#include "fabric/net/network_services.hpp"
#include "fabric/net/port.hpp"
#include "fabric/net/vl_arbitration.hpp"

namespace fabric {

class LinkDirection;

// The decision of a filter about a frame.
enum class Verdict : std::uint8_t { kPass, kDrop, kTake };

// Sees each frame when it is given to the direction, before it waits for the transmitter, and may
// change it; a dropped frame still takes its time on the wire, and one that is taken is as if it
// had never been given: the filter has one like it. Protocol code knows no filters.
class LinkFilter {
  public:
    virtual Verdict inspect(SimTime now, Frame& frame, const LinkDirection& direction) = 0;

  protected:
    ~LinkFilter() = default;
};

struct LinkProperties {
    Rate rate;
    SimDuration latency;
    // Receive buffer of each data lane at both ends (InfiniBand); 0: no end of it, and no credits.
    std::uint32_t buffer_bytes = 0;
    std::optional<EthernetQueueing> queueing;  // of an Ethernet link
};

class LinkDirection final : public EventHandler {
  public:
    // A queue longer than this is a mistake of the model, not traffic.
    static constexpr std::uint32_t kMaxFramesInFlight = 1U << 22;

    LinkDirection(Port& from, Port& to, const LinkProperties& properties,
                  const NetworkServices& services);
    ~LinkDirection();
    LinkDirection(const LinkDirection&) = delete;
    LinkDirection& operator=(const LinkDirection&) = delete;

    [[nodiscard]] Port& from() const { return from_; }
    [[nodiscard]] Port& to() const { return to_; }
    // On the wire or waiting for it.
    [[nodiscard]] std::uint32_t frames_in_flight() {
        end_passages();
        return on_wire_ + (queues_ != nullptr ? queues_->frames() : 0);
    }
    // When a frame handed over now would start, if nothing but frames is in its way.
    [[nodiscard]] SimTime free_at();

    // Returns true if a train would stay one if it were handed over now: nobody looks at single
    // packets, and what is at the other end can take several at once.
    [[nodiscard]] bool takes_trains() const {
        return (!to_switch_ || (cuts_through_ && pausing_ == nullptr)) && filters_.empty() &&
               services_.frame_observer == nullptr &&
               !services_.bus.wants(trace::Category::kPacket);
    }

    // Filters are asked in the order of their adding, until one drops or takes. They outlive their
    // stay.
    void add_filter(LinkFilter& filter) {
        end_passages();
        filters_.push_back(&filter);
    }
    // The search begins with the youngest.
    void remove_filter(LinkFilter& filter) {
        const auto found = std::find(filters_.rbegin(), filters_.rend(), &filter);
        if (found != filters_.rend()) {
            filters_.erase(std::prev(found.base()));
        }
    }

    [[nodiscard]] bool has_filters() const { return !filters_.empty(); }

    // Begins to send nothing before `until`; what has begun is finished.
    void pause_until(SimTime until);

    // Returns true if a frame waits in `lane` for credits of which none is on its way back.
    [[nodiscard]] bool starves(std::uint8_t lane) const;
    // Blocks of a data lane that no frame takes; and of how many. Nothing without flow control.
    [[nodiscard]] std::uint32_t unused_credits(std::uint8_t lane);
    [[nodiscard]] std::uint32_t credit_limit() const { return buffer_blocks_; }
    [[nodiscard]] std::uint64_t waiting_bytes(std::uint8_t lane) const {
        return queues_ == nullptr ? 0 : queues_->bytes(lane);
    }
    // The frames that wait in `lane`, the first one first.
    template <class F>
    void for_each_waiting(std::uint8_t lane, F&& visit) const {
        if (queues_ != nullptr) {
            queues_->for_each_in(lane, visit);
        }
    }

    // Takes what has arrived of a train that is deferred (DeferredArrivals).
    void settle();
    // When the next packet of that train arrives.
    [[nodiscard]] SimTime next_deferred_arrival() const;
    // Returns true if it is the event that wakes a transmitter.
    [[nodiscard]] static bool is_wake(EventKey key) { return key.port() == kWakeTimer; }
    // The same, and ends the passages of trains through the switch at either end: packets that have
    // passed are counted, the others are again on the way to it.
    void end_passages();
    // The same, and all trains here become packets.
    [[gnu::noinline]] void cut_trains();

    void handle(const Event& event) override;

  private:
    friend class Link;
    friend class Node;
    friend class Port;

    // No timer of a device has these numbers in the place of its port.
    static constexpr PortNumber kWakeTimer{0xFE0};
    static constexpr PortNumber kPauseArrival{0xFE1};
    static constexpr PortNumber kLateArrival{0xFE2};

    void transmit(FramePtr frame, SimTime ready);
    [[nodiscard]] bool may_go(const Frame& frame, SimTime ready) const;
    [[nodiscard]] bool has_credits(const Frame& frame, SimTime at) const;
    [[nodiscard]] VlCredits& credits(std::uint8_t lane);
    void take_credits(VlCredits& lane, std::uint32_t blocks, SimTime start, SimTime arrival);
    void undo_credits(const Frame& frame);
    void rewind_credits();
    void commit(FramePtr frame, SimTime start);
    void put_on_wire(FramePtr frame, SimTime arrival);
    FramePtr take_from_wire();
    void deliver(FramePtr frame);
    [[nodiscard]] bool filters_take(Frame& frame);
    // Apart from what the compiler makes of one piece.
    [[gnu::noinline]] void trace_sent(const Frame& frame, SimTime start);
    [[gnu::noinline]] void trace_received(const Frame& frame);
    [[nodiscard]] SimDuration time_to_decide(const Frame& frame) const {
        return cuts_through_ && frame.is_management ? rate_.transmission_time(frame.wire_bytes)
                                                    : time_to_decide(frame.wire_bytes);
    }
    [[nodiscard]] SimDuration time_to_decide(std::uint32_t bytes) const;
    [[nodiscard]] SimTime start_of(const Frame& frame) const {
        return frame.arrival - latency_ - time_to_decide(frame);
    }

    // trains.cpp; apart from those that the compiler makes of one piece
    [[gnu::noinline]] void transmit_train(FramePtr train, SimTime ready);
    [[gnu::noinline]] void send_waiting_train(std::uint8_t lane, SimTime start);
    std::uint16_t take_train_credits(const Frame& train, std::uint16_t most, SimTime& free);
    void commit_train(FramePtr train, SimTime start, SimTime end);
    void put_train_on_wire(FramePtr train, SimTime start, SimTime end);
    [[gnu::noinline]] void train_arrives();
    bool deliver_due();
    bool defer();
    bool arrive_late(std::uint16_t packets);
    void arrive_one_by_one();
    void put_off(std::uint16_t packets);
    void deliver_late();
    [[nodiscard]] EventKey late_key() const {
        return {key_.event_class(), key_.node(), kLateArrival, key_.port().value()};
    }
    FramePtr take_together(std::uint16_t packets);
    FramePtr take_train(std::uint16_t packets);
    [[nodiscard]] SimTime arrival_of(const Frame& train, std::uint16_t nth) const;
    [[nodiscard]] SimTime arrival_after(const Frame& train) const;

    // passages.cpp
    bool pass_switch();
    [[nodiscard]] bool is_idle_from(SimTime ready);
    [[nodiscard]] bool knows_passages() const {
        return passage_.out != nullptr || passes_from_ != nullptr;
    }
    [[gnu::noinline]] void look_at_passages();
    [[nodiscard]] SimTime passes_at(std::uint16_t nth) const;
    [[nodiscard]] SimTime credits_back_at(std::uint16_t nth) const;
    void look_at_passed() {
        if (passage_.left > 0) [[unlikely]] {
            count_passed();
        }
    }
    [[gnu::noinline]] void count_passed();
    [[gnu::noinline]] void end_passage();
    FramePtr take_back_last(std::uint16_t packets, SimTime start, SimTime last_start);
    void undo_train_credits(const Frame& train, SimTime start, SimTime last_start);
    [[gnu::noinline]] void expect_credits();

    // The queues.
    void make_queues();
    void wait(FramePtr frame, SimTime ready);
    void take_back_unstarted();
    void send_waiting();
    [[nodiscard]] SimTime may_start_at(std::uint8_t lane, SimTime free) const;
    [[nodiscard]] SimTime lifetime_ends(std::uint8_t lane) const;
    bool drop_expired();
    std::uint8_t choose(std::uint32_t lanes);
    void wake_at(SimTime time);

    // Ethernet.
    [[nodiscard]] bool has_no_room(const Frame& frame) const;
    void mark_by_queue(Frame& frame);
    void hold(std::uint8_t priority, std::uint32_t bytes);
    void release_held(std::uint8_t priority, std::uint32_t bytes);
    void ask_to_pause(std::uint8_t priority, bool pause);
    void set_paused(std::uint8_t priority, bool paused);

    // The receiver's buffer has `bytes` of `lane` free again from `when` on.
    void give_back(std::uint8_t lane, std::uint32_t bytes, SimTime when);
    void drop_all(DropReason reason);
    void set_rate(Rate rate);

    template <class F>
    void for_each_in_flight(F&& visit) {
        cut_trains();
        for (Frame* const first : {late_, head_}) {
            for (Frame* frame = first; frame != nullptr; frame = frame->next) {
                visit(*frame);
            }
        }
        if (queues_ != nullptr) {
            queues_->for_each(visit);
        }
    }

    // The frames that the switch at the end of an Ethernet direction holds of it, by priority, and
    // the pauses that it asked for; and which of them have reached the sender.
    struct Pausing {
        std::array<std::uint64_t, kPriorities> held{};
        std::uint8_t asked = 0;
        std::uint8_t reached = 0;
        std::uint32_t sent = 0;
    };

    // A train that was put on the next link ahead of time, and what of it has not been counted as
    // having passed the switch between the two.
    struct Passage {
        LinkDirection* out = nullptr;  // nullptr: there is none
        SimTime next{};                // when the first packet of the rest arrives at the switch
        SimDuration forwarding_delay{};
        std::uint32_t wire_bytes = 0;
        std::uint32_t last_wire_bytes = 0;
        std::uint16_t left = 0;
        std::uint8_t vl = 0;
    };

    const NetworkServices& services_;
    Port& from_;
    Port& to_;
    Rate rate_;
    SimDuration latency_;
    EventKey key_;
    SimTime busy_until_{};
    SimTime settled_until_{};  // what arrives by then began at an earlier rate
    Frame* head_ = nullptr;    // in the heap while not null
    Frame* tail_ = nullptr;
    Frame* late_ = nullptr;  // no longer on the wire, and put off until late_at_
    SimTime late_at_{};
    std::uint32_t on_wire_ = 0;  // packets
    std::uint32_t trains_ = 0;   // of what is on the wire
    std::uint32_t buffer_blocks_ = 0;
    std::uint8_t last_vl_ = 0;  // of the frame that was last put on the wire
    bool cuts_through_ = false;
    bool to_switch_ = false;
    bool is_deferred_ = false;              // the train that is first on the wire
    bool limits_queues_ = false;            // from an Ethernet switch
    Passage passage_;                       // from here through the switch
    LinkDirection* passes_from_ = nullptr;  // the one whose passage leads here
    std::vector<VlCredits> credits_;        // by lane, as far as lanes were used
    std::unique_ptr<Pausing> pausing_;      // Ethernet, to a switch
    std::unique_ptr<LaneQueues> queues_;
    std::vector<LinkFilter*> filters_;
    SimTime waiting_since_ = SimTime::max();  // the transmitter is free, and a frame is ready
    std::unique_ptr<Timer> wake_;
    std::unique_ptr<VlArbiter> arbiter_;
    std::optional<EthernetQueueing> queueing_;
    std::uint64_t mark_decisions_ = 0;
};

}  // namespace fabric
