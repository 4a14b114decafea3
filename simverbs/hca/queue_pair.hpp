// A queue pair of a device: rings, attributes, state, timers, and the engine of its service, whose
// effects it carries out.
//
// The state moves only by rows of kQpTransitions: by modify() when the consumer asks, by fail()
// when something else happens.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <boost/intrusive/set.hpp>

#include "fabric/core/timer.hpp"
#include "fabric/net/frame.hpp"
#include "fabric/net/port.hpp"

#include "simverbs/hca/client.hpp"
#include "simverbs/hca/command.hpp"
#include "simverbs/hca/completion_counter.hpp"
#include "simverbs/hca/completion_queue.hpp"
#include "simverbs/hca/congestion.hpp"
#include "simverbs/hca/memory_region.hpp"
#include "simverbs/hca/path_migration.hpp"
#include "simverbs/hca/receive_source.hpp"
#include "simverbs/hca/receive_work_queue.hpp"
#include "simverbs/hca/shared_receive_queue.hpp"
#include "simverbs/transport/effects.hpp"
#include "simverbs/transport/engine.hpp"

namespace simverbs {

class DeviceContext;
class Hca;

// Returns true if what comes in reaches the engines, and they may answer.
constexpr bool receives_packets(QpState state) {
    return state == QpState::kRtr || state == QpState::kRts || state == QpState::kSqd ||
           state == QpState::kSqe;
}

// A handle on an XRC target beside its owner's (ibv_open_qp(3)).
struct QpOpening {
    DeviceContext* context;
    std::uint32_t handle;
    OpenedXrcDomain* xrcd;  // as that context has it; counts the opening
};

// The parts of a queue pair; a service that lacks something has nullptr there.
struct QueuePairParts {
    ProtectionDomain* pd;
    CompletionQueue* send_cq;
    CompletionQueue* receive_cq;
    SharedReceiveQueue* srq;
    OpenedXrcDomain* xrcd;
    RingMemory ring;
    WorkQueueShape send;
    WorkQueueShape receive;
    QpCapacity capacity;
    Service service;
    std::uint32_t qpn;
    IndirectionTable* table;  // it spreads frames by this
    ReceiveHash hash;
    bool blocks_own_multicast;
    FrameOffloads offloads;
};

// The activity of a queue pair, for whoever wants to know why nothing happens.
struct QueuePairReport {
    std::uint32_t qpn = 0;
    std::uint32_t dest_qpn = 0;
    Service service = Service::kRc;
    QpState state = QpState::kReset;
    std::uint32_t next_psn = 0;
    std::uint32_t expected_psn = 0;
    std::uint32_t sends = 0;              // posted and not complete
    std::uint32_t sends_started = 0;      // of them on the wire
    std::uint32_t sends_done = 0;         // complete, since the last RESET; modulo 2^32
    std::uint32_t messages_received = 0;  // carried out whole, of every kind; modulo 2^32
    std::uint32_t receives = 0;           // posted and not used, a shared queue's included
    std::uint32_t dropped = 0;            // messages; what is acknowledged is refused instead
    FaultCause drop_cause{};              // of the last of them
    std::uint8_t retries_left = 0;
    std::uint8_t rnr_retries_left = 0;            // 7: without limit
    std::uint32_t rnr_naks = 0;                   // for the oldest request
    std::optional<fabric::SimTime> answer_until;  // an acknowledgment timer runs
    std::optional<fabric::SimTime> rnr_until;     // the peer asked to wait
    std::string_view why_dead{};                  // of its context; "" while it works
};

// A ring that was replaced: its driver may still be looking at it.
struct RetiredRing {
    RingMemory memory;
    std::optional<std::uint32_t> sends_moved;  // until the driver has taken the new one over
};

// Links a queue pair into the context that owns it: a node of a map would take more room.
using InContext =
    boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>,
                                    boost::intrusive::optimize_size<true>>;

class QueuePair final : public InContext, private Effects, private fabric::EventHandler {
  public:
    QueuePair(Hca& hca, DeviceContext& context, const QueuePairParts& parts);
    ~QueuePair();
    QueuePair(const QueuePair&) = delete;
    QueuePair& operator=(const QueuePair&) = delete;

