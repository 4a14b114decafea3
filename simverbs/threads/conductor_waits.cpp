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
// Processor time that a thread uses before another one acts out of its turn, which marks the run,
// and in a run that is marked already.
constexpr auto kOutOfTurn = 10ms;
constexpr auto kOutOfTurnAgain = 1ms;
// Free: polls that take nobody's lock where the last look found nothing to lead.
constexpr std::uint32_t kPollsWithoutLook = 16;
// Free: empty polls after which a thread gives its processor up once; where threads outnumber
// processors, the one that leads and the others.
constexpr std::uint32_t kPollsBeforeYield = 1024;
constexpr std::uint32_t kLeadersPollsBeforeYield = 256;
constexpr std::uint32_t kFollowersPollsBeforeYield = 4;
// Free: how often an empty poll looks for a delivery before it returns, where another thread leads,
// and as how many polls that counts. It takes about 1 us.
constexpr int kLooksForDelivery = 32;
constexpr std::uint32_t kPollsPerWatch = 4;

}  // namespace

// Waits in the library until it is let go on; leads the world while nobody runs.
void Conductor::rendezvous(Lock& lock, Actor& self, ActorState state, ActorList& list) {
    const std::uint32_t ticket = self.wake.ticket();
    self.state.store(state, std::memory_order_relaxed);
    self.waits_since = steps_;
    self.went_early.store(false, std::memory_order_relaxed);
    list.take(self);
    if (leader_to_ask(self) == nullptr) {
        lead_on(self, ticket);
    }
    if (!self.wake.is_released(ticket) && !spin(lock, self, ticket)) {
        sleep_until_released(lock, self, ticket);
    }
}

void Conductor::lead_on(Actor& self, std::uint32_t ticket) {
    while (!self.wake.is_released(ticket) && lead(&self, Look::kAtRecords)) {
        change(leader_, &self);
    }
}

// The state of the world is in the cache of the processor that led last: so that thread leads on,
// if it watches its word, and the caller may do so, too.
Actor* Conductor::leader_to_ask(const Actor& self) const {
    Actor* const leader = leader_.load(std::memory_order_relaxed);
    const bool can_lead = leader != nullptr && leader != &self && leader->spins;
    return can_lead && holding_.empty() && self.waits_to_sleep == 0 && has_processor_to_spin()
               ? leader
               : nullptr;
}

// Watches its word for a moment, with the world let go. True: it is released, and the world is let
// go still.
bool Conductor::spin(Lock& lock, Actor& self, std::uint32_t ticket) {
    if (!has_processor_to_spin()) {
        return false;
    }
    if (self.waits_to_sleep > 0) {
        --self.waits_to_sleep;
        return false;
    }
    if (Actor* const leader = leader_to_ask(self)) {
        leader->wake.ask();
    }
    self.spins = true;
    ++spinning_;
    lock.unlock();
    while (!self.wake.spin(ticket, kSpin)) {
        lock.lock();
        if (!self.wake.take_asked()) {
            self.vain_spins = std::min(self.vain_spins + 1, kVainSpins);
            self.waits_to_sleep = (1 << self.vain_spins) - 2;
            stop_spinning(self);
            return false;
        }
        lead_on(self, ticket);
        lock.unlock();
    }
    self.vain_spins = 0;
    return true;
}

// Free: of those that run or poll, as far as is known.
std::size_t Conductor::count_awake() const {
    return static_cast<std::size_t>(std::ranges::count_if(actors_, [](const auto& actor) {
        const ActorState state = actor->state.load(std::memory_order_relaxed);
        return (state == ActorState::kRunning || state == ActorState::kPolling) && !actor->gone &&
               !actor->watch.was_asleep() &&
               actor->thread->joins.load(std::memory_order_relaxed) == 0;
    }));
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
    const auto end_all = [this](const ActorList& list) {
        for (std::size_t i = list.size(); i-- > 0;) {
            Actor& actor = list[i];
            actor.went_early.store(true, std::memory_order_relaxed);
            release(actor);
        }
    };
    const bool turns_end =
        busy(*longest) >= (marks_.has(Mark::kWentOnEarly) ? kOutOfTurnAgain : kOutOfTurn);
    end_all(polling_);
    end_all(watching_);
    if (turns_end) {
        end_all(turning_);
    }
}

// Blocks its actor while it lives, with the world held where it begins. It also ends where the
// thread is cancelled in its sleep (pthread_cancel(3)).
class Conductor::BlockingWait {
  public:
    BlockingWait(Conductor& conductor, Lock& lock, Actor& self, Awaited& awaited)
        : conductor_(conductor), lock_(lock), self_(self), awaited_(awaited) {
        self.awaited = &awaited;
        self.state = ActorState::kBlocked;
        conductor.blocked_.take(self);
        conductor.forget_leader(self);
    }
    ~BlockingWait() {
        hold(lock_);
        awaited_.attend(Attention::kNone);
        self_.awaited = nullptr;
        self_.due = false;
        self_.state = ActorState::kRunning;
        conductor_.holding_.take(self_);
        conductor_.note_visit(self_);
    }
    BlockingWait(const BlockingWait&) = delete;
    BlockingWait& operator=(const BlockingWait&) = delete;

