// Where a thread is when it is not in the library, asked of /proc.
#pragma once

#include <sys/types.h>

#include "simverbs/world/actor.hpp"

namespace simverbs {

struct ThreadLook {
    Whereabouts where = Whereabouts::kOnCpu;
    std::uint64_t switches = 0;  // context switches so far, both kinds
    std::int64_t cpu_ns = 0;     // time on a processor so far
};

// `process` may be another process's. A thread whose /proc entries cannot be read counts as
// running: then time is held, never jumped by mistake.
ThreadLook look_at_thread(pid_t process, pid_t thread);

}  // namespace simverbs
