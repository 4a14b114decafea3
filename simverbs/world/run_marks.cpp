#include "simverbs/world/run_marks.hpp"

#include <string_view>

#include <fmt/format.h>

namespace simverbs {

std::string RunMarks::describe() const {
    std::string why;
    const auto mark = [&why](bool set, std::string_view text) {
        if (set) {
            why += why.empty() ? " (" : ", ";
            why += text;
        }
    };
    mark(unnamed_actors_raced, "two unnamed threads acted in one step");
    mark(!spun_on_memory.empty(), fmt::format("{} spun on memory", spun_on_memory));
    mark(scheduled_free, "schedule free");
    mark(changed_by_operator, "an operator changed the fabric");
    why += why.empty() ? "" : ")";
    return fmt::format("{}deterministic{}, {} jumps past sleepers{}", deterministic() ? "" : "not ",
                       why, jumps_past_sleepers,
                       endless ? ", a million events without a call" : "");
}

}  // namespace simverbs
