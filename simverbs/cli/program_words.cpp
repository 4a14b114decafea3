#include "simverbs/cli/program_words.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "simverbs/cli/world_options.hpp"
#include "simverbs/model/settings.hpp"

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

bool takes_value(std::string_view option) {
    const auto* const row = std::ranges::find_if(
        kSettings, [option](const SettingRow& each) { return option_of(each) == option; });
    return row != kSettings.end() && row->kind != SettingKind::kSwitch;
}

// The index of the first word of the program of `exec [OPTIONS] [--] PROGRAM...`.
int behind_settings(int argc, char** argv) {
    for (int i = 2; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == kSeparator) {
            return i + 1;
        }
        if (!word.starts_with('-')) {
            return i;
        }
        i += takes_value(word) ? 1 : 0;
    }
    return argc;
}

struct Rule {
    std::string_view command;
    int (*first_word_of_program)(int argc, char** argv);
};
constexpr auto kRules = std::to_array<Rule>({
    {"on", behind_host},
    {"exec", behind_settings},
    {"check", behind_separator},
    {"explore", behind_separator},
    {"doctor", behind_separator},
    {"complete", behind_separator},
});

}  // namespace

std::vector<std::string> take_program(int& argc, char** argv) {
    const std::string_view command = argc > 1 ? argv[1] : "";
    const auto* const rule = std::ranges::find(kRules, command, &Rule::command);
    if (rule == kRules.end()) {
        return {};
    }
    const int first = rule->first_word_of_program(argc, argv);
    std::vector<std::string> program(argv + first, argv + argc);
    argc = argv[first - 1] == kSeparator ? first - 1 : first;
    return program;
}

}  // namespace simverbs::cli
