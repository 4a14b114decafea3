// A completion queue: the producer's side of a ring, and what happens when the ring is full.
//
// It trusts the consumer index only as far as the ring is deep. An overrun is final: one CQ_ERR,
// nothing more is written, and every queue pair that completes here fails with QP_FATAL, every work
// queue with WQ_FATAL. By
// personality the entry alone is lost, with a CQ_ERR each. A queue that was made to ignore overruns
// goes on, and its oldest entries are lost.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "fabric/core/timer.hpp"

#include "simverbs/hca/client.hpp"
#include "simverbs/hca/event_pipe.hpp"
#include "simverbs/hca/hca_events.hpp"
#include "simverbs/model/cq_transitions.hpp"
#include "simverbs/transport/work_queue.hpp"

namespace simverbs {

class DeviceContext;
class QueuePair;
class ReceiveWorkQueue;

struct CompletionChannel {
    explicit CompletionChannel(EventBacklog& backlog) : events(backlog) {}

    std::uint32_t handle = 0;
    std::uint32_t uses = 0;  // completion queues that report to it
    EventPipe events;
};

class CompletionQueue final : private fabric::EventHandler {
  public:
    CompletionQueue(DeviceContext& context, RingMemory ring, std::uint32_t entries,
                    CompletionChannel* channel);
    ~CompletionQueue();
    CompletionQueue(const CompletionQueue&) = delete;
    CompletionQueue& operator=(const CompletionQueue&) = delete;

    [[nodiscard]] std::uint32_t handle() const { return handle_; }
    void set_handle(std::uint32_t handle) { handle_ = handle; }
    [[nodiscard]] std::uint32_t entries() const { return entries_; }
    [[nodiscard]] const RingMemory& ring() const { return ring_; }
    [[nodiscard]] const CompletionChannel* channel() const { return channel_; }
    // In the order of their making; a queue pair comes twice where both of its queues complete
    // here.
    [[nodiscard]] const std::vector<QueuePair*>& users() const { return users_; }
    [[nodiscard]] const std::vector<ReceiveWorkQueue*>& work_queues() const { return work_queues_; }
    [[nodiscard]] bool in_use() const {
        return !users_.empty() || !work_queues_.empty() || shared_users_ > 0;
    }
    [[nodiscard]] std::uint32_t unconsumed() const;
    // It reports to a channel, and its program has not asked for the next event.
    [[nodiscard]] bool lacks_request() const {
        return channel_ != nullptr && armed_state() == CqState::kQuiet;
    }

    // `urgent`: solicited, or in error (IBA 11.4.2.2: what a solicited-only request wakes for).
    // Traces `record` when the entry is in the queue.
    void push(const Cqe& entry, const WorkCompleted& record, bool urgent) {
        if (late_ != nullptr && keep_late(entry, record, urgent)) [[unlikely]] {
            return;
        }
        write(entry, record, urgent);
    }

    // By a fault (completion_queue_late.cpp): the next entry becomes visible so much later, and
    // those that come meanwhile behind it.
    void delay_next(fabric::SimDuration delay);
    // Writes what is late, before a queue pair goes or forgets its work.
    void write_late();
    // Sends the event of an armed queue, as if the entries that are there came now.
    void notify_again();
    // The same, where a device tells of entries that were there when it was armed, unless they were
    // there at the last event, too.
    void notify_of_waiting() {
        if (unconsumed() > 0 && producer_ != notified_ && armed_state() == CqState::kArmed) {
            notify_again();
        }
    }

    // There is no room for an entry.
    void overrun();
    // Returns true if that is why it is dead.
    [[nodiscard]] bool was_overrun() const { return was_overrun_; }
    // Nothing is written and no event is sent any more.
    void stop();
    // Before the first entry.
    void ignore_overrun() { ignores_overrun_ = true; }
    // From now on an event waits for `count` completions, or for `period` after the first of them;
    // with either 0 it does not wait. One that is held back goes out.
    void moderate(std::uint16_t count, fabric::SimDuration period);

    // Copies what was not consumed to a new ring, from index 0; returns where it began in the old
    // one, which is kept: a consumer may still be reading it.
    std::uint32_t replace_ring(RingMemory ring, std::uint32_t entries);

    void add_user(QueuePair& qp) { users_.push_back(&qp); }
    void remove_user(const QueuePair& qp);
    void add_user(ReceiveWorkQueue& wq) { work_queues_.push_back(&wq); }
    void remove_user(const ReceiveWorkQueue& wq) { std::erase(work_queues_, &wq); }
    // XRC shared receive queues that complete here.
    void add_shared_user() { ++shared_users_; }
    void remove_shared_user() { --shared_users_; }

  private:
    [[nodiscard]] CompletionRing& head() const {
        return *reinterpret_cast<CompletionRing*>(ring_.base);
    }
    [[nodiscard]] Cqe* slots() const {
        return reinterpret_cast<Cqe*>(ring_.base + sizeof(CompletionRing));
    }
    // Queues that hold their events back are few, and the others pay a pointer.
    struct Moderation {
        std::uint16_t count;
        std::uint16_t held = 0;  // completions since the queue was armed
        fabric::SimDuration period;
        fabric::Timer timer;
    };

    // The places of its timers among those of its device, behind those of queue pairs, which have
    // the first port numbers. Contexts with large numbers have the next four of each.
    enum class TimerPurpose : std::uint16_t {
        kModeration = 64,
        kLateCompletion = 72,
        kLateEvent = 80,
    };
    [[nodiscard]] fabric::EventKey timer_key(TimerPurpose purpose) const;

    // Keeps what comes late by a fault.
    struct Late {
        struct Completion {
            Cqe entry;
            WorkCompleted record;
            bool urgent;
            fabric::SimTime due;
        };
        fabric::SimDuration next{};  // how late the next entry is
        std::deque<Completion> completions;
        fabric::Timer completion_timer;
        fabric::Timer event_timer;
    };

    void handle(const fabric::Event& event) override;
    void write(const Cqe& entry, const WorkCompleted& record, bool urgent);
    void notify(bool urgent);
    bool hold_back();
    void send_event();
    // Sends it now, or later if a fault delays it.
    void send_event_in_time();

    Late& late();
    bool keep_late(const Cqe& entry, const WorkCompleted& record, bool urgent);
    void write_due(fabric::SimTime now);
    [[nodiscard]] CqState armed_state() const;
    void trace_move(CqTrigger trigger) const;
    void release_retired();

    DeviceContext& context_;
    RingMemory ring_;
    RingMemory retired_;
    std::uint32_t handle_ = 0;
    std::uint32_t entries_;
    std::uint32_t mask_;
    std::uint32_t producer_ = 0;
    std::uint32_t notified_ = 0;  // producer_ at the last event
    std::uint32_t shared_users_ = 0;
    bool dead_ = false;
    bool was_overrun_ = false;
    bool ignores_overrun_ = false;
    CompletionChannel* channel_;
    std::unique_ptr<Moderation> moderation_;
    std::unique_ptr<Late> late_;  // once a fault had something late
    std::vector<QueuePair*> users_;
    std::vector<ReceiveWorkQueue*> work_queues_;
};

}  // namespace simverbs
