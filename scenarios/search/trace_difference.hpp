// Where two runs part: the first record of two traces, of those that the run digest covers, that is
// not the same in both.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fabric/core/outcome.hpp"

namespace scenarios {

struct TraceDifference {
    std::size_t record = 0;      // of those that count, from 1
    std::string one{}, other{};  // "1.5us h0 call verb verb=post_send ...", or that it has ended
    std::size_t line_of_one = 0, line_of_other = 0;  // in its file; 0: it has ended
    std::vector<std::string> before{};               // the last that are common
};

// Nothing: they are the same. Fails where one cannot be read.
fabric::Outcome<std::optional<TraceDifference>> first_difference(const std::string& one,
                                                                 const std::string& other);

}  // namespace scenarios
