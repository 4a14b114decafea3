#include "simverbs/threads/processors.hpp"

namespace simverbs {

Processors::Processors() {
    if (sched_getaffinity(0, sizeof all_, &all_) == 0) {
        count_ = static_cast<unsigned>(CPU_COUNT(&all_));
    }
}

bool Processors::are_all_allowed(pid_t thread) const {
    cpu_set_t allowed;
    return sched_getaffinity(thread, sizeof allowed, &allowed) == 0 && CPU_EQUAL(&allowed, &all_);
}

bool Processors::confine_to_this_one(pid_t thread) const {
    const int here = sched_getcpu();
    if (here < 0 || !CPU_ISSET(static_cast<unsigned>(here), &all_) || !are_all_allowed(thread)) {
        return false;
    }
    cpu_set_t this_one;
    CPU_ZERO(&this_one);
    CPU_SET(static_cast<unsigned>(here), &this_one);
    return sched_setaffinity(thread, sizeof this_one, &this_one) == 0;
}

void Processors::allow_all(pid_t thread) const {
    sched_setaffinity(thread, sizeof all_, &all_);
}

}  // namespace simverbs
