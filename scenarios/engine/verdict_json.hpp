// A verdict as JSON, and back: what processes tell each other and what tools read.
#pragma once

#include <nlohmann/json.hpp>

#include "scenarios/engine/run.hpp"

namespace scenarios {

nlohmann::ordered_json to_json(const Verdict& verdict);
// Reads what to_json() has made.
Verdict from_json(const nlohmann::json& json);

// Names of files may be any bytes: what is no UTF-8 is replaced.
template <class Json>
std::string to_line(const Json& json, int indent = -1) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace scenarios
