// Queues, marks, drops and pauses frames at the ports of Ethernet switches.
#include <algorithm>

#include "fabric/core/hash.hpp"
#include "fabric/net/ethernet.hpp"
#include "fabric/net/link_direction.hpp"
#include "fabric/net/net_events.hpp"
#include "fabric/net/node.hpp"

namespace fabric {

namespace {

// Header, control and padding (IEEE 802.3 annex 31B).
constexpr std::uint32_t kPauseFrameBytes = ethernet_wire_bytes(60);

// Returns true if something comes to pass with this probability, decided by `hash`.
bool falls_under(std::uint64_t hash, detail::Uint128 numerator, detail::Uint128 denominator) {
    return static_cast<detail::Uint128>(hash >> 32) * denominator < numerator << 32;
}

std::uint32_t in_proportion(std::uint32_t bytes, Rate rate) {
    constexpr std::uint64_t kRate = 100'000'000'000;
    const auto scaled = static_cast<detail::Uint128>(bytes) * rate.bits_per_second() / kRate;
    return static_cast<std::uint32_t>(std::min<detail::Uint128>(scaled, UINT32_MAX));
}

}  // namespace

EthernetQueueing EthernetQueueing::at(Rate rate) const {
    EthernetQueueing scaled = *this;
    for (std::uint32_t* const bytes :
         {&scaled.queue_bytes, &scaled.mark_from_bytes, &scaled.mark_all_bytes, &scaled.pause_bytes,
          &scaled.resume_bytes}) {
        *bytes = in_proportion(*bytes, rate);
    }
    return scaled;
}

bool LinkDirection::has_no_room(const Frame& frame) const {
    return queues_ != nullptr && queueing_->queue_bytes != 0 &&
           (queueing_->paused_priorities >> frame.vl & 1U) == 0 &&
           queues_->bytes(frame.vl) + frame.wire_bytes > queueing_->queue_bytes;
}

// DCQCN's congestion point. The draw is a hash, so that it depends on nothing but this port's past.
void LinkDirection::mark_by_queue(Frame& frame) {
    const std::uint64_t length = queues_ == nullptr ? 0 : queues_->bytes(frame.vl);
    const std::uint64_t from = queueing_->mark_from_bytes;
    const std::uint64_t all = queueing_->mark_all_bytes;
    if (frame.ecn == Ecn::kNotCapable || all == 0 || length <= from) [[likely]] {
        return;
    }
    if (length < all) {
        WordsHash hash;
        hash.add(services_.seed);
        hash.add(std::uint64_t{from_.node().id().value()} << 16 | from_.number().value());
        hash.add(std::uint64_t{frame.source.value()} << 32 | frame.flow);
        hash.add(++mark_decisions_);
        const Ratio& most = queueing_->mark_probability;
        if (!falls_under(hash.value(),
                         static_cast<detail::Uint128>(most.numerator) * (length - from),
                         static_cast<detail::Uint128>(most.denominator) * (all - from))) {
            return;
        }
    }
    frame.ecn = Ecn::kCongested;
    ++from_.mutable_counters().marked;
}

void LinkDirection::hold(std::uint8_t priority, std::uint32_t bytes) {
    pausing_->held[priority] += bytes;
    if (pausing_->held[priority] > queueing_->pause_bytes &&
        (queueing_->paused_priorities >> priority & 1U) != 0 &&
        (pausing_->asked >> priority & 1U) == 0) {
        ask_to_pause(priority, true);
    }
}

void LinkDirection::release_held(std::uint8_t priority, std::uint32_t bytes) {
    pausing_->held[priority] -= bytes;
    if (pausing_->held[priority] <= queueing_->resume_bytes &&
        (pausing_->asked >> priority & 1U) != 0) {
        ask_to_pause(priority, false);
    }
}

// A pause frame passes what waits, takes no time of the wire that others miss, and is never lost.
void LinkDirection::ask_to_pause(std::uint8_t priority, bool pause) {
    pausing_->asked ^= static_cast<std::uint8_t>(1U << priority);
    to_.mutable_counters().pauses_sent += pause ? 1 : 0;
    constexpr unsigned kCountBits = 16;
    const std::uint32_t sequence = std::uint32_t{from_.number().value()} << kCountBits |
                                   (++pausing_->sent & ((1U << kCountBits) - 1));
    const EventKey key(EventClass::kTimer, from_.node().id(), kPauseArrival, sequence);
    services_.loop.schedule(
        {services_.loop.now() + rate_.transmission_time(kPauseFrameBytes) + latency_, key, this,
         std::uint64_t{priority} << 1U | (pause ? 1U : 0U)});
}

void LinkDirection::set_paused(std::uint8_t priority, bool paused) {
    const auto bit = static_cast<std::uint8_t>(1U << priority);
    make_queues();
    if (paused) {
        pausing_->reached |= bit;
        take_back_unstarted();
    } else {
        pausing_->reached &= static_cast<std::uint8_t>(~bit);
    }
    send_waiting();
}

}  // namespace fabric
