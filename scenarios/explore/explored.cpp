#include "scenarios/explore/explored.hpp"

#include <algorithm>
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "scenarios/explore/google_test.hpp"

namespace scenarios {

namespace {

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds since(Clock::time_point begin) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
}

// Adds up the branches of all tests, for the onlooker.
class BranchCounter {
  public:
    explicit BranchCounter(Onlooker onlooker) : onlooker_(std::move(onlooker)) {}

    Onlooker onlooker() {
        return [this](const Stage& stage) {
            last_ = std::max(last_, stage.all);
            return !onlooker_ || onlooker_({before_ + stage.done, before_ + last_});
        };
    }

    void end_test() {
        before_ += last_;
        last_ = 0;
    }

  private:
    Onlooker onlooker_;
    std::size_t before_ = 0;
    std::size_t last_ = 0;
};

}  // namespace

std::size_t Explored::findings() const {
    return tests.empty() ? 0 : tests.back().before + tests.back().result.findings.size();
}

Explored explore_whole(const Subject& subject, const ExploreOptions& options) {
    const auto begin = Clock::now();
    Explored explored{.subject = subject.name()};
    explored.tests.push_back({.name = subject.name(), .result = explore(subject, options)});
    explored.tests.back().took = since(begin);
    explored.stopped = explored.tests.back().result.stopped;
    return explored;
}

Explored explore_tests(const ExploredProgram& program, const std::vector<std::string>& tests,
                       const ExploreOptions& options,
                       const std::function<void(const ExploredTest&)>& done) {
    const auto begin = Clock::now();
    BranchCounter counter(options.onlooker);
    Explored explored{.subject = fmt::format("{}", fmt::join(program.command, " ")),
                      .has_tests = true};
    for (const std::string& name : tests) {
        ExploredTest test{.name = name, .before = explored.findings()};
        ExploreOptions of_test = options;
        of_test.onlooker = counter.onlooker();
        of_test.kept = test.before;
        if (options.budget != ProcessPool::kNoLimit) {
            of_test.budget = options.budget - since(begin);
        }
        test.no_time = of_test.budget <= std::chrono::milliseconds::zero();
        if (!test.no_time) {
            const auto begin_of_test = Clock::now();
            ExploredProgram one = program;
            one.command = command_of_test(program.command, name);
            test.result = explore(*program_subject(std::move(one)), of_test);
            test.took = since(begin_of_test);
            counter.end_test();
        }
        explored.tests.push_back(std::move(test));
        done(explored.tests.back());
        if (explored.tests.back().result.stopped) {
            explored.stopped = true;
            break;
        }
    }
    return explored;
}

std::string not_explored(const ExploredTest& test) {
    if (test.no_time) {
        return "not tried: the budget is over";
    }
    switch (test.result.unexplored) {
        case Unexplored::kNone:
            return "";
        case Unexplored::kFailsByItself:
            return "fails without faults: " + test.result.failure;
        case Unexplored::kNoPlace:
            return "sends no packet and calls no verb that can fail";
        case Unexplored::kNoSuchHost:
            return test.result.error;
    }
    return "";
}

}  // namespace scenarios
