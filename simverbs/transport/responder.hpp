// The responder: an ordered list of named checks that a request packet passes, or that answer it.
// The order is the personality's. Without acknowledgments what fails a check is dropped; datagrams
// have a path of their own (unacknowledged.cpp).
//
// It keeps what a duplicate needs (the last READs and atomics, IBA 9.7.5.1.2) and answers in the
// order of the requests: an acknowledgment waits behind a READ response that is still going out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "simverbs/model/personality.hpp"
#include "simverbs/model/responder_transitions.hpp"
#include "simverbs/transport/effects.hpp"
#include "simverbs/transport/qp_attributes.hpp"
#include "simverbs/transport/rate_reaction.hpp"
#include "simverbs/transport/requester.hpp"
#include "simverbs/transport/tagged_message.hpp"
#include "simverbs/transport/transmissions.hpp"

namespace simverbs {

// The properties of the receives that a responder will take.
struct ReceiveProperties {
    std::uint32_t max_segments = 0;  // of one
    bool shared = false;             // with other queue pairs
};

class Responder {
  public:
    Responder(const QpAttributes& attributes, const Personality& personality,
              ReceiveProperties receives, QpMemory memory, Effects& effects);
    Responder(const Responder&) = delete;
    Responder& operator=(const Responder&) = delete;

    // Getters.
    [[nodiscard]] Psn expected_psn() const { return expected_psn_; }
    [[nodiscard]] ResponderState state() const { return state_; }
    // XRC: that the last receive was taken from.
    [[nodiscard]] SrqNumber last_srq() const { return receive_.srq; }

    // Commands of the queue pair.
    void start();  // INIT to RTR: takes the PSN
    void flush();  // stop, and complete a receive that is in use with WR_FLUSH_ERR

    // A shared receive queue that XRC requests may have named is destroyed.
    // A receive was taken for a message that was dropped, and waits for the next one.
    [[nodiscard]] bool keeps_receive() const {
        return receive_.taken && inbound_.kind == MessageKind::kNone;
    }
    void forget_receive(SrqNumber srq) { receive_.taken = receive_.taken && receive_.srq != srq; }
    // Messages are matched with these tags from now on.
    void match_tags(TagList& tags) { matching_ = std::make_unique<TagMatching>(tags); }
    // Completes in error what it took from the list: the queue pair is reset, or goes.
    void give_up_tags();
    // As Effects::rendezvous_ended() has it.
    bool rendezvous_ended(FaultCause cause);

    // Inputs from the network and from time.
    EngineResult receive(const Packet& packet);
    // A train whose packets will all be taken if nothing happens in between: places what they
    // carry, and has then to receive it. False: nothing has changed, but that bytes may have landed
    // in order as far as they can.
    [[nodiscard]] bool take_ahead(const Packet& train);
    [[nodiscard]] bool would_take(const Packet& train, std::span<const MemorySpan>& to);
    EngineResult transmitter_free();
    void set_rate(RateReaction& rate) { rate_ = &rate; }
    void move_memory(QpMemory memory) { memory_ = memory; }
    [[nodiscard]] bool has_answers() const { return !answers_.empty(); }

  private:
    enum class Verdict : std::uint8_t { kPassed, kAnswered };

    // A message that has begun and not ended.
    struct Inbound {
        MessageKind kind = MessageKind::kNone;
        std::uint64_t received = 0;  // bytes placed
        std::uint64_t length = 0;    // WRITE: as its RETH says
        std::uint64_t address = 0;   // WRITE
        std::uint32_t rkey = 0;      // WRITE
    };
    // The receive that a message fills or completes.
    struct Receive {
        bool taken = false;
        RecvWqe wqe;
        std::uint32_t index = 0;
        SrqNumber srq = kNoSrq;  // XRC: that it was taken from
        std::uint64_t room = 0;
        std::uint64_t unplaced = 0;  // bytes at the beginning of the message that go nowhere
        bool by_tag = false;         // TagMatching::message says of which message
    };
    // A READ, atomic or FLUSH that was executed.
    struct Executed {
        Psn psn{0};
        std::uint32_t packets = 1;  // of its answer
        MessageKind kind = MessageKind::kRead;
        std::uint64_t original = 0;
    };
    // Something to send, in order.
    struct Answer {
        MessageKind kind = MessageKind::kAck;
        Psn psn{0};
        AethSyndrome syndrome;
        FaultCause cause = FaultCause::kSuccess;
        std::uint32_t msn = 0;
        std::uint32_t rkey = 0;
        SrqNumber srq = kNoSrq;  // XRC: that the request named
        std::uint64_t address = 0;
        std::uint64_t length = 0;
        std::uint64_t sent = 0;
        std::uint64_t original = 0;
        bool again = false;  // of a duplicate; the first one was given whole
    };
    // A request that is refused once everything before it is answered; none follows it.
    struct Refusal {
        Psn psn{0};
        MessageKind kind = MessageKind::kNone;
        FaultCause cause = FaultCause::kSuccess;
    };

