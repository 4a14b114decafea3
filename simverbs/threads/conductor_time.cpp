// Answers the questions of the rule of time (simverbs/time/rule.hpp) for the threads of one process
// and carries out its decisions.
#include <algorithm>
#include <chrono>

#include "simverbs/threads/conductor.hpp"

namespace simverbs {

using namespace std::chrono_literals;

bool Conductor::someone_holds(const Actor* self) {
    sleeps_for_time_ = nullptr;
    bool holds = false;
    for (const auto& actor : actors_) {
        if (actor.get() == self) {
            continue;
        }
        const Whereabouts where = whereabouts_of(*actor);
        const Hold hold = where == Whereabouts::kOwnCode ? look_at(*actor) : judge(where);
        holds = holds || hold == Hold::kHolds;
    }
    remove_ended();
    return holds;
}

Whereabouts Conductor::whereabouts_of(Actor& actor) const {
    const ActorState state = actor.state;
    const bool has_news = options_.schedule == Schedule::kFree && state == ActorState::kPolling &&
                          actor.seen != deliveries_.load(std::memory_order_relaxed);
    if (state == ActorState::kCommand) {
        return Whereabouts::kCommanding;
    }
    if (state != ActorState::kRunning && !has_news) {
        return Whereabouts::kWaiting;
    }
    if (actor.gone) {
        return Whereabouts::kEnded;
    }
    if (actor.thread->inside.load(std::memory_order_acquire) > 0) {
        return Whereabouts::kEntering;
    }
    if (!watch_of(actor)) {
        return actor.leaves() ? Whereabouts::kNeverStarted : Whereabouts::kStarting;
    }
    return Whereabouts::kOwnCode;
}

Hold Conductor::look_at(Actor& actor) {
    // A thread that is about to end polls no memory that the world writes.
    const ThreadState found = actor.watch.look(actor.leaves() ? 0ns : options_.spin_limit);
    note_signal(actor);
    if (found == ThreadState::kEnded) {
        actor.thread->leaves.store(true, std::memory_order_release);
        actor.gone = true;
    }
    const bool something_may_come =
        found == ThreadState::kSpins && (!simulation_.loop().empty() || !nothing_queued());
    const Hold hold = judge(found, something_may_come);
    if (hold == Hold::kPassesForTime) {
        sleeps_for_time_ = &actor;
    }
    if (hold == Hold::kPassesSpinning && !marks_.has(Mark::kSpunOnMemory)) {
        marks_.set(Mark::kSpunOnMemory, actor.name.empty() ? actor.watch.name() : actor.name);
    }
    return hold;
}

// Answers the questions of the rule of time for the threads of one process.
class Conductor::View {
  public:
    // `self` (may be nullptr) is the actor that asks, and counts as waiting.
    View(Conductor& conductor, const Actor* self) : conductor_(conductor), self_(self) {}

    [[nodiscard]] Schedule schedule() const { return conductor_.options_.schedule; }
    bool someone_holds() { return conductor_.someone_holds(self_); }
    bool take_posts() { return conductor_.take_posts(); }
    [[nodiscard]] bool command_waits() const {
        return std::any_of(conductor_.actors_.begin(), conductor_.actors_.end(),
                           [](const auto& actor) { return actor->command != nullptr; });
    }
    [[nodiscard]] bool event_is_left() const { return !conductor_.simulation_.loop().empty(); }
    [[nodiscard]] Coming coming() const {
        return conductor_.all_have_come() ? Coming::kNobody : Coming::kHolds;
    }
    [[nodiscard]] bool someone_sleeps_for_time() const {
        return conductor_.sleeps_for_time_ != nullptr;
    }

  private:
    Conductor& conductor_;
    const Actor* self_;
};

bool Conductor::lead(const Actor* self) {
    if (options_.schedule == Schedule::kFree) {
        drain_all();  // even while other actors run
    }
    View view(*this, self);
    const Decision decision = decide(view);
    switch (decision.move) {
        case Move::kStand:
            return false;
        case Move::kLookAgain:
            return true;
        case Move::kCommands:
            return run_commands();
        case Move::kDeliver:
        case Move::kWalk:
        case Move::kJump:
            break;
    }
    return move(decision);
}

// Under the serial schedule, actors that may continue after the last step do so first, one at a
// time.
bool Conductor::take_posts() {
    turn_.fetch_add(1, std::memory_order_relaxed);
    if (let_next_go()) {
        return true;
    }
    drain_all();
    return false;
}

bool Conductor::move(Decision decision) {
    const fabric::EventLoop& loop = simulation_.loop();
    const bool walks = decision.move == Move::kWalk;
    if (walks && !pace_.allows(loop.next_time(), loop.now(), wall_ns())) {
        return false;
    }
    if (!walks) {
        pace_.stop();
    }
    const std::size_t events = walks ? simulation_.step_exactly() : step_to_news();
    const bool free = options_.schedule == Schedule::kFree;
    if (events > 0 && !free) {
        note_sleepers(walks);
    }
    // Under the free schedule the rule does not ask who runs when no event is pending.
    if (decision.why != Why::kSomeoneRuns && (!free || events > 0 || !someone_holds(nullptr))) {
        watch_for_stall(events);
    }
    release_waiting(!free);  // under the free schedule pollers do not wait for steps
    if (!free) {
        let_next_go();
    }
    return events > 0;
}

// Time has moved: who slept for a time, or for a signal, may go on at another instant next time.
void Conductor::note_sleepers(bool walked) {
    if (walked) {
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
    const Stall stall = stall_watch_.stepped(events, deliveries_.load(std::memory_order_relaxed));
    marks_.endless = marks_.endless || stall == Stall::kEndless;
    if (stall != Stall::kNone) {
        warn(to_string(stall));
    }
}

}  // namespace simverbs
