#include "simverbs/cli/exit_status.hpp"

#include <array>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

namespace simverbs::cli {
namespace {

struct Row {
    int status;
    std::string_view meaning;
};

constexpr auto kRows = std::to_array<Row>({
    {kPassed, "what was asked for was done; what was tested passed"},
    {kFailed, "what was tested failed, or the system refused something"},
    {kUsage, "wrong usage or input, no such file, host or world: nothing was run"},
    {kTimedOut, "the time limit of run has passed"},
    {kNotExecuted, "the program is there and cannot be executed"},
    {kNotFound, "there is no such program to run"},
    {kSignalled + SIGINT, "interrupted by Ctrl-C (143: by SIGTERM)"},
});

}  // namespace

std::string describe_exit_statuses() {
    std::string text = "Exit status (run, on, exec: else that of the first program that failed):";
    for (const Row& row : kRows) {
        text += fmt::format("\n  {:<4} {}", row.status, row.meaning);
    }
    return text;
}

int complain(std::string_view what, int status) {
    fmt::print(stderr, "simverbs: {}\n", what);
    return status;
}

}  // namespace simverbs::cli
