// What is said on stderr only when SIMVERBS_WARN=1 asks for it.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace simverbs::abi {

inline bool warnings_wanted() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody in this library changes the environment
    const char* wanted = std::getenv("SIMVERBS_WARN");
    return wanted != nullptr && std::string_view(wanted) != "0";
}

// Names what is not modelled, the first time.
inline void name_refusal(std::atomic_flag& named, const char* what) {
    if (warnings_wanted() && !named.test_and_set()) {
        std::fprintf(stderr, "simverbs: %s is not modelled: EOPNOTSUPP\n", what);
    }
}

}  // namespace simverbs::abi
