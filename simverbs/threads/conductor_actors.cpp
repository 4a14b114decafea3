// The actors of a world: who they are, in which order they act, and when the order of what several
// of them did is not known.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "simverbs/threads/conductor.hpp"

namespace simverbs {
namespace {

// Named actors by name, then those whose creation was seen in its order, then the others as they
// came.
bool comes_before(const std::shared_ptr<Actor>& a, const std::shared_ptr<Actor>& b) {
    if (a->name.empty() != b->name.empty()) {
        return !a->name.empty();
    }
    if (a->name != b->name) {
        return a->name < b->name;
    }
    if (a->thread->is_announced != b->thread->is_announced) {
        return a->thread->is_announced;
    }
    return a->thread->path != b->thread->path ? a->thread->path < b->thread->path
                                              : a->rank < b->rank;
}

}  // namespace

constinit thread_local KnownActor t_known_actor;

Actor& Conductor::find_current() {
    const std::shared_ptr<ThreadEntry> entry = ThreadRoster::instance().current();
    const Inside inside(*entry);
    const std::lock_guard lock(mutex_);
    remove_ended();
    const auto found = std::find_if(actors_.begin(), actors_.end(),
                                    [&](const auto& actor) { return actor->thread == entry; });
    Actor& actor = found == actors_.end() ? add_actor(entry) : **found;
    if (found == actors_.end() && simulation_.loop().events_run() != events_before_actors_) {
        marks_.set(Mark::kCameLate, actor.describe());
    }
    // Threads that wait for each other in verbs cannot always lead.
    if (!std::exchange(actor.has_called, true) && ++callers_ == 2) {
        start_helper_after(kFirstPause);
    }
    t_clock_watch = {};
    t_known_actor = {&actor, id_};
    return actor;
}

// By the creator of the thread, before it begins.
void Conductor::thread_announced(const std::shared_ptr<ThreadEntry>& entry) {
    const std::lock_guard lock(mutex_);
    for (const auto& actor : actors_) {
        if (actor->thread->number == entry->creator) {
            actor->watch.may_have_acted();  // whoever creates threads does not spin on a lock
        }
    }
    add_actor(entry);
}

// It may have called nothing since a signal woke it.
void Conductor::thread_left(const ThreadEntry& entry) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(actors_.begin(), actors_.end(), [&entry](const auto& actor) {
        return actor->thread.get() == &entry;
    });
    if (found != actors_.end()) {
        note_visit(**found);
        someone_leaves_ = true;
    }
}

Actor& Conductor::add_actor(const std::shared_ptr<ThreadEntry>& entry) {
    auto actor = std::make_shared<Actor>(entry);
    Actor& added = *actor;
    added.rank = next_rank_++;
    if (turn_order_) {
        turn_order_->take(added);
    }
    by_rank_.push_back(&added);
    actors_.insert(std::upper_bound(actors_.begin(), actors_.end(), actor, comes_before),
                   std::move(actor));
    holding_.take(added);
    someone_leaves_ = someone_leaves_ || added.leaves();
    number_actors();
    count_actors();
    return added;
}

void Conductor::number_actors() {
    std::uint32_t order = 0;
    for (const auto& actor : actors_) {
        actor->order = order++;
    }
}

void Conductor::count_actors() {
    has_others_.store(actors_.size() > 1, std::memory_order_relaxed);
    several_actors_.store(actors_.size() > 1 && options_.schedule != Schedule::kFree,
                          std::memory_order_relaxed);
}

bool Conductor::name_current(std::string_view name) {
    Actor& self = current();
    const Visit visit(self);
    const std::lock_guard lock(mutex_);
    remove_ended();
    for (const auto& actor : actors_) {
        if (actor.get() != &self && actor->name == name && !actor->leaves()) {
            return false;
        }
    }
    self.name = name;
    std::sort(actors_.begin(), actors_.end(), comes_before);
    number_actors();
    return true;
}

void Conductor::expect_actors(std::uint32_t count) {
    Actor& self = current();
    const Visit visit(self);
    const std::lock_guard lock(mutex_);
    expected_callers_ = count;
}

void Conductor::note_use(ObjectUse& object, Use use, std::string_view kind, std::uint32_t number) {
    Actor& self = current();
    const std::uint64_t other =
        object.note(use, turn_.load(std::memory_order_relaxed), *self.thread);
    if (other == 0) [[likely]] {
        return;
    }
    const Inside inside(*self.thread);
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(actors_.begin(), actors_.end(), [other](const auto& actor) {
        return actor->thread->number == other;
    });
    marks_.set(Mark::kSharedObject,
               fmt::format("{} and {} used {} {}",
                           found == actors_.end() ? "a thread" : (*found)->describe(),
                           self.describe(), kind, number));
}

void Conductor::mark_act(const Actor& self, bool by_clock) {
    const Inside inside(*self.thread);
    const std::lock_guard lock(mutex_);
    if (self.went_early.load(std::memory_order_relaxed)) {
        marks_.set(Mark::kWentOnEarly, self.describe());
    }
    if (by_clock) {
        marks_.set(Mark::kReadClock, self.describe());
    }
}

// The calling thread has slept for a time. Time moves meanwhile if anybody finds it asleep, which
// on a busy machine happens or not.
void Conductor::note_sleep(const Actor& self) {
    const Inside inside(*self.thread);
    const std::lock_guard lock(mutex_);
    if (!simulation_.loop().empty() || posted_.load(std::memory_order_relaxed) != nullptr) {
        marks_.set(Mark::kSleptForTime, self.describe());
    }
}

void Conductor::note_visit(Actor& actor) {
    actor.watch.was_in_library();
    note_signal(actor);
}

void Conductor::note_signal(const Actor& actor) {
    if (actor.watch.was_woken_by_signal() && !marks_.has(Mark::kWokenBySignal)) {
        marks_.set(Mark::kWokenBySignal, actor.describe());
    }
}

bool Conductor::all_others_leave(const Actor& self) const {
    return std::all_of(actors_.begin(), actors_.end(), [&self](const auto& actor) {
        return actor.get() == &self || actor->leaves();
    });
}

// Requests that one has posted are drained in its turn first. One that leaves is there until the
// kernel has ended it, and with that has woken who joins it.
void Conductor::remove_ended() {
    if (!someone_leaves_) {
        return;
    }
    someone_leaves_ = false;
    const auto removed = std::erase_if(actors_, [this](const std::shared_ptr<Actor>& actor) {
        if (!actor->leaves()) {
            return false;
        }
        if (!has_ended(*actor)) {
            someone_leaves_ = true;
            return false;
        }
        ActorList::remove(*actor);
        by_rank_[actor->rank] = nullptr;
        forget_leader(*actor);
        return true;
    });
    if (removed > 0) {
        count_actors();
    }
}

bool Conductor::has_ended(Actor& actor) {
    return !has_queued(actor) &&
           (actor.gone || !watch_of(actor) ||
            actor.watch.look(std::chrono::nanoseconds::zero()) == ThreadState::kEnded);
}

// False: its thread has not begun yet.
bool Conductor::watch_of(Actor& actor) {
    if (!actor.is_watched) {
        const pid_t thread = actor.thread->id.load(std::memory_order_acquire);
        if (thread == 0) {
            return false;
        }
        actor.watch = ThreadWatch(getpid(), thread);
        actor.is_watched = true;
    }
    return true;
}

}  // namespace simverbs
