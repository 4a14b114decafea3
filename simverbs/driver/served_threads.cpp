// Tells the server of a world what the threads of this process do, and waits for it.
#include <algorithm>
#include <cstring>
#include <ctime>

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simverbs/driver/own_slot.hpp"
#include "simverbs/driver/served.hpp"
#include "simverbs/threads/clock_watch.hpp"
#include "simverbs/threads/held_signals.hpp"
#include "simverbs/threads/thread_roster.hpp"

namespace simverbs::driver {

constinit thread_local OwnSlot t_slot;

namespace {

// Under the free schedule, empty polls without a yield after news that the thread has not answered.
// Some programs look once more before they answer (libfabric does), and would lose the processor to
// a third program.
constexpr int kLooksAfterNews = 2;

// Canonical: yields before a thread that waits sleeps. It is woken later than one that yields; but
// where more threads than processors wait, they would keep these from the one that goes on.
constexpr int kYieldsBeforeSleep = 2048;
constexpr int kYieldsInCrowd = 8;

void replace(ActorSlot& slot, EarlyWord before, EarlyWord after) {
    auto expected = static_cast<std::uint32_t>(before);
    if (slot.early.load(std::memory_order_relaxed) == expected) [[unlikely]] {
        slot.early.compare_exchange_strong(expected, static_cast<std::uint32_t>(after),
                                           std::memory_order_relaxed);
    }
}

// A thread blocks in a verb while it lives. It also ends where the thread is cancelled.
class BlockedSlot {
  public:
    explicit BlockedSlot(ActorSlot& slot) : slot_(slot) { set_state(slot, ActorWord::kBlocked); }
    ~BlockedSlot() { set_state(slot_, ActorWord::kRunning); }
    BlockedSlot(const BlockedSlot&) = delete;
    BlockedSlot& operator=(const BlockedSlot&) = delete;

