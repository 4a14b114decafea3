#include "simverbs/world/run_marks.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace simverbs {
namespace {

// A sentence a mark; {} stands for who was named.
constexpr std::array<std::string_view, static_cast<std::size_t>(Mark::kCount)> kSentences{
    "two unnamed threads acted in one step",
    "{} spun on memory",
    "{} came when time had moved",
    "{} in one step",
    "{} slept for a time",
    "{} read the clock while it waited",
    "{} acted while another thread used its processor for long",
    "{} was woken by a signal",
    "schedule free",
    "an operator changed the fabric",
    "{} was hung up on",
};

}  // namespace

void RunMarks::set(Mark mark, std::string_view who) {
    const auto index = static_cast<std::size_t>(mark);
    if (!set_[index]) {
        set_[index] = true;
        who_[index] = who;
    }
}

bool RunMarks::deterministic() const {
    return std::none_of(set_.begin(), set_.end(), [](bool set) { return set; });
}

std::string RunMarks::describe() const {
    std::string why;
    for (std::size_t i = 0; i < kMarks; ++i) {
        if (set_[i]) {
            why += why.empty() ? " (" : ", ";
            why += fmt::format(fmt::runtime(kSentences[i]), who_[i]);
        }
    }
    why += why.empty() ? "" : ")";
    return fmt::format("{}deterministic{}{}", deterministic() ? "" : "not ", why,
                       endless ? ", a million events without a call" : "");
}

}  // namespace simverbs
