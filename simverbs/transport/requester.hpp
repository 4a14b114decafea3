// The requester of a queue pair: turns send work requests into request packets, keeps those that
// are not acknowledged, and sends them again when an answer does not come.
//
// It branches on properties of the service (acked, retries, reads), never on its name. Every retry
// is rewind(): the window goes back to a PSN and transmission goes on from there. Without
// acknowledgments a request is complete when its last packet has left the port.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "simverbs/model/personality.hpp"
#include "simverbs/model/requester_transitions.hpp"
#include "simverbs/transport/effects.hpp"
#include "simverbs/transport/engine.hpp"
#include "simverbs/transport/qp_attributes.hpp"
#include "simverbs/transport/rate_reaction.hpp"
#include "simverbs/transport/send_window.hpp"
#include "simverbs/transport/transmissions.hpp"

namespace simverbs {

class Requester {
  public:
    Requester(const QpAttributes& attributes, const Personality& personality,
              const WorkQueueShape& shape, QpMemory memory, Effects& effects);
    Requester(const Requester&) = delete;
    Requester& operator=(const Requester&) = delete;

    // Getters.
    [[nodiscard]] bool has_outstanding() const { return !window_.empty(); }
    // Posted and not complete; of them those with a packet on the wire, or the first of them next.
    [[nodiscard]] std::uint32_t outstanding() const { return window_.posted() - window_.head(); }
    [[nodiscard]] std::uint32_t started() const {
        return cursor_ - window_.head() + (cursor_packet_ > 0 ? 1U : 0U);
    }
    [[nodiscard]] std::uint32_t first_outstanding() const { return window_.first_slot(); }
    [[nodiscard]] bool drained() const;
    [[nodiscard]] Psn next_psn() const { return next_psn_; }
    [[nodiscard]] RequesterState state() const { return state_; }
    [[nodiscard]] std::uint8_t retries_left() const { return retries_left_; }
    [[nodiscard]] std::uint8_t rnr_retries_left() const { return rnr_retries_left_; }
    // For the oldest request, so far.
    [[nodiscard]] std::uint32_t rnr_naks() const { return rnr_naks_; }

    // Commands of the queue pair.
    void start();                       // RTR to RTS: takes the PSN and the retry counters
    void resume();                      // SQE to RTS: goes on after what was flushed
    void post(std::uint32_t producer);  // work requests before this index exist
    // The device has requests of its own on this queue pair. Before anything is posted.
    void admit_device_work() { window_.admit_device_work(); }
    void add(const DeviceWork& request) { window_.add(request); }
    EngineResult run();            // send what may be sent
    void flush(FaultCause cause);  // complete all that is left with WR_FLUSH_ERR
    // The queue has room for more or fewer requests; no packet refers to one any more.
    void resize(const WorkQueueShape& shape) { window_.resize(shape); }
    // Congestion limits the rate from now on; it outlives the requester's use of it.
    void set_rate(RateReaction& rate) { rate_ = &rate; }
    void move_memory(QpMemory memory) { memory_ = memory; }
    EngineResult fail_source(Psn psn);  // the payload of this packet could not be read

    // Inputs from the network and from time.
    EngineResult receive(const Packet& packet);
    // A train of READ responses: as Responder::take_ahead() has it.
    [[nodiscard]] bool take_ahead(const Packet& train);
    [[nodiscard]] bool would_take(const Packet& train, std::span<const MemorySpan>& to);
    EngineResult timer_expired(EngineTimer timer);

  private:
    // The only place in which the state changes.
    void move(RequesterEvent event);
    [[nodiscard]] bool stopped() const { return state_ == RequesterState::kStopped; }

    [[nodiscard]] EngineResult take_failure() { return std::exchange(failure_, {}); }

    // requester.cpp: which request is next.
    void transmit_pending();
    bool transmit_next();
    SendRequest* at_cursor();
    [[nodiscard]] std::uint32_t initiated();
    [[nodiscard]] bool may_start(const SendRequest& request);

