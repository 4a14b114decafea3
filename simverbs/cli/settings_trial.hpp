// Tries the settings of the environment as a program would use them: what has a valid form and yet
// cannot work, such as a topology file that is missing.
#pragma once

#include <string>
#include <vector>

namespace simverbs::cli {

// A sentence about each variable that cannot work. Makes no file, and starts nothing.
std::vector<std::string> try_settings();

}  // namespace simverbs::cli