  private:
    ActorSlot& slot_;
};

}  // namespace

std::uint32_t ServedChannel::actor() {
    if (t_slot.channel != this) [[unlikely]] {
        const std::shared_ptr<ThreadEntry> entry = ThreadRoster::instance().current();
        std::uint32_t index = 0;
        {
            const std::lock_guard lock(doorbell_lock_);
            const auto known = slots_.find(entry->number);
            index = known == slots_.end() ? take_slot(*entry) : known->second;
        }
        t_slot = {this, index};
        t_clock_watch = {};
    }
    return t_slot.index;
}

// The calling thread posts or commands something: perhaps because of the time of day, or of a poll
// that ended early.
void ServedChannel::note_act(ActorSlot& slot) {
    replace(slot, EarlyWord::kEnded, EarlyWord::kActed);
    if (canonical_ && t_clock_watch.acts(area_.deliveries.value.load(std::memory_order_relaxed)))
        [[unlikely]] {
        slot.by_clock.store(1, std::memory_order_relaxed);
    }
    note_nap(slot);
}

// The calling thread goes on in the library, perhaps after it has slept for a time.
void ServedChannel::note_nap(ActorSlot& slot) {
    if (canonical_ && t_clock_watch.take_sleep()) [[unlikely]] {
        const bool has_posted = area_.doorbell_producer.value.load(std::memory_order_relaxed) !=
                                area_.doorbell_consumer.value.load(std::memory_order_relaxed);
        const NapWord nap = has_posted ? NapWord::kPosted : NapWord::kIdle;
        slot.nap.store(static_cast<std::uint32_t>(nap), std::memory_order_release);
    }
}

// More threads than slots share the last one: time then waits for all of them or none. With
// doorbell_lock_ held.
std::uint32_t ServedChannel::take_slot(const ThreadEntry& entry) {
    const std::uint32_t made = area_.actors_made.value.load(std::memory_order_relaxed);
    std::uint32_t index = 0;
    while (index < made && area_.actors[index].state.load(std::memory_order_relaxed) !=
                               static_cast<std::uint32_t>(ActorWord::kFree)) {
        ++index;
    }
    index = std::min(index, ClientArea::kActors - 1);
    ActorSlot& slot = area_.actors[index];
    slot.thread.store(static_cast<std::uint32_t>(entry.id.load()));
    slot.announced.store(entry.is_announced ? 1 : 0);
    replace(slot, EarlyWord::kEnded, EarlyWord::kNo);
    set_state(slot, ActorWord::kRunning);
    area_.actors_made.value.store(std::max(made, index + 1), std::memory_order_release);
    slots_[entry.number] = index;
    has_several_threads_.store(canonical_ && slots_.size() > 1, std::memory_order_relaxed);
    return index;
}

void ServedChannel::thread_announced(const std::shared_ptr<ThreadEntry>& entry) {
    const std::lock_guard lock(doorbell_lock_);
    if (canonical_) {
        take_slot(*entry);
    }
}

void ServedChannel::thread_began(const ThreadEntry& entry) {
    const std::lock_guard lock(doorbell_lock_);
    if (const auto known = slots_.find(entry.number); known != slots_.end()) {
        area_.actors[known->second].thread.store(static_cast<std::uint32_t>(entry.id.load()));
    }
}

// Its slot may be another's from here on; one that is shared stays.
void ServedChannel::thread_left(const ThreadEntry& entry) {
    const std::lock_guard lock(doorbell_lock_);
    const auto known = slots_.find(entry.number);
    if (known == slots_.end()) {
        return;
    }
    const std::uint32_t index = known->second;
    slots_.erase(known);
    if (std::none_of(slots_.begin(), slots_.end(),
                     [index](const auto& slot) { return slot.second == index; })) {
        set_state(area_.actors[index], ActorWord::kFree);
    }
}

void ServedChannel::note_use_among_several(ObjectUse& object, Use use, std::string_view kind,
                                           std::uint32_t number) {
    const std::shared_ptr<ThreadEntry> self = ThreadRoster::instance().current();
    const std::uint64_t turn = area_.turn.value.load(std::memory_order_acquire) + 1;
    if (object.note(use, turn, *self) == 0) {
        return;
    }
    ClientMark& mark = area_.shared_object;
    const std::lock_guard lock(doorbell_lock_);
    if (mark.is_set.load(std::memory_order_relaxed) == 0) {
        const std::string text =
            fmt::format("{} and another used {} {}", self->describe(), kind, number);
        std::memcpy(mark.text.data(), text.data(), std::min(text.size(), mark.text.size() - 1));
        mark.is_set.store(1, std::memory_order_release);
    }
}

void ServedChannel::empty_poll(std::uint64_t seen, CompletionRing* queue) {
    if (server_gone_) {
        return;
    }
    ActorSlot& slot = area_.actors[actor()];
    t_slot.posts_in_a_row = 0;
    if (!canonical_) {
        note_processor(slot);
        const bool newly = slot.seen.load(std::memory_order_relaxed) != seen ||
                           slot.state.load(std::memory_order_relaxed) !=
                               static_cast<std::uint32_t>(ActorWord::kPolling);
        if (newly) {
            slot.seen.store(seen, std::memory_order_relaxed);
            set_state(slot, ActorWord::kPolling);
            wake_server();
            t_slot.looks = t_slot.has_answered ? 0 : kLooksAfterNews;
            t_slot.has_answered = false;
        }
        if (t_slot.looks > 0) {
            --t_slot.looks;
            return;
        }
        sched_yield();
        if (++t_slot.polls % kYieldsPerCheck == 0) {
            has_gone(kAtOnce);
        }
        return;
    }
    t_clock_watch.polled_nothing(seen);
    note_nap(slot);
    if (queue != nullptr) {
        queue->poller.value.store(t_slot.index + 1, std::memory_order_relaxed);
    }
    slot.any_news.store(queue == nullptr ? 1 : 0, std::memory_order_relaxed);
    wait_for_step(slot);
}

// Canonical: waits until the server lets the calling thread go on.
void ServedChannel::wait_for_step(ActorSlot& slot) {
    const std::uint32_t ticket = slot.ticket.load(std::memory_order_relaxed) + 1;
    slot.ticket.store(ticket, std::memory_order_relaxed);
    replace(slot, EarlyWord::kEnded, EarlyWord::kNo);
    set_state(slot, ActorWord::kPolling);
    wake_server();
    const auto is_released = [&slot, ticket] {
        return slot.released.load(std::memory_order_acquire) == ticket;
    };
    const bool is_crowded = area_.crowded.value.load(std::memory_order_relaxed) != 0;
    const int spins = is_crowded ? 0 : kSpinsBeforeYield;
    const int most = spins + (is_crowded ? kYieldsInCrowd : kYieldsBeforeSleep);
    for (int i = 0; i < most && !is_released(); ++i) {
        if (i >= spins) {
            sched_yield();
        }
    }
    while (!is_released()) {
        slot.sleeps.store(1, std::memory_order_seq_cst);
        const std::uint32_t before = slot.released.load(std::memory_order_seq_cst);
        if (before != ticket) {
            const timespec limit{.tv_sec = 0, .tv_nsec = 100'000'000};
            syscall(SYS_futex, &slot.released, FUTEX_WAIT, before, &limit, nullptr, 0);
        }
        slot.sleeps.store(0, std::memory_order_relaxed);
        if (!is_released() && has_gone(kAtOnce)) {
            break;  // nobody is left to let us go on
        }
    }
    set_state(slot, ActorWord::kRunning);
}

int ServedChannel::take_event(const EventSource& /*source*/, int descriptor,
                              EventMessage& message) {
    return receive_event(descriptor, message);
}

int ServedChannel::await_event(const EventSource& /*source*/, int descriptor,
                               EventMessage& message) {
    ActorSlot& slot = area_.actors[actor()];
    HeldSignals signals;
    t_slot.posts_in_a_row = 0;
    slot.seen.store(area_.events.value.load(std::memory_order_acquire), std::memory_order_relaxed);
    int error = 0;
    {
        const BlockedSlot blocked(slot);
        wake_server();
        error = signals.let_go() ? EINTR : wait_for_message(descriptor);
    }
    return error == 0 ? receive_event(descriptor, message) : error;
}

}  // namespace simverbs::driver
