// Finds settings of the environment that have no valid form, and those that a program could not use
// although they have one, such as a topology file that is missing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simverbs/model/settings.hpp"

#include "scenarios/engine/scenario.hpp"

namespace simverbs::cli {

struct SettingMistake {
    Setting setting;
    std::string what;  // "'x' is not a number": begins with the value
};

struct SettingsTrial {
    std::vector<SettingMistake> mistakes;
    // The one of SIMVERBS_SCENARIO, where it could be read. A program may choose the fabric of one
    // without `fabric:`.
    std::optional<scenarios::Scenario> scenario{};
};

// Values are tried once all of them have a valid form. Makes no file, and starts nothing.
SettingsTrial try_settings();

}  // namespace simverbs::cli
