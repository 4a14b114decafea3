// The options of a world, embedded or served, and how the rows of simverbs/model/settings.hpp
// become that.
#pragma once

#include <string>
#include <string_view>

#include "simverbs/model/settings.hpp"
#include "simverbs/time/time_options.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {

struct WorldOptions {
    SimulationOptions simulation;
    TimeOptions time;
    std::string trace_file;       // JSON Lines; empty: none
    std::string capture_file;     // pcapng; empty: none
    std::string coverage_folder;  // for a file of what was reached; empty: none
};

// Says why `value` is none of the setting's, as in "'x' is not a number from 0 to 65535"; "" where
// it is one.
std::string describe_wrong_value(const SettingRow& row, std::string_view value);

// Gives a setting a value. Where describe_wrong_value() objects it returns that and changes
// nothing. Settings that are no part of WorldOptions are an assertion.
std::string set(WorldOptions& options, Setting setting, std::string_view value);

}  // namespace simverbs
