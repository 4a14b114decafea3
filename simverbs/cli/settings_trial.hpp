// Finds settings of the environment that have no valid form, and those that a program could not use
// although they have one, such as a topology file that is missing.
#pragma once

#include <string>
#include <vector>

#include "simverbs/model/settings.hpp"

namespace simverbs::cli {

struct SettingMistake {
    Setting setting;
    std::string what;  // "'x' is not a number": begins with the value
};

// Values are tried once all of them have a valid form. Makes no file, and starts nothing.
std::vector<SettingMistake> find_mistakes_in_settings();

}  // namespace simverbs::cli
