// The serial schedule: threads continue one at a time, in the order of actors or in that of a
// TurnOrder.
#include <algorithm>
#include <utility>

#include <unistd.h>

#include "simverbs/threads/conductor.hpp"

namespace simverbs {
namespace {

using namespace fabric::literals;

// How long the fabric may hold up a thread whose turn it is: a machine gives it no processor for so
// long, say. Peers with short time limits bear that.
constexpr fabric::SimDuration kLongestHoldUp = 100_us;

std::atomic<Conductor*> g_of_turns{nullptr};
std::atomic<pid_t> g_process_of_turns{0};  // a child that was forked takes none

}  // namespace

void Conductor::take_turn() {
    Actor& self = current();
    const Visit visit(self);
    Lock lock(mutex_);
    remove_ended();
    if (alone(self)) {
        return;
    }
    note_due(self);
    rendezvous(lock, self, ActorState::kTurn, turning_);
}

Conductor* Conductor::of_turns() {
    Conductor* const conductor = g_of_turns.load(std::memory_order_acquire);
    return conductor == nullptr || g_process_of_turns != getpid() ? nullptr : conductor;
}

void Conductor::begin_turns(std::uint64_t order) {
    options_.schedule = Schedule::kSerial;
    turn_order_.emplace(order);
    g_process_of_turns = getpid();
    g_of_turns.store(this, std::memory_order_release);
}

void Conductor::end_turns() {
    Conductor* self = this;
    g_of_turns.compare_exchange_strong(self, nullptr);
}

void Conductor::note_unlock() {
    const Inside inside(*ThreadRoster::instance().current());
    const Lock lock(mutex_);
    ++unlocks_;
    for (std::size_t i = locked_.size(); i-- > 0;) {
        Actor& actor = locked_[i];
        note_due(actor);
        turning_.take(actor);
    }
}

bool Conductor::await_unlock(std::uint64_t seen) {
    Actor& self = current();
    const Visit visit(self);
    Lock lock(mutex_);
    remove_ended();
    if (alone(self)) {
        return false;
    }
    if (unlocks_ != seen) {
        note_due(self);
    }
    rendezvous(lock, self, ActorState::kTurn, unlocks_ != seen ? turning_ : locked_);
    return true;
}

void Conductor::note_due(Actor& actor) {
    if (!std::exchange(actor.due, true)) {
        actor.due_since = simulation_.loop().now();
    }
}

void Conductor::release_or_note(Actor& actor) {
    if (options_.schedule == Schedule::kSerial) {
        note_due(actor);
    } else {
        release(actor);
    }
}

// Lets one thread go on of those that are due, if there is any.
bool Conductor::let_next_go() {
    if (turn_order_) {
        return let_chosen_go();
    }
    for (const auto& actor : actors_) {
        if (actor->due) {
            release(*actor);
            return true;
        }
    }
    return false;
}

// Chooses among the threads that wait for a turn and the fabric. What the last one has posted comes
// before what the next one does. False: there is nobody, or the fabric goes first.
bool Conductor::let_chosen_go() {
    drain_all();
    candidates_.clear();
    fabric::SimTime first = fabric::SimTime::max();
    for (const auto& actor : actors_) {
        if (actor->due || actor->command != nullptr) {
            candidates_.push_back(actor.get());
            first = std::min(first, actor->due_since);
        }
    }
    if (candidates_.empty()) {
        return false;
    }
    const auto next = simulation_.loop().next_time();
    const bool fabric_may_act =
        next && *next - first <= kLongestHoldUp && all_have_come() && sleeps_for_time_ == nullptr;
    Actor* const chosen = turn_order_->choose(candidates_, fabric_may_act);
    if (chosen == nullptr) {
        fabric_goes_first_ = true;
        return false;
    }
    if (chosen->command != nullptr) {
        stall_watch_.called();
        std::exchange(chosen->command, nullptr)->run();
    }
    release(*chosen);
    release_waiting();
    return true;
}

}  // namespace simverbs
