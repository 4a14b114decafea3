// To be loaded before libsimverbs.so.0: packets that faults delay are late by something else in
// every process. It comes from a random stream that is seeded from an address, as a mistake of this
// kind would.
#include <cstdint>
#include <memory>

#include <dlfcn.h>

#include "fabric/core/random.hpp"

#include "simverbs/simverbs.h"

namespace {

fabric::RandomStream& stream() {
    static const auto kSomewhere = std::make_unique<int>(0);
    static fabric::RandomStream random(reinterpret_cast<std::uintptr_t>(kSomewhere.get()),
                                       "planted", "how late");
    return random;
}

template <class Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Up to a microsecond.
std::int64_t any_delay() {
    constexpr std::uint64_t kMost = 1'000'000;
    return static_cast<std::int64_t>(1 + stream().below(kMost));
}

}  // namespace

#define PLANTED extern "C" __attribute__((visibility("default")))

PLANTED int simverbs_inject(const simverbs_fault* fault, std::uint32_t* id) {
    simverbs_fault other = *fault;
    if (other.action == SIMVERBS_FAULT_DELAY) {
        other.with.duration_ps = any_delay();
    }
    return next<decltype(simverbs_inject)>("simverbs_inject")(&other, id);
}

// Instead of a lost packet a late one, the next: nothing behind it shows that it is.
PLANTED int simverbs_drop_nth(const char* link, const char* from_node, std::uint64_t nth,
                              std::uint32_t* id) {
    simverbs_fault late;
    simverbs_fault_init(&late);
    late.action = SIMVERBS_FAULT_DELAY;
    late.match.link = link;
    late.match.transmitter = from_node;
    late.nth = nth + 1;
    return simverbs_inject(&late, id);
}
