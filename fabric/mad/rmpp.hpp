// The reliable multi-packet protocol (IBA 13.6): one message cut into datagrams with a window of
// acknowledgements, and put together again. No time and no sending here: a management port asks
// what to send and says what came. The windows are those of Linux's ib_mad.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "fabric/core/sim_time.hpp"
#include "fabric/mad/datagram.hpp"
#include "fabric/net/gid.hpp"

namespace fabric::mad {

class RmppSender {
  public:
    // `message`: the headers of its class, then data. Copied.
    explicit RmppSender(std::span<const std::uint8_t> message);

    [[nodiscard]] std::uint32_t segment_count() const { return segment_count_; }
    [[nodiscard]] bool all_acknowledged() const { return acknowledged_ == segment_count_; }

    // The next segment that the window has room for.
    [[nodiscard]] bool has_next() const { return sent_ < segment_count_ && sent_ < window_last_; }
    Datagram next();
    // From the first one that was not acknowledged.
    void rewind() { sent_ = acknowledged_; }

    enum class Answer : std::uint8_t {
        kStale,     // nothing new
        kProgress,  // the window has moved
        kRefused,   // it acknowledges what was not sent, or narrows the window below that
    };
    Answer acknowledged(std::uint32_t segment, std::uint32_t new_window_last);

  private:
    std::vector<std::uint8_t> message_;
    std::size_t header_bytes_;
    std::uint32_t segment_count_;
    std::uint32_t window_last_ = 1;
    std::uint32_t sent_ = 0;
    std::uint32_t acknowledged_ = 0;
};

// Which message a segment belongs to.
struct RmppKey {
    std::uint32_t agent;
    std::uint64_t transaction_id;
    std::uint32_t source_qp;
    std::uint16_t slid;
    Gid sgid;  // zero without a GRH
    std::uint8_t management_class;
    std::uint8_t class_version;
    std::uint8_t method;

    friend auto operator<=>(const RmppKey&, const RmppKey&) = default;
};

class RmppReceiver {
  public:
    // Segments on top of the last one acknowledged.
    static constexpr std::uint32_t kWindow = 64;
    // A longer message is a mistake: 48 MiB of records.
    static constexpr std::uint32_t kMaxSegments = 1U << 18;

    enum class Verdict : std::uint8_t { kHold, kAcknowledge, kComplete, kDrop };
    // kComplete once, when the last gap closes; it is acknowledged too.
    Verdict segment_arrived(const Datagram& segment, SimTime now);

    // The number in the acknowledgement.
    [[nodiscard]] std::uint32_t acknowledged() const { return in_order_; }
    [[nodiscard]] std::uint32_t window_last() const { return window_last_; }

    // The headers of the first segment and all data, once complete.
    [[nodiscard]] std::vector<std::uint8_t> take_message();
    [[nodiscard]] bool is_complete() const { return complete_; }
    [[nodiscard]] SimTime last_arrival() const { return last_arrival_; }

  private:
    std::map<std::uint32_t, Datagram> early_;  // behind a gap
    std::vector<std::uint8_t> message_;
    std::uint32_t in_order_ = 0;
    std::uint32_t acknowledged_ = 0;
    std::uint32_t window_last_ = 1;
    SimTime last_arrival_{};
    bool complete_ = false;
};

// An ACK or ABORT about `segment`, which came from the other side (IBA 13.6.2).
Datagram make_acknowledgement(const Datagram& segment, const RmppReceiver& receiver);
Datagram make_abort(const Datagram& segment, rmpp::AbortStatus status);

}  // namespace fabric::mad
