// A thread that takes part in the world, as the conductor sees it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "simverbs/world/attachment.hpp"
#include "simverbs/world/spin_lock.hpp"

namespace simverbs {

enum class ActorState : std::uint8_t {
    kRunning,  // its own code
    kPolling,  // in an empty poll: goes on after one step
    kBlocked,  // in a blocking verb: goes on when something was delivered
    kCommand,  // asks for a command: goes on when all before it in order have run
};

// What the kernel says of a thread that is not in the library (DESIGN section 4).
enum class Whereabouts : std::uint8_t {
    kOnCpu,
    kAsleep,         // without a time limit: does not hold time
    kAsleepForTime,  // with one: time walks
    kStopped,        // by a debugger or a signal: time stands
    kEnded,
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
    std::string name;        // empty: unnamed
    std::uint32_t rank = 0;  // order among the actors of the world
    pid_t thread = 0;
    ActorState state = ActorState::kRunning;
    PendingCommand* command = nullptr;
    std::atomic<std::uint64_t> released{0};  // how often it was let go on
    std::atomic<bool> ended{false};          // its thread is gone

    // What it has posted since the last step; a spin lock, since others drain it at a step.
    SpinLock lock;
    std::vector<QueuedDoorbell> doorbells;

    // Watching it while it runs its own code; see Conductor::may_go_on_without.
    bool watched = false;             // since it was last let go on
    bool asleep_before = false;       // the last look found it asleep
    std::uint64_t switches = 0;       // context switches at the last look
    std::int64_t looked_at_ns = 0;    // wall clock
    std::int64_t cpu_ns = 0;          // it had used when it was first looked at
    std::int64_t wakes_until_ns = 0;  // an event was delivered: the kernel is about to wake it
};

}  // namespace simverbs
