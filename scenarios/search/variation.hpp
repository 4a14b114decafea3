// Programs started anew, each time with something of the machine otherwise: where memory lies, how
// many processors there are, what unused memory holds. None of it may change a run.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace scenarios {

struct Variation {
    std::string_view name;
    bool fixed_addresses = false;  // no random layout of the address space
    bool one_processor = false;    // the first of those that are allowed
    bool other_memory = false;     // filled, without caches, behind a longer environment
};

const std::vector<Variation>& variations();

using Environment = std::vector<std::pair<std::string, std::string>>;  // what is added to it

// How a program ended.
struct Ended {
    int status = 0;        // as waitpid() has it
    std::string output;    // of both streams
    std::string error;     // it could not be run
    bool is_late = false;  // it was killed at the limit

    [[nodiscard]] bool well() const { return error.empty() && status == 0; }
    // There is no such program, or it cannot be run.
    [[nodiscard]] bool was_not_found() const;
    [[nodiscard]] std::string in_words() const;
};

inline constexpr std::chrono::milliseconds kNoTimeLimit = std::chrono::milliseconds::max();

// Runs `command` to its end, as execvp() finds it. `command` is not empty. Its output goes to
// `output_file`, which is made. At the limit of wall time it gets SIGUSR2, by which a program with
// a world says what its queue pairs wait for, and is killed soon after.
Ended run_program(const std::vector<std::string>& command, const Variation& variation,
                  const Environment& environment, const std::string& output_file,
                  std::chrono::milliseconds limit = kNoTimeLimit);

}  // namespace scenarios
