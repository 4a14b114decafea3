// How threads wait in the library: for a step, or in a blocking verb.
//
// Whoever comes last leads. The others spin for a moment, where there is a processor for each, then
// sleep, each on a word of its own; one of them looks at the threads that run for longer.
#include <algorithm>
#include <cerrno>
#include <chrono>

#include <sched.h>

#include "simverbs/threads/conductor.hpp"
#include "simverbs/threads/held_signals.hpp"

namespace simverbs {
namespace {

using namespace std::chrono_literals;

// Longer than a hand-over by futex, which can take 30 us where processors are virtual: else,
// once one of two threads sleeps, the other one spins in vain and sleeps, too, for good.
constexpr auto kSpin = 100us;
// After n spins in vain, 2^n - 2 waits go without one, n up to this.
constexpr int kVainSpins = 6;
constexpr auto kFirstLook = 50us;
constexpr auto kLastLook = 5ms;
constexpr auto kTurnPause = 50us;
// Free: polls that take nobody's lock where the last look found nothing to lead.
constexpr std::uint32_t kPollsWithoutLook = 16;
// Free: empty polls after which a thread gives its processor up once.
constexpr std::uint32_t kPollsBeforeYield = 64;

}  // namespace

// Waits in the library until it is let go on; leads the world while nobody runs.
void Conductor::rendezvous(Lock& lock, Actor& self, ActorState state, ActorList& list) {
    const std::uint32_t ticket = self.wake.ticket();
    self.state.store(state, std::memory_order_relaxed);
    self.waits_since = steps_;
    self.went_early.store(false, std::memory_order_relaxed);
    list.take(self);
    while (!self.wake.is_released(ticket) && lead(&self, Look::kAtRecords)) {
    }
    if (!self.wake.is_released(ticket) && !spin(lock, self, ticket)) {
        sleep_until_released(lock, self, ticket);
    }
}

// Watches its word for a moment, with the world let go. True: it is released, and the world is let
// go still.
bool Conductor::spin(Lock& lock, Actor& self, std::uint32_t ticket) {
    if (outnumber_processors() || holding_.size() + spinning_ >= processors_.count()) {
        return false;  // somebody needs this processor
    }
    if (self.waits_to_sleep > 0) {
        --self.waits_to_sleep;
        return false;
    }
    self.spins = true;
    ++spinning_;
    lock.unlock();
    const bool released = self.wake.spin(ticket, kSpin);
    if (released) {
        self.vain_spins = 0;
    } else {
        self.vain_spins = std::min(self.vain_spins + 1, kVainSpins);
        self.waits_to_sleep = (1 << self.vain_spins) - 2;
        lock.lock();
        stop_spinning(self);
    }
    return released;
}

void Conductor::stop_spinning(Actor& actor) {
    if (actor.spins) {
        actor.spins = false;
        --spinning_;
    }
}

void Conductor::sleep_until_released(Lock& lock, Actor& self, std::uint32_t ticket) {
    std::chrono::nanoseconds pause = kFirstLook;
    const bool is_crowded = outnumber_processors();
    if (is_crowded) {
        self.placement.store(Placement::kMovable, std::memory_order_relaxed);
    }
    bool released = self.wake.is_released(ticket);
    while (!released) {
        if (looker_ == nullptr) {
            looker_ = &self;
        }
        const bool looks = looker_ == &self;
        if (is_crowded) {
            wake_next_here();
        }
        lock.unlock();
        if (!looks) {
            self.wake.sleep(ticket);
            break;
        }
        released = self.wake.sleep_for(ticket, pause);
        if (!released) {
            lock.lock();
            pause = std::min<std::chrono::nanoseconds>(pause * 2, kLastLook);
            while (!self.wake.is_released(ticket) && lead(&self, Look::kAtThreads)) {
                pause = kFirstLook;
            }
            let_pollers_look();
            released = self.wake.is_released(ticket);
        }
    }
    take_placement(self);
}

// The caller is about to sleep, and leaves its processor to the thread that goes on, if it is one
// alone.
void Conductor::wake_next_here() {
    if (mutex_.waking() != 1 || holding_.size() != 1) {
        return;
    }
    Actor& next = holding_[0];
    Placement expected = Placement::kMovable;
    if (!next.placement.compare_exchange_strong(expected, Placement::kMoving,
                                                std::memory_order_acquire)) {
        return;
    }
    const pid_t thread = next.thread->id.load(std::memory_order_relaxed);
    const bool is_confined = processors_.confine_to_this_one(thread);
    next.placement.store(is_confined ? Placement::kConfined : Placement::kMovable,
                         std::memory_order_release);
}

// The caller is awake, and uses the processors that it was given. It may have woken up by itself
// while somebody was about to wake it.
void Conductor::take_placement(Actor& self) const {
    Placement found = Placement::kMovable;
    while (
        !self.placement.compare_exchange_weak(found, Placement::kOwn, std::memory_order_acq_rel)) {
        if (found == Placement::kMoving) {
            sched_yield();
            found = Placement::kMovable;
        }
    }
    if (found == Placement::kConfined) {
        processors_.allow_all(0);
    }
}

// See EarlyPolls.
void Conductor::let_pollers_look() {
    const auto busy = [](const Actor* actor) { return actor->watch.busy_for(); };
    const auto longest = std::ranges::max_element(holding_, {}, busy);
    if (longest == holding_.end() || !early_polls_.are_due(busy(*longest))) {
        return;
    }
    for (const ActorList* list : {&polling_, &watching_, &turning_}) {
        for (std::size_t i = list->size(); i-- > 0;) {
            Actor& actor = (*list)[i];
            actor.went_early.store(true, std::memory_order_relaxed);
            release(actor);
        }
    }
}

int Conductor::wait_readable(int descriptor) {
    Actor& self = current();
    const Visit visit(self);
    HeldSignals signals;
    Lock lock(mutex_);
    // With the world held, so that no delivery slips in between the look and the wait.
    if (has_message(descriptor)) {
        return 0;
    }
    self.awaited = descriptor;
    self.state = ActorState::kBlocked;
    blocked_.take(self);
    const std::uint32_t ticket = self.wake.ticket();
    int error = 0;
    while (error == 0 && !self.wake.is_released(ticket)) {
        if (lead(&self, Look::kAtRecords)) {
            continue;
        }
        if (has_message(descriptor)) {
            if (options_.schedule != Schedule::kSerial) {
                break;  // delivered between steps
            }
            lock.unlock();
            self.wake.sleep_for(ticket, kTurnPause);
            lock.lock();
            continue;
        }
        if (spin(lock, self, ticket)) {
            lock.lock();
            break;
        }
        if (!simulation_.loop().empty()) {
            want_helper();
        }
        lock.unlock();
        error = signals.let_go() ? EINTR : wait_for_message(descriptor);
        signals.hold();
        lock.lock();
    }
    if (error == EINTR) {
        marks_.set(Mark::kWokenBySignal, self.describe());
    }
    self.awaited = -1;
    self.state = ActorState::kRunning;
    holding_.take(self);
    note_visit(self);
    return error;
}

// The caller counts as waiting from here to its next call that is not an empty poll, or until
// something is delivered. All wait: time jumps; else it keeps pace with the wall.
void Conductor::poll_freely(Actor& self, std::uint64_t seen) {
    self.seen.store(seen, std::memory_order_relaxed);
    self.state.store(ActorState::kPolling, std::memory_order_release);
    ++self.polls_in_vain;
    if (self.polls_in_vain % kPollsBeforeYield == 0) {
        sched_yield();  // the thread that it waits for may be queued on this processor
    }
    if (nothing_left_.load(std::memory_order_relaxed) && nothing_queued() &&
        self.polls_in_vain % kPollsWithoutLook != 0) {
        return;
    }
    const Lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
        return;  // another leads
    }
    if (alone(self) && all_have_come()) {
        step_for(self);
    } else {
        lead(nullptr, Look::kAtThreads);
    }
    nothing_left_.store(simulation_.loop().empty(), std::memory_order_relaxed);
}

}  // namespace simverbs