    // preparation.cpp: what is checked before its first packet leaves.
    void prepare(SendRequest& request, std::uint32_t index);
    void check(SendRequest& request, std::uint32_t index);
    void fail_request(SendRequest& request, FaultCause cause) const;
    [[nodiscard]] bool check_destination(SendRequest& request) const;
    std::uint64_t length_of(const SendRequest& request, std::uint32_t index);
    bool open_spans(SendRequest& request, std::uint32_t index);

    // transmission.cpp: its packets.
    [[nodiscard]] bool window_full(const SendRequest& request) const;
    std::uint16_t transmit(SendRequest& request);
    bool transmit_unacknowledged(const Packet& packet, SendRequest& request);
    [[nodiscard]] std::uint32_t window_left(const SendRequest& request) const;
    [[nodiscard]] std::uint16_t train_length(const SendRequest& request) const;
    [[nodiscard]] Packet request_packet(const SendRequest& request, std::uint16_t packets) const;
    bool needs_acknowledgment(const SendRequest& request, bool last);
    void advance_cursor(const SendRequest& request, std::uint16_t packets);
    void watch_for_answer();
    void watch_transmitter();
    [[nodiscard]] bool waits_for_its_rate() const;
    void spend_rate(const Packet& packet);

    // local_operations.cpp: requests without a packet.
    bool execute_local(SendRequest& request);
    // Why it was refused, or kSuccess.
    FaultCause bind(const SendWqe& wqe);
    FaultCause invalidate(std::uint32_t rkey);
    void retire_local();

    // completer.cpp: answers.
    [[nodiscard]] bool awaited(Psn psn) const;
    void receive_ack(const Packet& packet);
    void receive_nak(const Packet& packet, NakCode code);
    void receive_rnr_nak(const Packet& packet);
    void receive_response(const Packet& packet);
    void take_empty_response(const Packet& packet, SendRequest& request);
    void take_read_response(const Packet& packet, SendRequest& request, std::uint32_t index);
    void take_response_train(const Packet& train);
    void take_atomic_response(const Packet& packet, SendRequest& request, std::uint32_t index);
    bool acknowledge_before(Psn end);
    void acknowledge_oldest();
    void progress(Psn oldest);
    void complete_acknowledged();

    // recovery.cpp: what happens when an answer does not come, and how a request ends.
    void response_lost(const Packet& answer);
    [[nodiscard]] Psn resume_psn() const;
    void retry_from(Psn psn, FaultCause cause);
    void rewind(Psn psn);
    void fail_oldest(WcStatus status, FaultCause cause);
    void complete_head(WcStatus status, FaultCause cause);
    void end_device_work(bool is_read, FaultCause cause);

    const QpAttributes& attributes_;
    const Personality& personality_;
    const ServiceProperties& service_;
    QpMemory memory_;
    Effects& effects_;
    SendWindow window_;

    RateReaction* rate_ = nullptr;      // nullptr: nobody ever told of congestion
    std::uint32_t cursor_ = 0;          // index of the request whose packet is sent next
    std::uint32_t cursor_packet_ = 0;   // which of its packets
    std::uint32_t unacknowledged_ = 0;  // index of the oldest request that expects an answer
    Psn next_psn_{0};                   // of the next request that starts
    Psn oldest_psn_{0};                 // not acknowledged
    Psn sent_end_{0};                   // one past the highest PSN that was ever sent
    Transmissions transmissions_;
    Psn window_start_{0};  // sending of payload packets is bounded from here
    Psn leaving_end_{0};   // one past what has left when kTransmitted expires
    std::uint32_t since_ack_request_ = 0;
    std::uint8_t retries_left_ = 0;
    std::uint8_t rnr_retries_left_ = 0;
    std::uint32_t rnr_naks_ = 0;
    RequesterState state_ = RequesterState::kStopped;
    EngineResult failure_;  // of the call under way
};

}  // namespace simverbs