    // Getters.
    [[nodiscard]] std::uint32_t qpn() const { return attributes_.qpn; }
    [[nodiscard]] const QpAttributes& attributes() const { return attributes_; }
    [[nodiscard]] DeviceContext& context() const { return *context_; }
    // Its place in the order in which its device made queue pairs, from 1.
    [[nodiscard]] std::uint32_t ordinal() const { return ordinal_; }
    [[nodiscard]] const ProtectionDomain* pd() const { return pd_; }  // null of an XRC target
    [[nodiscard]] const OpenedXrcDomain* opened_domain() const { return receives_.xrc_domain(); }
    [[nodiscard]] bool spreads_by(const IndirectionTable& table) const;
    [[nodiscard]] bool counts_on(const CompletionCounter& counter) const {
        return counters_ != nullptr && counters_->has(counter);
    }
    [[nodiscard]] const XrcDomain* domain() const {
        const OpenedXrcDomain* const opened = receives_.xrc_domain();
        return opened == nullptr ? nullptr : opened->domain.get();
    }
    // It has no states and nothing to query (Linux mlx5).
    [[nodiscard]] bool blocks_own_multicast() const { return blocks_own_multicast_; }
    [[nodiscard]] bool spreads_frames() const { return spreads_frames_; }
    [[nodiscard]] QueryQpReply query() const;
    [[nodiscard]] QueuePairReport report() const;
    // Says in the trace what its number stands for.
    void describe() const;

    // Commands of the consumer (IBA 11.2.5). An errno; with one, nothing has changed.
    int modify(QpAttrs given, const QpValues& values, const QpCapacity& capacity,
               ModifyQpReply& reply);
    void posted_sends(std::uint32_t producer);
    void posted_receives(std::uint32_t producer);
    // Returns true if a packet came by the path of the connection; the peer's migration is
    // followed.
    bool comes_by_its_path(const fabric::Port& port, const fabric::Frame& frame);
    // Until the queue pair ends, or its owner leaves. An errno.
    int attach(CompletionCounter& counter, std::uint32_t operations);
    // A shared receive queue that an XRC request may have named is destroyed.
    void forget(const SharedReceiveQueue& srq);
    // Its number, until whoever made it has left.
    [[nodiscard]] std::uint32_t handle() const { return handle_; }
    // Whoever has opened an XRC target hears its events, and keeps it alive.
    void add_opening(const QpOpening& opening);
    void remove_opening(const DeviceContext& context, std::uint32_t handle);
    [[nodiscard]] std::span<const QpOpening> openings() const {
        return openings_ == nullptr ? std::span<const QpOpening>() : *openings_;
    }
    // Transfers an XRC target to the context of the next opening when its owner closes it. False if
    // there is no other opening, or no memory for the rings.
    bool transfer_ownership();

    // Inputs from the network.
    void packet_arrived(const Packet& packet);
    // As fabric::Node has it.
    bool take_ahead(const fabric::Port& port, const fabric::Frame& train);
    // Returns true if it takes each packet ahead, the last one at `last`.
    [[nodiscard]] bool would_take(const fabric::Port& port, const fabric::Frame& train,
                                  fabric::SimTime last, std::span<const MemorySpan>& to);
    // Returns the memory of the consumer whose shared receive queue a packet names; otherwise of
    // this queue pair's.
    [[nodiscard]] AddressSpace& memory(SrqNumber named) const;
    // An Ethernet frame that a flow rule gives to this queue pair.
    void frame_arrived(const ReceivedFrame& frame, const FrameHeaders& headers);
    // A packet for this queue pair, which is connected, was marked; a notification tells that one
    // of its own was.
    void congestion_seen();
    void congestion_notified();
    // bit/s that congestion leaves to this queue pair; 0: all.
    [[nodiscard]] std::uint64_t congestion_rate() const;
    // The payload of a packet of this queue pair could not be read.
    void source_unreadable(Psn psn);

    // Something failed that takes the queue pair down (DESIGN section 5: nobody assigns a state):
    // now, or when the engine that is at work has returned.
    void fail(QpTrigger trigger, FaultCause cause);
    // Removes its tags from the shared receive queue before it is destroyed.
    void give_up_tags() {
        if (engine_ != nullptr) {
            engine_->give_up_tags();
        }
    }
    // Cancels all timers and copies the payloads of packets in flight: the program that owns the
    // memory is gone.
    void stop_timers();

