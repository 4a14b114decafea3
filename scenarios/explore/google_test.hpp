// Programs of GoogleTest: which tests one has, and the command that runs a single one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/outcome.hpp"

namespace scenarios {

// Removes the variables by which GoogleTest, or Bazel around it, chooses tests, divides them among
// processes, writes files or turns a failure into a crash. Only the arguments of the program count.
void unset_google_test_variables();

// Returns the tests that a program lists, "Suite.Name", in its order. `list` is what it prints with
// --gtest_list_tests: names, then comments behind "#".
std::vector<std::string> tests_in(std::string_view list);

// Returns true if GoogleTest runs the test only when asked to.
bool is_disabled(std::string_view test);

// Asks a program for its tests, and leaves disabled ones out unless `command` has the argument that
// enables them. `libraries` as program_subject() has it. Fails if there is none.
fabric::Outcome<std::vector<std::string>> list_tests(const std::vector<std::string>& command,
                                                     const std::string& libraries);

// Returns the command that runs one test. It writes no report file.
std::vector<std::string> command_of_test(std::vector<std::string> command, std::string_view test);

}  // namespace scenarios
