// The result of a function that may fail for a reason that a person is to read.
#pragma once

#include <string>

#include <tl/expected.hpp>

namespace fabric {

// A value, or in words why there is none. std::expected of C++23, from a library.
template <class Value>
using Outcome = tl::expected<Value, std::string>;

// return Failure("why");
using Failure = tl::unexpected<std::string>;

}  // namespace fabric