  private:
    // Effects of the engine: queue_pair.cpp, of packets queue_pair_frames.cpp, of keys and bytes
    // queue_pair_memory.cpp.
    void transmit(const Packet& packet) override;
    [[nodiscard]] std::uint16_t longest_train() const override;
    CopyOutcome transmit_snapshot(const Packet& packet) override;
    CopyOutcome transmit_datagram(const Packet& packet, std::uint32_t address_handle) override;
    [[nodiscard]] AddressVerdict check_address(std::uint32_t address_handle) const override;
    FrameVerdict transmit_frame(const Payload& frame, bool fill_checksums) override;
    void arm_when_transmitter_free(EngineTimer timer, fabric::SimDuration at_least) override;
    Grant open_receive(SrqNumber srq, const Segment& segment) override;
    Grant open_local(const Segment& segment, AccessRights needed) override;
    Grant open_remote(SrqNumber srq, std::uint32_t rkey, std::uint64_t address,
                      std::uint64_t length, AccessRights needed) override;
    KeyVerdict check_remote(SrqNumber srq, std::uint32_t rkey, AccessRights needed) override;
    bool bind_window(const WindowBinding& binding) override;
    InvalidateVerdict invalidate(SrqNumber srq, std::uint32_t rkey) override;
    [[nodiscard]] std::uint64_t key_generation() const override;
    CopyOutcome place(SrqNumber srq, const Payload& from, std::span<const MemorySpan> spans,
                      std::uint64_t offset) override;
    CopyOutcome place_grh(std::span<const MemorySpan> spans, bool& had_one) override;
    bool load(SrqNumber srq, const MemorySpan& from, std::uint64_t& value) override;
    bool store(SrqNumber srq, const MemorySpan& to, std::uint64_t value) override;
    void source_fault(const Packet& packet) override;
    CopyOutcome read_head(const Payload& from, std::span<std::byte> into) override;
    void decided(const TagDecision& decision) override;
    void send_of_device(const DeviceWork& request) override;
    bool rendezvous_ended(FaultCause cause) override { return engine_->rendezvous_ended(cause); }
    FetchVerdict fetch_send(std::uint32_t index, SendWqe& wqe, std::span<std::byte> tail) override;
    [[nodiscard]] bool is_served_by(SrqNumber srq) const override {
        return receives_.named_queue(srq) != nullptr;
    }
    bool take_receive(SrqNumber srq, RecvWqe& wqe, std::span<Segment> segments,
                      std::uint32_t& index) override;
    void delivered(MessageKind kind, std::uint64_t length) override;
    void discarded(const Packet& packet, FaultCause cause) override;
    void discarded(const Packet& packet, PacketFate fate) override;
    bool complete(const SendCompletion& completion, bool signaled) override;
    bool complete(const ReceiveCompletion& completion) override;
    void arm(EngineTimer timer, fabric::SimDuration after) override;
    [[nodiscard]] bool armed(EngineTimer timer) const override;
    void disarm(EngineTimer timer) override;
    void keep_payloads_in_flight() override;
    void raise(AsyncEvent event) override;
    void count(HwCounter counter) override;
    void handle(const fabric::Event& event) override;
    [[nodiscard]] bool tells_followers(const fabric::Event& event) const override;

    // Made when it is first needed, in the state that the queue pair is in.
    Engine& engine() {
        if (engine_ == nullptr) [[unlikely]] {
            make_engine();
        }
        return *engine_;
    }
    void make_engine();
    [[nodiscard]] QpMemory engine_memory() const;
    [[nodiscard]] EngineProgress progress() const {
        return engine_ == nullptr ? EngineProgress() : engine_->progress();
    }
    // Calls the engine, and carries out what it has failed with.
    template <class Call>
    void run_engine(Call call) {
        ++calls_of_engine_;
        const EngineResult failure = call(engine());
        --calls_of_engine_;
        if (failure || failure_) [[unlikely]] {
            end_failure(failure);
        }
    }
    void end_failure(const EngineResult& of_engine);

