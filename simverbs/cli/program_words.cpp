#include "simverbs/cli/program_words.hpp"

#include <string_view>

namespace simverbs::cli {
namespace {

constexpr std::string_view kSeparator = "--";

// The index of the first word behind `--`; argc where there is no `--`.
int behind_separator(int argc, char** argv) {
    for (int i = 2; i < argc; ++i) {
        if (argv[i] == kSeparator) {
            return i + 1;
        }
    }
    return argc;
}

// The index of the first word of the program of `on [--world WORLD] HOST [--] PROGRAM...`.
int behind_host(int argc, char** argv) {
    bool has_host = false;
    for (int i = 2; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == kSeparator && has_host) {
            return i + 1;
        }
        if (word == "--world") {
            ++i;
        } else if (!word.starts_with('-')) {
            if (has_host) {
                return i;
            }
            has_host = true;
        }
    }
    return argc;
}

}  // namespace

std::vector<std::string> take_program(int& argc, char** argv) {
    const std::string_view command = argc > 1 ? argv[1] : "";
    if (command != "on" && command != "check") {
        return {};
    }
    const int first = command == "on" ? behind_host(argc, argv) : behind_separator(argc, argv);
    std::vector<std::string> program(argv + first, argv + argc);
    argc = argv[first - 1] == kSeparator ? first - 1 : first;
    return program;
}

}  // namespace simverbs::cli
