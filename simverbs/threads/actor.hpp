// A thread that takes part in the world, as the conductor sees it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/core/sim_time.hpp"

#include "simverbs/threads/awaited.hpp"
#include "simverbs/threads/clock_watch.hpp"
#include "simverbs/threads/spin_lock.hpp"
#include "simverbs/threads/thread_roster.hpp"
#include "simverbs/threads/thread_watch.hpp"
#include "simverbs/threads/uncancelled.hpp"
#include "simverbs/threads/wake_word.hpp"
#include "simverbs/world/attachment.hpp"

namespace simverbs {

enum class ActorState : std::uint8_t {
    kRunning,  // its own code
    kPolling,  // in an empty poll: goes on after one step
    kBlocked,  // in a blocking verb: goes on when its descriptor is readable
    kCommand,  // asks for a command: goes on when all before it in order have run
    kTurn,     // is about to post or to poll: goes on when it is its turn
};

// A command that waits for its turn.
class PendingCommand {
  public:
    virtual void run() = 0;
    // Returns true if it changes nothing and only asks for faults. What was posted before then
    // stays in one batch with what is posted next.
    [[nodiscard]] virtual bool is_question() const { return false; }

  protected:
    ~PendingCommand() = default;
};

struct QueuedDoorbell {
    Attachment* attachment = nullptr;
    Doorbell doorbell;
};

class ActorList;

// Says who chooses the processor on which a thread wakes up.
enum class Placement : std::uint8_t {
    kOwn,       // the kernel, of those that the thread may use
    kMovable,   // it sleeps: whoever wakes it may confine it to one
    kMoving,    // that is being done
    kConfined,  // it was, and has not noticed
};

struct Actor {
    explicit Actor(std::shared_ptr<ThreadEntry> entry) : thread(std::move(entry)) {}

    const std::shared_ptr<ThreadEntry> thread;
    std::string name;         // empty: unnamed
    std::uint32_t rank = 0;   // order of arrival among the actors of the world
    std::uint32_t order = 0;  // in which it acts
    bool has_called = false;  // a verb, or a control call
    std::atomic<ActorState> state{ActorState::kRunning};
    std::atomic<std::uint64_t> seen{0};  // free: deliveries before its last empty poll
    bool due = false;                    // serial: it may go on, and has not been let yet
    fabric::SimTime due_since{};         // since when that or its command waits
    std::uint64_t priority = 0;          // with a TurnOrder
    PendingCommand* command = nullptr;
    Awaited* awaited = nullptr;  // blocked: what lets it go on
    WakeWord wake;               // of one that waits: lets it go on
    bool spins = false;          // watches that word on a processor
    std::atomic<Placement> placement{Placement::kOwn};
    int waits_to_sleep = 0;               // without watching it first, since that was in vain
    int vain_spins = 0;                   // in a row
    std::atomic<bool> went_early{false};  // its last poll ended though time stood
    bool has_news = false;                // polling: something came to a queue that it polled last
    std::uint64_t waits_since = 0;        // polling: steps before
    bool gone = false;                    // the kernel has ended its thread
    bool named_as_spinner = false;        // to the user

    // The list of the conductor that it is in, and its place there.
    ActorList* list = nullptr;
    std::size_t place = 0;

    // Doorbells that it has rung since the last step; a spin lock, since others drain it at a step.
    SpinLock lock;
    std::vector<QueuedDoorbell> doorbells;
    std::vector<QueuedDoorbell> draining;  // with the world held: what the step is about to take
    Actor* next_posted = nullptr;          // among the actors that have rung

    std::uint64_t look = 0;               // the last round of looks at threads that saw it
    std::shared_ptr<ThreadEntry> joined;  // the thread that it was seen to join

    ThreadWatch watch;                    // while it runs its own code
    bool is_watched = false;              // `watch` knows the thread, which has begun
    std::uint32_t polls_before_look = 0;  // free: polls_in_vain, by the last look at it

    // Free, written by its thread at each poll, so that others look at the rest for less.
    alignas(64) std::atomic<std::uint32_t> polls_in_vain{0};
    std::uint32_t leader_polls = 0;  // those of the leader, when it asked last
    const void* polled = nullptr;    // the queue that it polled last

    [[nodiscard]] bool leaves() const { return thread->leaves.load(std::memory_order_acquire); }
    // For messages: its name, or that of its thread.
    [[nodiscard]] std::string describe() const { return name.empty() ? thread->describe() : name; }
};

// Actors in no particular order. An actor is in one list at a time.
class ActorList {
  public:
    [[nodiscard]] bool empty() const { return actors_.empty(); }
    [[nodiscard]] std::size_t size() const { return actors_.size(); }
    [[nodiscard]] Actor& operator[](std::size_t place) const { return *actors_[place]; }
    [[nodiscard]] Actor& back() const { return *actors_.back(); }
    [[nodiscard]] auto begin() const { return actors_.begin(); }
    [[nodiscard]] auto end() const { return actors_.end(); }
    // Takes the actor out of the list that it is in. The last of that one gets its place.
    void take(Actor& actor) {
        remove(actor);
        actor.list = this;
        actor.place = actors_.size();
        actors_.push_back(&actor);
    }
    static void remove(Actor& actor) {
        if (actor.list != nullptr) {
            std::vector<Actor*>& actors = actor.list->actors_;
            actors.back()->place = actor.place;
            actors[actor.place] = actors.back();
            actors.pop_back();
            actor.list = nullptr;
        }
    }

  private:
    std::vector<Actor*> actors_;
};

// Marks an actor as being in the conductor, while it lives. Its thread is not cancelled meanwhile,
// if there are others.
class Visit {
  public:
    explicit Visit(Actor& actor, bool has_others = true)
        : uncancelled_(has_others), inside_(*actor.thread) {
        t_clock_watch.is_inside = true;
    }
    ~Visit() { t_clock_watch.is_inside = false; }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    [[nodiscard]] const Uncancelled& uncancelled() const { return uncancelled_; }

  private:
    Uncancelled uncancelled_;
    Inside inside_;
};

}  // namespace simverbs
