#include "fabric/core/actor.hpp"

#include <utility>

namespace fabric {

namespace {
thread_local ActorHook* actor_of_this_thread = nullptr;
}

ActorHook* current_actor() {
    return actor_of_this_thread;
}

ActorHook* set_current_actor(ActorHook* actor) {
    return std::exchange(actor_of_this_thread, actor);
}

}  // namespace fabric
