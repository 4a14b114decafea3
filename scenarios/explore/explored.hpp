// Holds what came of an exploration, for reports: of one scenario or program, or of each test of a
// GoogleTest program.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "scenarios/explore/explore.hpp"

namespace scenarios {

// A test, or all of a subject that has none.
struct ExploredTest {
    std::string name{};  // "Suite.Name"; else the scenario or the command
    ExploreResult result{};
    std::chrono::milliseconds took{};  // wall time
    std::size_t before = 0;            // findings of the tests before it
    bool no_time = false;              // the budget was over before it began
};

struct Explored {
    std::string subject{};              // the scenario or the command
    bool has_tests = false;             // each is explored by itself
    std::vector<ExploredTest> tests{};  // at least one, unless it was stopped
    bool stopped = false;               // the onlooker wanted no more

    [[nodiscard]] std::size_t findings() const;
};

// Explores the whole of a subject.
Explored explore_whole(const Subject& subject, const ExploreOptions& options);

// Explores each test of a GoogleTest program by itself, one after another; `tests` as list_tests()
// has them. The budget is that of all. `done` is told of each as it ends.
Explored explore_tests(const ExploredProgram& program, const std::vector<std::string>& tests,
                       const ExploreOptions& options,
                       const std::function<void(const ExploredTest&)>& done);

// Says why a test was not explored: "fails without faults: ..."; "": it was.
std::string not_explored(const ExploredTest& test);

// Tells a test, beginning with its name, and the sum of all tests.
std::string report(const ExploredTest& test);
std::string summary(const Explored& explored);
// Has the members of one exploration, or a list of tests with these members.
std::string json(const Explored& explored);

}  // namespace scenarios
