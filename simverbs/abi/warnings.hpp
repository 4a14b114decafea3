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

// For simverbs_last_error(): `what` is not modelled. On stderr it is named the first time. Leaves
// EOPNOTSUPP in errno.
void name_refusal(std::atomic_flag& named, const char* what);

}  // namespace simverbs::abi
