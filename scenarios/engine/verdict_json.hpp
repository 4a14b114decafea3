// A verdict as JSON, and back: what processes tell each other and what tools read.
#pragma once

#include <nlohmann/json.hpp>

#include "scenarios/engine/run.hpp"

namespace scenarios {

nlohmann::ordered_json to_json(const Verdict& verdict);
// Of what to_json() has made.
Verdict from_json(const nlohmann::json& json);

}  // namespace scenarios
