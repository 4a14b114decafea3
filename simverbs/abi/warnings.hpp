// Warnings on stderr, which only SIMVERBS_WARN=1 asks for.
#pragma once

#include <atomic>
#include <cstdio>
#include <string_view>

#include "simverbs/world/environment.hpp"

namespace simverbs::abi {

inline bool warnings_wanted() {
    const std::string_view wanted = environment_value(Setting::kWarn);
    return !wanted.empty() && is_on(wanted);
}

// Names what is not modelled, the first time.
inline void name_refusal(std::atomic_flag& named, const char* what) {
    if (warnings_wanted() && !named.test_and_set()) {
        std::fprintf(stderr, "simverbs: %s is not modelled: EOPNOTSUPP\n", what);
    }
}

}  // namespace simverbs::abi
