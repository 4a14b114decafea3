#include "simverbs/threads/conductor.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simverbs/threads/held_signals.hpp"

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

Conductor::Conductor(Simulation& simulation, TimeOptions options)
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
    {
        const std::lock_guard lock(stop_mutex_);
        stop_ = true;
    }
    stopped_.notify_all();
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
        note_visit(self);
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
        note_visit(self);  // the helper thread looks at it, too
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
    lead(nullptr);
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
        if (lead(&self)) {
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
    note_visit(self);
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
        if (lead(&self)) {
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
    note_visit(self);
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

void Conductor::release(Actor& actor) {
    actor.state = ActorState::kRunning;
    note_visit(actor);
    actor.released.fetch_add(1, std::memory_order_release);
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
    while (!alone(self) && someone_holds(&self)) {
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
