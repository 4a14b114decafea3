#include "scenarios/explore/google_test.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "fabric/core/counted.hpp"
#include "fabric/core/temporary_folder.hpp"

#include "scenarios/explore/library_path.hpp"
#include "scenarios/explore/program_output.hpp"
#include "scenarios/search/variation.hpp"

namespace scenarios {

namespace {

constexpr auto kTimeToList = std::chrono::seconds(10);
constexpr std::string_view kList = "--gtest_list_tests";
constexpr std::string_view kFilter = "--gtest_filter=";
constexpr std::string_view kOutput = "--gtest_output";
constexpr std::string_view kDisabledToo = "--gtest_also_run_disabled_tests";

constexpr const char* kVariables[] = {
    "GTEST_ALSO_RUN_DISABLED_TESTS",
    "GTEST_BREAK_ON_FAILURE",
    "GTEST_CATCH_EXCEPTIONS",
    "GTEST_FILTER",
    "GTEST_LIST_TESTS",
    "GTEST_OUTPUT",
    "GTEST_REPEAT",
    "GTEST_SHARD_INDEX",
    "GTEST_SHARD_STATUS_FILE",
    "GTEST_STREAM_RESULT_TO",
    "GTEST_THROW_ON_FAILURE",
    "GTEST_TOTAL_SHARDS",
    "TESTBRIDGE_TEST_ONLY",
    "TEST_PREMATURE_EXIT_FILE",
    "XML_OUTPUT_FILE",
};

bool is_flag(std::string_view word, std::string_view flag) {
    return word.starts_with(flag);
}

// Returns the name at the beginning of a line: up to a space or a comment.
std::string_view name_of(std::string_view line) {
    return line.substr(0, line.find_first_of(" #\r"));
}

bool enables_disabled(const std::vector<std::string>& command) {
    // As GoogleTest reads a flag that is true or false.
    const auto found = std::ranges::find_if(
        command, [](const std::string& word) { return is_flag(word, kDisabledToo); });
    if (found == command.end()) {
        return false;
    }
    const std::string_view value = std::string_view(*found).substr(kDisabledToo.size());
    return value.empty() || (value != "=0" && value != "=f" && value != "=F" && value != "=false");
}

std::string filters_of(const std::vector<std::string>& command) {
    for (const std::string& word : command) {
        if (is_flag(word, kFilter)) {
            return fmt::format("; {} may match none", word);
        }
    }
    return "";
}

// Says why `ended` shows no list of tests; "": it may.
std::string trouble(const Ended& ended) {
    if (ended.is_late) {
        return fmt::format("it did not end within {} s", kTimeToList.count());
    }
    if (ended.well()) {
        return "";
    }
    const std::string last = last_line(ended.output);
    return last.empty() ? ended.in_words() : fmt::format("{}: {}", ended.in_words(), last);
}

}  // namespace

void unset_google_test_variables() {
    for (const char* const variable : kVariables) {
        unsetenv(variable);
    }
}

std::vector<std::string> tests_in(std::string_view list) {
    std::vector<std::string> tests;
    std::string_view suite;
    while (!list.empty()) {
        const std::size_t end = std::min(list.find('\n'), list.size());
        std::string_view line = list.substr(0, end);
        list.remove_prefix(std::min(end + 1, list.size()));
        const bool is_test = line.starts_with("  ");
        line.remove_prefix(is_test ? 2 : 0);
        const std::string_view name = name_of(line);
        // Whatever else the program prints has other words behind the first one.
        const std::string_view rest = line.substr(name.size());
        const std::size_t comment = rest.find_first_not_of(" \r");
        if (name.empty() || (comment != std::string_view::npos && rest[comment] != '#')) {
            continue;
        }
        if (!is_test && name.ends_with('.')) {
            suite = name;
        } else if (is_test && !suite.empty()) {
            tests.push_back(fmt::format("{}{}", suite, name));
        }
    }
    return tests;
}

bool is_disabled(std::string_view test) {
    constexpr std::string_view kPrefix = "DISABLED_";
    const std::size_t dot = test.find('.');
    const std::string_view suite = test.substr(0, dot);
    const std::string_view name = dot == std::string_view::npos ? "" : test.substr(dot + 1);
    return suite.starts_with(kPrefix) || suite.find("/DISABLED_") != std::string_view::npos ||
           name.starts_with(kPrefix);
}

fabric::Outcome<std::vector<std::string>> list_tests(const std::vector<std::string>& command,
                                                     const std::string& libraries) {
    const fabric::TemporaryFolder place("simverbs-explore-");
    std::vector<std::string> words = command;
    std::erase_if(words, [](const std::string& word) { return is_flag(word, kOutput); });
    words.emplace_back(kList);
    const Ended ended = run_program(words, variations().front(), library_path(libraries),
                                    place.file("list"), kTimeToList);
    const std::string what = fmt::format("--gtest: {}", fmt::join(words, " "));
    constexpr std::string_view kValid =
        "behind -- belongs a GoogleTest program, which prints its tests then; explore without "
        "--gtest takes any program";
    if (const std::string why = trouble(ended); !why.empty()) {
        return fabric::Failure(fmt::format("{}: {}; {}", what, why, kValid));
    }
    std::vector<std::string> tests = tests_in(ended.output);
    if (tests.empty()) {
        return fabric::Failure(
            fmt::format("{}: it printed no test{}; {}", what, filters_of(command), kValid));
    }
    if (!enables_disabled(command)) {
        const std::size_t all = tests.size();
        std::erase_if(tests, is_disabled);
        if (tests.empty()) {
            return fabric::Failure(
                fmt::format("{}: {}, and none is enabled; add {} behind the program", what,
                            fabric::counted(all, "test"), kDisabledToo));
        }
    }
    return tests;
}

std::vector<std::string> command_of_test(std::vector<std::string> command, std::string_view test) {
    std::erase_if(command, [](const std::string& word) {
        return is_flag(word, kFilter) || is_flag(word, kOutput) || is_flag(word, kList);
    });
    command.push_back(fmt::format("{}{}", kFilter, test));
    return command;
}

}  // namespace scenarios
