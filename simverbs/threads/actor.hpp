// A thread that takes part in the world, as the conductor sees it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simverbs/threads/clock_watch.hpp"
#include "simverbs/threads/spin_lock.hpp"
#include "simverbs/threads/thread_roster.hpp"
#include "simverbs/threads/thread_watch.hpp"
#include "simverbs/world/attachment.hpp"

namespace simverbs {

enum class ActorState : std::uint8_t {
    kRunning,  // its own code
    kPolling,  // in an empty poll: goes on after one step
    kBlocked,  // in a blocking verb: goes on when its descriptor is readable
    kCommand,  // asks for a command: goes on when all before it in order have run
};

// A command that waits for its turn.
class PendingCommand {
  public:
    virtual void run() = 0;

  protected:
    ~PendingCommand() = default;
};

struct QueuedDoorbell {
    Attachment* attachment = nullptr;
    Doorbell doorbell;
};

struct Actor {
    explicit Actor(std::shared_ptr<ThreadEntry> entry) : thread(std::move(entry)) {}

    const std::shared_ptr<ThreadEntry> thread;
    std::string name;         // empty: unnamed
    std::uint32_t rank = 0;   // order among the actors of the world
    bool has_called = false;  // a verb, or a control call
    std::atomic<ActorState> state{ActorState::kRunning};
    std::uint64_t seen = 0;  // free: deliveries before its last empty poll
    bool due = false;        // serial: it may go on, and has not been let yet
    PendingCommand* command = nullptr;
    int awaited = -1;                        // blocked: the descriptor whose message lets it go on
    bool in_kernel = false;                  // blocked, and leads nobody
    std::atomic<std::uint64_t> released{0};  // how often it was let go on
    bool gone = false;                       // the kernel has ended its thread
    bool named_as_spinner = false;           // to the user

    // Doorbells that it has rung since the last step; a spin lock, since others drain it at a step.
    SpinLock lock;
    std::vector<QueuedDoorbell> doorbells;
    std::vector<QueuedDoorbell> draining;  // with the world held: what the step is about to take

    ThreadWatch watch;        // while it runs its own code
    bool is_watched = false;  // `watch` knows the thread, which has begun

    [[nodiscard]] bool leaves() const { return thread->leaves.load(std::memory_order_acquire); }
    // For messages: its name, or that of its thread.
    [[nodiscard]] std::string describe() const { return name.empty() ? thread->describe() : name; }
};

// Marks an actor as being in the conductor, while it lives.
class Visit {
  public:
    explicit Visit(Actor& actor) : inside_(*actor.thread) { t_clock_watch.is_inside = true; }
    ~Visit() { t_clock_watch.is_inside = false; }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

  private:
    Inside inside_;
};

}  // namespace simverbs
