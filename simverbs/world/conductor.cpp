#include "simverbs/world/conductor.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simverbs/world/held_signals.hpp"

namespace simverbs {
namespace {

using namespace std::chrono_literals;

constexpr int kSpins = 200;
constexpr int kYields = 20;
constexpr auto kTurnPause = 50us;

std::atomic<std::uint64_t> g_last_conductor{0};

// The instant at which an actor's advance() ends.
class End final : public fabric::EventHandler {
  public:
    void handle(const fabric::Event& /*event*/) override { reached = true; }
    bool reached = false;
};

}  // namespace

Conductor::Conductor(Simulation& simulation, ConductorOptions options)
    : simulation_(simulation),
      options_(options),
      id_(++g_last_conductor),
      events_before_actors_(simulation.loop().events_run()) {
    if (options_.schedule == Schedule::kFree) {
        marks_.set(Mark::kScheduledFree);
    }
    for (const auto& entry : ThreadRoster::instance().subscribe(*this)) {
        const std::lock_guard lock(mutex_);
        add_actor(entry);
    }
}

Conductor::~Conductor() {
    ThreadRoster::instance().unsubscribe(*this);
    stop_ = true;
    helper_wanted_ = true;
    helper_wanted_.notify_all();
    if (helper_.joinable()) {
        helper_.join();
    }
}

void Conductor::ring(Attachment& attachment, const Doorbell& doorbell) {
    Actor& actor = current();
    note_act(actor);
    actor.state.store(ActorState::kRunning, std::memory_order_relaxed);
    {
        const std::lock_guard lock(actor.lock);
        auto& queued = actor.doorbells;
        if (!queued.empty() && queued.back().attachment == &attachment &&
            queued.back().doorbell.context == doorbell.context &&
            queued.back().doorbell.qpn == doorbell.qpn &&
            queued.back().doorbell.queue == doorbell.queue) {
            queued.back().doorbell.producer = doorbell.producer;
        } else {
            queued.push_back({&attachment, doorbell});
        }
    }
    want_helper();
}

void Conductor::want_helper() noexcept {
    if (!helper_wanted_.load(std::memory_order_relaxed)) {
        helper_wanted_.store(true, std::memory_order_release);
        helper_wanted_.notify_one();
    }
}

void Conductor::execute(PendingCommand& command) {
    Actor& self = current();
    note_act(self);
    const Visit visit(self);
    Lock lock(mutex_);
    if (alone(self) || options_.schedule == Schedule::kFree) {
        self.state = ActorState::kRunning;
        self.watch.forget();
        stall_watch_.called();
        drain_all(&self);
        command.run();
        release_waiting(false);
        return;
    }
    self.command = &command;
    rendezvous(lock, self, ActorState::kCommand);
    if (!simulation_.loop().empty()) {
        want_helper();  // the others may be blocked, and this thread may end
    }
}

void Conductor::empty_poll(std::uint64_t seen) {
    Actor& self = current();
    t_clock_watch.polled_nothing(seen);
    const Visit visit(self);
    Lock lock(mutex_);
    if (alone(self) && all_have_come()) {
        self.watch.forget();  // the helper thread looks at it, too
        drain_all(&self);
        watch_for_stall(step_to_news());
        return;
    }
    if (options_.schedule == Schedule::kFree) {
        poll_freely(self, seen);
        return;
    }
    rendezvous(lock, self, ActorState::kPolling);
}

// The caller counts as waiting from here to its next call that is not an empty poll, or until
// something is delivered. All wait: time jumps; else it keeps pace with the wall.
void Conductor::poll_freely(Actor& self, std::uint64_t seen) {
    self.state = ActorState::kPolling;
    self.seen = seen;
    drain_all();
    if (everyone_waits(nullptr) && all_have_come() && sleeps_for_time_ == nullptr) {
        walking_ = false;
        watch_for_stall(step_to_news());
    } else if (wall_has_caught_up()) {
        simulation_.step_exactly();
    }
    release_waiting(false);
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
    const std::uint64_t ticket = self.released.load(std::memory_order_relaxed);
    const auto let_go = [&self, ticket] {
        return self.released.load(std::memory_order_acquire) != ticket;
    };
    int error = 0;
    while (error == 0 && !let_go()) {
        if (everyone_waits(&self) && lead()) {
            continue;
        }
        if (has_message(descriptor)) {
            if (options_.schedule != Schedule::kSerial) {
                break;  // delivered between steps
            }
            changed_.wait_for(lock, kTurnPause, let_go);
            continue;
        }
        if (!simulation_.loop().empty()) {
            want_helper();
        }
        self.in_kernel = true;
        lock.unlock();
        error = signals.let_go() ? EINTR : wait_for_message(descriptor);
        signals.hold();
        lock.lock();
        self.in_kernel = false;
    }
    if (error == EINTR) {
        marks_.set(Mark::kWokenBySignal, self.describe());
    }
    self.awaited = -1;
    self.state = ActorState::kRunning;
    self.watch.forget();
    return error;
}

void Conductor::event_delivered() {
    delivered();
    for (const auto& actor : actors_) {
        if (actor->state == ActorState::kRunning) {
            actor->watch.expect_wake();
        }
    }
}

bool Conductor::drain(Actor& actor) {
    {
        const std::lock_guard lock(actor.lock);
        if (actor.doorbells.empty()) {
            return false;
        }
        actor.doorbells.swap(actor.draining);
    }
    stall_watch_.called();
    for (const QueuedDoorbell& entry : actor.draining) {
        entry.attachment->ring(entry.doorbell);
    }
    actor.draining.clear();
    return true;
}

bool Conductor::has_queued(Actor& actor) {
    const std::lock_guard lock(actor.lock);
    return !actor.doorbells.empty();
}

void Conductor::drain_all(Actor* last) {
    int unordered = 0;
    for (const auto& actor : actors_) {
        if (actor.get() != last) {
            const bool acted = drain(*actor) || actor->command != nullptr;
            const bool has_order = !actor->name.empty() || actor->thread->is_announced;
            unordered += acted && !has_order ? 1 : 0;
        }
    }
    if (unordered > 1) {
        marks_.set(Mark::kUnnamedActorsRaced);
    }
    if (last != nullptr) {
        drain(*last);
    }
}

// Waits in the library until it is let go on; leads the world while nobody runs.
void Conductor::rendezvous(Lock& lock, Actor& self, ActorState state) {
    self.state = state;
    const std::uint64_t ticket = self.released.load(std::memory_order_relaxed);
    const auto let_go = [&self, ticket] {
        return self.released.load(std::memory_order_acquire) != ticket;
    };
    auto pause = 50us;
    for (int idle = 0; !let_go();) {
        if (everyone_waits(&self) && lead()) {
            idle = 0;
            continue;
        }
        if (idle++ == 0) {
            // A hand-over between two processors by futex takes longer than most steps do.
            lock.unlock();
            for (int i = 0; i < kSpins + kYields && !let_go(); ++i) {
                if (i >= kSpins) {
                    sched_yield();
                }
            }
            lock.lock();
        } else {
            changed_.wait_for(lock, pause, let_go);
            pause = std::min(pause * 2, std::chrono::microseconds(2ms));
        }
    }
    self.state = ActorState::kRunning;
    self.watch.forget();
}

bool Conductor::everyone_waits(const Actor* self) {
    sleeps_for_time_ = nullptr;
    bool all = true;
    for (const auto& actor : actors_) {
        const bool idle =
            actor->state != ActorState::kRunning &&
            (options_.schedule != Schedule::kFree || actor->state != ActorState::kPolling ||
             actor->seen == deliveries_.load(std::memory_order_relaxed));
        if (actor.get() != self && !idle && !may_go_on_without(*actor)) {
            all = false;
        }
    }
    remove_ended();
    return all;
}

// Whether time may move though the actor is in its own code.
bool Conductor::may_go_on_without(Actor& actor) {
    if (actor.gone) {
        return true;
    }
    if (actor.thread->inside.load(std::memory_order_acquire) > 0) {
        return false;  // on its way in or out, and perhaps asleep for our lock
    }
    if (!watch_of(actor)) {
        return actor.leaves();  // created, and not here yet; or it could not be created
    }
    // One that leaves looks at no memory that the world writes.
    const ThreadState state = actor.watch.look(actor.leaves() ? 0ns : options_.spin_limit);
    if (actor.watch.was_woken_by_signal()) {
        marks_.set(Mark::kWokenBySignal, actor.describe());
    }
    switch (state) {
        case ThreadState::kRuns:
            return false;
        case ThreadState::kAsleepForTime:
            sleeps_for_time_ = &actor;
            return true;
        case ThreadState::kAsleep:
            return true;
        case ThreadState::kSpins:
            if (simulation_.loop().empty() && nothing_queued()) {
                return false;
            }
            if (!marks_.has(Mark::kSpunOnMemory)) {
                marks_.set(Mark::kSpunOnMemory,
                           actor.name.empty() ? actor.watch.name() : actor.name);
            }
            return true;
        case ThreadState::kEnded:
            // Who joins it may have been looked at before, and has been woken since.
            actor.thread->leaves.store(true, std::memory_order_release);
            actor.gone = true;
            break;
    }
    return false;
}

bool Conductor::lead() {
    turn_.fetch_add(1, std::memory_order_relaxed);
    if (let_next_go()) {
        return true;
    }
    drain_all();
    if (run_commands()) {
        return true;
    }
    // Polls return where no event is left, too: without one, no time passes.
    if ((!all_have_come() && !simulation_.loop().empty()) || !walk_allows()) {
        return false;
    }
    const std::size_t events = walking_ ? simulation_.step_exactly() : step_to_news();
    if (events > 0) {
        note_sleepers();
    }
    watch_for_stall(events);
    release_after_step();
    return events > 0;
}

// Time has moved: who slept for a time, or for a signal, may go on at another instant next time.
void Conductor::note_sleepers() {
    if (walking_) {
        marks_.set(Mark::kSleptForTime, sleeps_for_time_->describe());
    }
    for (const auto& actor : actors_) {
        if (actor->state == ActorState::kRunning) {
            actor->watch.time_passed();
        }
    }
}

std::size_t Conductor::step_to_news() {
    return simulation_.step_to_news([this] { return deliveries_.load(std::memory_order_relaxed); });
}

// After a step that was taken because everyone waits.
void Conductor::watch_for_stall(std::size_t events) {
    switch (stall_watch_.stepped(events, deliveries_.load(std::memory_order_relaxed))) {
        case Stall::kNone:
            break;
        case Stall::kNothingLeft:
            warn("everyone waits and no event is left");
            break;
        case Stall::kEndless:
            marks_.endless = true;
            warn("a million events came while nobody called anything but empty polls");
            break;
    }
}

bool Conductor::run_commands() {
    bool any = false;
    for (const auto& actor : actors_) {
        if (actor->command != nullptr) {
            stall_watch_.called();
            std::exchange(actor->command, nullptr)->run();
            release(*actor);
            any = true;
            if (options_.schedule == Schedule::kSerial) {
                break;
            }
        }
    }
    if (any) {
        changed_.notify_all();
        release_waiting(false);  // a command may deliver, too: a flush, a link that goes down
    }
    return any;
}

// While a thread sleeps for a time, virtual time keeps pace with the wall.
bool Conductor::walk_allows() {
    if (sleeps_for_time_ == nullptr) {
        walking_ = false;
        return true;
    }
    return wall_has_caught_up();
}

// Whether the next event lies no further from where walking began than the wall has come since: it
// only ever delays.
bool Conductor::wall_has_caught_up() {
    const auto next = simulation_.loop().next_time();
    if (!next) {
        return true;
    }
    const std::int64_t now = wall_ns();
    if (!walking_) {
        walking_ = true;
        walk_began_ns_ = now;
        walk_began_ = simulation_.loop().now();
    }
    return *next - walk_began_ <= std::chrono::nanoseconds(now - walk_began_ns_);
}

void Conductor::release(Actor& actor) {
    actor.state = ActorState::kRunning;
    actor.watch.forget();
    actor.released.fetch_add(1, std::memory_order_release);
}

void Conductor::release_after_step() {
    release_waiting(true);
    let_next_go();
}

// Pollers go on after every step; who blocks goes on when there may be something for it.
void Conductor::release_waiting(bool stepped) {
    const std::uint64_t deliveries = deliveries_.load(std::memory_order_relaxed);
    const bool delivered = std::exchange(noticed_, deliveries) != deliveries;
    bool any = false;
    for (const auto& actor : actors_) {
        const bool goes_on =
            (actor->state == ActorState::kPolling && stepped) ||
            (actor->state == ActorState::kBlocked && delivered && has_message(actor->awaited));
        if (goes_on && options_.schedule == Schedule::kSerial) {
            actor->due = true;
        } else if (goes_on) {
            release(*actor);
            any = true;
        }
    }
    if (any) {
        changed_.notify_all();
    }
}

// Serial: of those that may go on after the last step, one at a time.
bool Conductor::let_next_go() {
    for (const auto& actor : actors_) {
        if (actor->due) {
            actor->due = false;
            release(*actor);
            changed_.notify_all();
            return true;
        }
    }
    return false;
}

std::optional<bool> Conductor::step_alone(fabric::SimDuration most) {
    Actor& self = current();
    const Visit visit(self);
    Lock lock(mutex_);
    remove_ended();
    const bool others_act = std::any_of(actors_.begin(), actors_.end(), [&self](const auto& actor) {
        return actor.get() != &self && actor->has_called && !actor->leaves();
    });
    if (others_act) {
        return std::nullopt;
    }
    // A thread that has called nothing yet may be on its way.
    while (!alone(self) && !everyone_waits(&self)) {
        changed_.wait_for(lock, kTurnPause);
    }
    drain_all(&self);
    const auto next = simulation_.loop().next_time();
    if (next && *next - simulation_.loop().now() > most) {
        return false;
    }
    // Without an event, too: what waits is handed over.
    const bool ran = simulation_.step_exactly() > 0;
    release_waiting(true);
    return ran;
}

void Conductor::advance(fabric::SimDuration duration) {
    Actor& self = current();
    const Visit visit(self);
    Lock lock(mutex_);
    if ((alone(self) && all_have_come()) || options_.schedule == Schedule::kFree) {
        drain_all(&self);
        simulation_.run_for(duration);
        release_waiting(false);
        return;
    }
    class Begin final : public PendingCommand {
      public:
        Begin(Simulation& simulation, fabric::SimDuration duration, End& end)
            : simulation_(simulation), duration_(duration), end_(end) {}
        void run() override { simulation_.schedule_mark(duration_, end_); }

      private:
        Simulation& simulation_;
        fabric::SimDuration duration_;
        End& end_;
    };
    End end;
    Begin begin(simulation_, duration, end);
    self.command = &begin;
    rendezvous(lock, self, ActorState::kCommand);
    while (!end.reached) {
        rendezvous(lock, self, ActorState::kPolling);
    }
}

}  // namespace simverbs
