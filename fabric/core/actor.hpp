// The hook between code that waits and whatever runs it: an actor is a thread or a fiber of a
// simulated host. Blocking code asks for the current actor and waits through it; this layer does
// not know which kind it is, and refuses to schedule anything itself.
#pragma once

#include <cstdint>

#include "fabric/core/strong_id.hpp"

namespace fabric {

// The hash of the actor's name (hash_name): equal in every run, unlike a thread's id.
using ActorId = StrongId<struct ActorIdTag, std::uint64_t>;

class ActorHook {
  public:
    [[nodiscard]] virtual ActorId id() const = 0;

    // Returns after at least one step of virtual time has run, or when nothing is left to run.
    virtual void wait() = 0;

  protected:
    ~ActorHook() = default;
};

// The actor that runs on the calling thread at this moment; nullptr if it is none.
[[nodiscard]] ActorHook* current_actor();

// Set by the scheduler of fibers at each switch, and by a thread once. Returns the previous one.
ActorHook* set_current_actor(ActorHook* actor);

}  // namespace fabric
