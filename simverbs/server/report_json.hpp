// Reports of a served world as JSON: members in the order in which they are given.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace simverbs {

using Json = nlohmann::ordered_json;

// One line. Bytes of names that are not UTF-8 become U+FFFD.
inline std::string text_of(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace simverbs
