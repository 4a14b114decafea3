// The mistakes that are found whatever the rubric asks: how a program ended when it did not end
// well, a state of a queue pair that was skipped, a completion queue that was polled once, a
// program that only prints. Says nothing of a program that came to its end without these.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutorials/lab/judge.hpp"

namespace simverbs::lab {

struct Diagnosis {
    std::string_view name;  // one of kDiagnosisNames
    std::string text;
};

// "It crashed: ...", "It did not end ...", "It ended early ..."; nothing when it ended well.
// `limit`: the time that it had.
std::optional<std::string> ending_text(const Performance& performance,
                                       std::chrono::milliseconds limit);

// The most urgent first. The text of a crash or a time-out is that of its ending. That no device
// was opened is left to the rubric where one of its rules asks for just that.
std::vector<Diagnosis> diagnose(const Rubric& rubric, const Performance& performance,
                                std::chrono::milliseconds limit);

}  // namespace simverbs::lab
