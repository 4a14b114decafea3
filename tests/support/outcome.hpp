// Reads a fabric::Outcome for a test.
#pragma once

#include <string>

#include "fabric/core/outcome.hpp"

namespace fabric {

// The reason of a failure; "no failure" where there is a value.
template <class Value>
std::string error_of(const Outcome<Value>& outcome) {
    return outcome ? "no failure" : outcome.error();
}

}  // namespace fabric
