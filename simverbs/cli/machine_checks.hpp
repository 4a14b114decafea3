// Finds what of this machine and this environment keeps simverbs from working, or makes it work
// otherwise than expected. Looks and tries; changes nothing, and leaves no file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace simverbs::cli {

enum class Weight : std::uint8_t {
    kFine,
    kNote,     // works, with the consequence that is told
    kProblem,  // keeps programs or commands from working
};

struct Finding {
    std::string_view subject;
    Weight weight = Weight::kFine;
    std::string found;
    std::string consequence{};  // "" where it is fine
    std::string advice{};       // what to do; "" where there is nothing
};

// All of them, the gravest kind of each subject. `program`: its words, where one is asked about.
std::vector<Finding> check_machine(const std::vector<std::string>& program);

}  // namespace simverbs::cli
