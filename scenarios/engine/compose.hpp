// Documents made of several: one over another, settings from the command line, and back to text.
#pragma once

#include <string>
#include <string_view>

#include "fabric/core/outcome.hpp"
#include "fabric/yaml/value.hpp"

namespace scenarios {

// Mappings key by key, anything else is replaced.
void merge(fabric::yaml::Value& into, fabric::yaml::Value over);

// A scalar, for keys.
fabric::yaml::Value key_named(std::string_view name);

// "faults.0.when.nth=5": what stands there becomes this; keys that are missing are made.
fabric::Outcome<void> set(fabric::yaml::Value& root, std::string_view setting);

// `defaults.connection` for every connection that does not say otherwise.
void apply_defaults(fabric::yaml::Value& root);

// Reads back as the same document.
std::string to_text(const fabric::yaml::Value& value);

}  // namespace scenarios
