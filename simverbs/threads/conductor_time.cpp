// Answers the questions of the rule of time (simverbs/time/rule.hpp) for the threads of one process
// and carries out its decisions.
#include <algorithm>
#include <chrono>
#include <utility>

#include "simverbs/threads/conductor.hpp"

namespace simverbs {

using namespace std::chrono_literals;

namespace {

// Free: between two looks at a thread, which every poll of another would ask for.
constexpr auto kLookInterval = 50us;

}  // namespace

bool Conductor::someone_holds(const Actor* self, Look look) {
    sleeps_for_time_ = nullptr;
    spinner_ = nullptr;
    remove_ended();
    ++look_;
    if (options_.schedule == Schedule::kFree) {
        return someone_holds_freely(self);
    }
    if (look == Look::kAtThreads) {
        look_at_holding(self);
    }
    const std::size_t of_self = self != nullptr && self->list == &holding_ ? 1 : 0;
    return holding_.size() > of_self || look_at_passed(self);
}

void Conductor::look_at_holding(const Actor* self) {
    for (std::size_t i = holding_.size(); i-- > 0;) {
        Actor& actor = holding_[i];
        if (&actor == self) {
            continue;
        }
        actor.look = look_;
        if (judge_actor(actor) != Hold::kHolds) {
            passed_.take(actor);
        }
    }
}

// Time is about to move: whoever was passed so far may have been woken.
bool Conductor::look_at_passed(const Actor* self) {
    bool holds = false;
    for (std::size_t i = passed_.size(); i-- > 0;) {
        Actor& actor = passed_[i];
        if (&actor != self && actor.look != look_ && judge_actor(actor) == Hold::kHolds) {
            holding_.take(actor);
            holds = true;
        }
    }
    return holds;
}

// Looks at every actor: under this schedule one that polls is in its own code again.
bool Conductor::someone_holds_freely(const Actor* self) {
    bool holds = false;
    std::size_t awake = 0;
    for (const auto& actor : actors_) {
        const bool is_other = actor.get() != self;
        const bool runs = is_other && judge_actor(*actor) == Hold::kHolds;
        holds = holds || runs;
        awake += !is_other || runs || actor->state == ActorState::kPolling ? 1 : 0;
    }
    change(crowded_, awake > processors_.count());
    return holds;
}

Hold Conductor::judge_actor(Actor& actor) {
    const Whereabouts where = whereabouts_of(actor);
    return where == Whereabouts::kOwnCode ? look_at(actor) : judge(where);
}

Whereabouts Conductor::whereabouts_of(Actor& actor) {
    const ActorState state = actor.state;
    const bool has_news =
        options_.schedule == Schedule::kFree && state == ActorState::kPolling &&
        actor.seen.load(std::memory_order_acquire) != deliveries_.load(std::memory_order_relaxed);
    if (state == ActorState::kCommand) {
        return Whereabouts::kCommanding;
    }
    if (state != ActorState::kRunning && !has_news) {
        return Whereabouts::kWaiting;
    }
    if (actor.gone) {
        return Whereabouts::kEnded;
    }
    if (actor.thread->is_inside()) {
        return Whereabouts::kEntering;
    }
    if (!watch_of(actor)) {
        return actor.leaves() ? Whereabouts::kNeverStarted : Whereabouts::kStarting;
    }
    if (!joins_living(actor)) {
        return Whereabouts::kOwnCode;
    }
    actor.watch.may_have_acted();  // whoever joins threads does not spin on a lock
    return Whereabouts::kJoining;
}

// Returns true if the actor is in pthread_join(3), and the other thread calls verbs still: what it
// does before its end can be waited for, and its end is noticed.
bool Conductor::joins_living(Actor& actor) {
    const std::uint64_t number = actor.thread->joins.load(std::memory_order_acquire);
    if (number == 0) {
        return false;
    }
    if (actor.joined == nullptr || actor.joined->number != number) {
        const auto found = std::ranges::find_if(
            actors_, [number](const auto& other) { return other->thread->number == number; });
        if (found == actors_.end()) {
            return false;
        }
        actor.joined = (*found)->thread;
    }
    return !actor.joined->leaves.load(std::memory_order_acquire);
}

Hold Conductor::look_at(Actor& actor) {
    // A thread that is about to end polls no memory that the world writes.
    const bool is_free = options_.schedule == Schedule::kFree;
    const std::uint32_t polls = actor.polls_in_vain.load(std::memory_order_relaxed);
    if (std::exchange(actor.polls_before_look, polls) != polls) {
        note_visit(actor);
    }
    const ThreadState found =
        actor.watch.look(actor.leaves() ? 0ns : options_.spin_limit, is_free ? kLookInterval : 0ns);
    note_signal(actor);
    if (found == ThreadState::kEnded) {
        actor.thread->leaves.store(true, std::memory_order_release);
        actor.gone = someone_leaves_ = true;
    }
    const bool something_may_come =
        found == ThreadState::kSpins && (!simulation_.loop().empty() || !nothing_queued());
    const Hold hold = judge(found, something_may_come);
    if (hold == Hold::kPassesForTime) {
        sleeps_for_time_ = &actor;
    }
    if (hold == Hold::kPassesSpinning) {
        spinner_ = &actor;
    }
    return hold;
}

// Answers the questions of the rule of time for the threads of one process.
class Conductor::View {
  public:
    // `self` (may be nullptr) is the actor that asks, and counts as waiting.
    View(Conductor& conductor, const Actor* self, Look look)
        : conductor_(conductor), self_(self), look_(look) {}