    fabric::FramePtr make_frame(const Packet& packet, const AddressVector& path);
    [[nodiscard]] bool may_borrow(const Packet& packet) const;
    CopyOutcome make_snapshot_frame(const Packet& packet, const AddressVector& path,
                                    fabric::FramePtr& frame);
    void put_on_wire(fabric::FramePtr frame, const Packet& packet);
    void loop_back_multicast(const Packet& packet, const AddressVector& path);
    void loop_back_group_frame(const fabric::Frame& sent, std::span<const std::byte> bytes);
    void describe_datagram(const ReceiveCompletion& completion, Cqe& entry) const;
    // The domain of the consumer whose shared receive queue a request names; otherwise of this
    // queue pair's.
    [[nodiscard]] const ProtectionDomain& protection_domain(SrqNumber named) const;
    void describe_tag(const ReceiveCompletion& completion, Cqe& entry) const;
    void forget_opcode(Cqe& entry) const;
    void push(CompletionQueue& cq, const Cqe& entry, const WorkCompleted& record, bool urgent,
              CompletedQueue queue);
    void flush_sends();
    void flush_receives();
    fabric::Timer& timer(EngineTimer which);
    void cancel_timers();
    // nullptr where it was never armed.
    [[nodiscard]] fabric::Timer* find_timer(EngineTimer which) const {
        return timers_ == nullptr ? nullptr : (*timers_)[static_cast<std::size_t>(which)].get();
    }

    // congestion.cpp
    Congestion& congestion();

    // path_migration.cpp
    [[nodiscard]] int check_migration(QpAttrs given, const QpValues& values) const;
    void apply_migration(QpAttrs given, const QpValues& values);
    [[nodiscard]] MigrationState migration_state() const;
    bool migrate() override;

    // modify_qp.cpp
    // `refused` gets the attribute that is wrong.
    [[nodiscard]] int check_values(QpAttrs given, const QpValues& values, QpAttrs& refused) const;
    void apply(QpAttrs given, const QpValues& values);
    void enter(QpState to, QpTrigger trigger, FaultCause cause);
    void enter_rts(QpState from);
    void reset();
    [[nodiscard]] QpAttributes fresh_attributes(Service service, std::uint32_t qpn) const;
    void report_drained();
    // As far as the engine has come, or as modify() has set them.
    [[nodiscard]] Psn next_psn() const;
    [[nodiscard]] Psn expected_psn() const;

    // resize_qp.cpp
    [[nodiscard]] bool has_sends() const { return send_cq_ != nullptr; }
    [[nodiscard]] bool has_receives() const {
        return receives_.own_ring() != nullptr && properties(attributes_.service).has_receive_queue;
    }
    [[nodiscard]] std::uint32_t sends_waiting() const;
    [[nodiscard]] QpCapacity capacity() const;
    [[nodiscard]] int check_resize(const QpCapacity& asked) const;
    bool resize(const QpCapacity& asked, ModifyQpReply& reply);
    bool is_of_retired_ring(std::uint32_t producer);

    [[nodiscard]] QueuePairRings& rings() const {
        return *reinterpret_cast<QueuePairRings*>(ring_.base);
    }
    [[nodiscard]] std::byte* send_slot(std::uint32_t index) const;

    Hca& hca_;
    DeviceContext* context_;
    ProtectionDomain* pd_;
    CompletionQueue* send_cq_;
    CompletionQueue* receive_cq_;
    ReceiveSource receives_;
    std::unique_ptr<std::vector<QpOpening>> openings_;  // where there are any
    std::unique_ptr<AttachedCounters> counters_;        // where any are attached
    std::unique_ptr<PathMigration> migration_;          // where an alternate path is loaded
    std::unique_ptr<RetiredRing> retired_ring_;         // where its queues were resized
    // There may be many queue pairs: what follows leaves no gaps. Its last members are those that
    // each call of the engine uses.
    RingMemory ring_;
    WorkQueueShape send_shape_;
    QpAttributes attributes_;
    std::uint32_t handle_;
    std::uint32_t ordinal_;
    std::uint32_t frames_made_ = 0;
    std::uint32_t messages_received_ = 0;
    std::uint32_t dropped_ = 0;
    EngineResult failure_;  // that waits until the engine is not at work
    std::uint16_t inline_bytes_;
    std::uint16_t tso_header_bytes_;
    FrameOffloads offloads_;
    FaultCause drop_cause_{};           // of the last message that was dropped
    std::uint8_t calls_of_engine_ = 0;  // under way
    bool blocks_own_multicast_;
    bool notify_drained_ = false;
    bool drained_ = false;
    bool sends_of_device_ = false;  // a request of the device's own has not been looked at
    bool spreads_frames_;           // to work queues
    // Each made when it is first armed.
    std::unique_ptr<std::array<std::unique_ptr<fabric::Timer>, kEngineTimers>> timers_;
    std::unique_ptr<Congestion> congestion_;  // once something was marked
    std::unique_ptr<Engine> engine_;          // nullptr: nothing was to do since the last RESET
};

}  // namespace simverbs