    // The only place in which the state changes; whether it did.
    bool move(ResponderEvent event);

    [[nodiscard]] EngineResult take_failure() { return std::exchange(failure_, {}); }
    // Stops where the completion takes the queue pair down.
    void complete(const ReceiveCompletion& completion);

    // train.cpp
    [[nodiscard]] bool continues_message(const Packet& train) const;
    [[nodiscard]] bool open_target(const Packet& train);
    void receive_train(const Packet& train);

    // responder.cpp: the checks.
    void examine(const Packet& packet);
    Verdict run(ResponderCheck check, const Packet& packet);
    Verdict check_duplicate(const Packet& packet);
    Verdict check_psn(const Packet& packet);
    Verdict check_sequence(const Packet& packet);
    Verdict check_opcode(const Packet& packet);
    Verdict check_resources(const Packet& packet);
    Verdict check_length(const Packet& packet);
    Verdict check_key(const Packet& packet);
    // One that is kept from a message that was dropped waits for the next of these.
    static bool completes_receive(const WireOpcode& operation);
    [[nodiscard]] bool names_usable_queue(const Packet& packet) const;
    bool take_receive(const Packet& packet);
    bool open_receive(const Packet& packet, std::uint64_t skip, std::uint64_t left,
                      FaultCause& cause);
    Verdict open_write(const Packet& packet);

    // execution.cpp: carrying it out.
    Verdict execute(const Packet& packet);
    Verdict acknowledge(const Packet& packet);
    Verdict execute_atomic(const Packet& packet);
    Verdict execute_atomic_write(const Packet& packet);
    void complete_receive(const Packet& packet);
    [[nodiscard]] ReceiveCompletion completion_of(const Packet& packet) const;
    void remember(const Packet& packet, std::uint64_t original = 0);

    // tagged_message.cpp
    [[nodiscard]] bool reads_tag(const Packet& packet) const {
        return matching_ != nullptr && packet.operation().kind == MessageKind::kSend;
    }
    Verdict take_by_tag(const Packet& packet);
    bool read_tag(const Packet& packet);
    void take_tagged_buffer(const Packet& packet);
    void announce_match(ReceiveCompletion completion);
    void complete_tagged(const Packet& packet);
    void fail_tagged(ReceiveCompletion& completion);
    void begin_rendezvous(const Packet& packet);
    void name_tag(ReceiveCompletion& completion) const;
    Verdict wait_for_receive(const Packet& packet);

    // unacknowledged.cpp: what is dropped instead of answered, and datagrams.
    Verdict resynchronise(const Packet& packet);
    Verdict drop(const Packet& packet, FaultCause cause);
    void receive_datagram(const Packet& packet);
    bool open_datagram(const Packet& packet, std::uint64_t length, FaultCause& cause);
    void end_receive(WcStatus status, MessageKind kind, FaultCause cause);

    // answers.cpp: what goes back, in order.
    Verdict fail(const Packet& packet, FaultCause cause);
    void refuse(const Refusal& refusal);
    void answer_duplicate(const Packet& packet);
    static std::uint32_t response_length(const Packet& packet);  // bytes
    void acknowledge_up_to(Psn psn);
    void send_nak(Psn psn, AethSyndrome syndrome, FaultCause cause);
    void queue(const Answer& answer);
    // To a READ or an atomic that was executed; from the packet's PSN on.
    [[nodiscard]] Answer answer_of(const Packet& packet, const Executed& request) const;
    void queue_again(Answer answer, const Executed& request);
    void send_answers();
    bool send_read_response(Answer& answer);
    std::uint16_t send_response_train(Answer& answer, std::uint32_t most);
    KeyVerdict transmit_read_payload(const Answer& answer, Packet& packet);
    void send_single(const Answer& answer);
    [[nodiscard]] std::uint32_t pending_initiations() const;
    [[nodiscard]] Packet response(MessageKind kind, PacketPosition position, Psn psn) const;

    const QpAttributes& attributes_;
    const Personality& personality_;
    const ServiceProperties& service_;
    ReceiveProperties receives_;
    QpMemory memory_;
    Effects& effects_;

    Psn expected_psn_{0};
    std::uint32_t msn_ = 0;
    ResponderState state_ = ResponderState::kStopped;
    EngineResult failure_;      // of the call under way
    bool established_ = false;  // COMM_EST was raised
    Inbound inbound_;
    Receive receive_;
    Grant target_;                    // of this packet's WRITE, READ or atomic
    std::vector<Segment> segments_;   // of the receive in use
    std::vector<MemorySpan> spans_;   // where this packet's payload goes
    std::vector<Executed> executed_;  // the last max_dest_rd_atomic, oldest first
    std::vector<Answer> answers_;     // in order; the first may be partly sent
    Transmissions responses_;
    Refusal refusal_;
    RateReaction* rate_ = nullptr;           // nullptr: nobody ever told of congestion
    std::unique_ptr<TagMatching> matching_;  // where the shared receive queue has tags
};

}  // namespace simverbs