  private:
    Conductor& conductor_;
    Lock& lock_;
    Actor& self_;
    Awaited& awaited_;
};

int Conductor::wait_for(Awaited& awaited) {
    Actor& self = current();
    const Visit visit(self);
    HeldSignals signals;
    Lock lock(mutex_);
    // With the world held, so that no delivery slips in between the look and the wait.
    awaited.attend(Attention::kAwake);
    if (awaited.is_there()) {
        awaited.attend(Attention::kNone);
        return 0;
    }
    const BlockingWait wait(*this, lock, self, awaited);
    const std::uint32_t ticket = self.wake.ticket();
    int error = 0;
    while (error == 0 && !self.wake.is_released(ticket)) {
        if (lead(&self, Look::kAtRecords)) {
            continue;
        }
        if (awaited.is_there()) {
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
        if (awaited.is_there()) {
            continue;  // since it stopped to watch its word, and the descriptor need not tell
        }
        if (!simulation_.loop().empty()) {
            want_helper();
        }
        awaited.attend(Attention::kAsleep);
        lock.unlock();
        error = signals.let_go() ? EINTR : visit.uncancelled().except_in([&awaited] {
            return wait_for_message(awaited.descriptor());
        });
        signals.hold();
        lock.lock();
        awaited.attend(Attention::kAwake);
    }
    if (error == EINTR) {
        marks_.set(Mark::kWokenBySignal, self.describe());
    }
    return error;
}

std::uint32_t Conductor::polls_before_yield(bool leads) const {
    if (!crowded_.load(std::memory_order_relaxed)) {
        return kPollsBeforeYield;
    }
    return leads ? kLeadersPollsBeforeYield : kFollowersPollsBeforeYield;
}

// Returns true if another thread led last, and has polled since the caller asked this last: that
// one leads on, as in leader_to_ask().
bool Conductor::leader_polls_still(Actor& self) {
    const Actor* const leader = leader_.load(std::memory_order_relaxed);
    if (leader == nullptr || leader == &self) {
        return false;
    }
    const std::uint32_t polls = leader->polls_in_vain.load(std::memory_order_relaxed);
    return std::exchange(self.leader_polls, polls) != polls;
}

// Looks for a delivery a few times. Each poll takes cache lines from the processor of the thread
// that leads and is about to write there; a look takes one.
bool Conductor::watch_deliveries(std::uint64_t seen) const {
    for (int i = 0; i < kLooksForDelivery; ++i) {
        if (deliveries_.load(std::memory_order_relaxed) != seen) {
            return true;
        }
        relax();
    }
    return false;
}

// The caller counts as waiting from here to its next call that is not an empty poll, or until
// something is delivered. All wait: time jumps; else it keeps pace with the wall. `queue` is where
// it looked.
void Conductor::poll_freely(Actor& self, std::uint64_t seen, const void* queue) {
    bool repeats = std::exchange(self.polled, queue) == queue && queue != nullptr;
    if (self.seen.load(std::memory_order_relaxed) != seen) {
        self.seen.store(seen, std::memory_order_release);  // what it did before is there
        repeats = false;
    }
    if (self.state.load(std::memory_order_relaxed) != ActorState::kPolling) {
        self.state.store(ActorState::kPolling, std::memory_order_release);
        repeats = false;
    }
    const Actor* const leader = leader_.load(std::memory_order_relaxed);
    const bool leads = leader == nullptr || leader == &self;
    const bool watches = repeats && !leads && !crowded_.load(std::memory_order_relaxed);
    const std::uint32_t before = self.polls_in_vain.load(std::memory_order_relaxed);
    const std::uint32_t polls = before + (watches ? kPollsPerWatch : 1);
    self.polls_in_vain.store(polls, std::memory_order_relaxed);
    const auto is_due = [before, polls](std::uint32_t every) {
        return before / every != polls / every;
    };
    if (is_due(polls_before_yield(leads))) {
        sched_yield();  // the thread that it waits for may be queued on this processor
    }
    if (watches && watch_deliveries(seen)) {
        return;
    }
    const bool has_nothing_to_lead =
        nothing_left_.load(std::memory_order_relaxed) && nothing_queued();
    if ((has_nothing_to_lead || !leads) && !is_due(kPollsWithoutLook)) {
        return;
    }
    const Lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || leader_polls_still(self)) {
        return;  // another leads
    }
    change(leader_, &self);
    if (alone(self) && all_have_come()) {
        step_for(self);
    } else {
        lead(nullptr, Look::kAtThreads);
    }
    change(nothing_left_, simulation_.loop().empty());
}

}  // namespace simverbs
