// Which buffer a message with a tag has found.
#pragma once

#include <span>
#include <string>

#include "scenarios/engine/observation.hpp"

namespace scenarios {

// A line about the message of a tagged receive; "": the records have none.
std::string describe_tag(std::span<const Record> records, const Record& completion);

}  // namespace scenarios
