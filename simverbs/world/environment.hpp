// The settings of simverbs/model/settings.hpp as the environment of this process has them. An empty
// variable counts as not set.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "simverbs/model/settings.hpp"

namespace simverbs {

// The value of the setting's variable; empty: not set. Valid until the environment changes.
inline std::string_view environment_value(Setting setting) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody in this library changes the environment
    const char* const value = std::getenv(row_of(setting).variable.data());
    return value == nullptr ? std::string_view() : value;
}

// Sentences about variables whose names begin with SIMVERBS_ and which are no setting, each with
// the nearest setting. Names that begin with SIMVERBS_TEST_ are free for programs; variables that
// build simverbs itself (SIMVERBS_CMAKE_OPTIONS, SIMVERBS_FUZZ_SECONDS) are passed over.
std::vector<std::string> describe_unknown_variables();

}  // namespace simverbs