    [[nodiscard]] Schedule schedule() const { return conductor_.options_.schedule; }
    bool someone_holds() { return conductor_.someone_holds(self_, look_); }
    bool take_posts() { return conductor_.take_posts(); }
    // With a TurnOrder, commands have their turn, too.
    [[nodiscard]] Commands commands() const {
        const bool any = !conductor_.turn_order_ && !conductor_.commanding_.empty();
        return any ? Commands::kCanRun : Commands::kNone;
    }
    [[nodiscard]] bool event_is_left() const { return !conductor_.simulation_.loop().empty(); }
    [[nodiscard]] Coming coming() const {
        return conductor_.all_have_come() ? Coming::kNobody : Coming::kHolds;
    }
    [[nodiscard]] bool someone_sleeps_for_time() const {
        return conductor_.sleeps_for_time_ != nullptr;
    }
    [[nodiscard]] bool spinner_may_compute() const {
        return conductor_.spinner_ != nullptr && conductor_.simulation_.next_step() >= kLongJump;
    }

  private:
    Conductor& conductor_;
    const Actor* self_;
    Look look_;
};

bool Conductor::lead(const Actor* self, Look look) {
    if (options_.schedule == Schedule::kFree) {
        drain_all();  // even while other actors run
    }
    View view(*this, self, look);
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
    begin_turn();
    if (let_next_go()) {
        return true;
    }
    drain_all();
    return false;
}

bool Conductor::move(Decision decision) {
    const fabric::EventLoop& loop = simulation_.loop();
    const bool walks = decision.move == Move::kWalk;
    // The fabric goes first while a thread waits for its turn, which may come after each instant.
    const bool is_short = std::exchange(fabric_goes_first_, false);
    if (walks && !pace_.allows(loop.next_time(), loop.now(), wall_ns())) {
        return false;
    }
    if (decision.move == Move::kJump && options_.schedule == Schedule::kCanonical &&
        show_before_jump()) {
        return true;
    }
    if (decision.move == Move::kJump && options_.schedule == Schedule::kFree &&
        pollers_must_look()) {
        return true;
    }
    if (!walks) {
        pace_.stop();
    }
    early_polls_.time_moved();
    const std::uint64_t records = simulation_.bus().run_records();
    const std::size_t events = walks || is_short ? simulation_.step_exactly() : step_to_news();
    const bool free = options_.schedule == Schedule::kFree;
    if (events > 0 && spinner_ != nullptr && !marks_.has(Mark::kSpunOnMemory)) {
        marks_.set(Mark::kSpunOnMemory, spinner_->describe());
    }
    if (events > 0 && !free) {
        note_sleepers(decision.why == Why::kSomeoneSleepsForTime);
    }
    // Under the free schedule the rule does not ask who runs when no event is pending.
    if (decision.why != Why::kSomeoneRuns &&
        (!free || events > 0 || !someone_holds(nullptr, Look::kAtRecords))) {
        watch_for_stall(events);
    }
    if (!free) {  // where pollers wait for steps
        release_pollers(events == 0 || simulation_.bus().run_records() != records);
    }
    release_waiting();
    if (!free) {
        let_next_go();
    }
    return events > 0;
}

// Makes all that poll look once more before a long jump, unless they have done so and nothing has
// happened since.
bool Conductor::pollers_must_look() {
    const auto happened = [this] {
        return simulation_.loop().events_run() + deliveries_.load(std::memory_order_relaxed);
    };
    if (simulation_.next_step() < kLongJump || happened() == polled_after_) {
        return false;
    }
    deliveries_.fetch_add(1, std::memory_order_release);
    ++looks_asked_;
    polled_after_ = happened();
    return true;
}

// Time has moved: who slept for a time, or for a signal, may go on at another instant next time.
void Conductor::note_sleepers(bool walked_for_one) {
    if (walked_for_one) {
        marks_.set(Mark::kSleptForTime, sleeps_for_time_->describe());
    }
    for (Actor* actor : passed_) {
        actor->watch.time_passed();
    }
}

std::size_t Conductor::step_to_news() {
    return simulation_.step_to_news([this] { return deliveries_.load(std::memory_order_relaxed); },
                                    options_.schedule == Schedule::kFree ? kLongJump : kFarJump);
}

// After a step that was taken because everyone waits.
void Conductor::watch_for_stall(std::size_t events) {
    const Stall stall =
        stall_watch_.stepped(events, deliveries_.load(std::memory_order_relaxed) - looks_asked_);
    marks_.endless = marks_.endless || stall == Stall::kEndless;
    if (stall != Stall::kNone) {
        warn(to_string(stall));
    }
}

}  // namespace simverbs
