// Every file of the library: it passes, it repeats itself, and it shows what it is called after.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "simverbs/model/statuses.hpp"

#include "tests/scenarios/scenario_text.hpp"

namespace scenarios {
namespace {

std::string lower(std::string_view name) {
    std::string text(name);
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
    return text;
}

std::string path_of(const std::string& name) {
    return std::string(SIMVERBS_SCENARIO_LIBRARY) + "/" + name + ".yaml";
}

Verdict run_file(const std::string& name) {
    const auto scenario = load(path_of(name), {});
    if (!scenario) {
        Verdict verdict;
        verdict.error = scenario.error();
        return verdict;
    }
    return run(*scenario);
}

class EachStatus : public ::testing::TestWithParam<std::size_t> {};
TEST_P(EachStatus, HasAScenarioThatReachesIt) {
    const std::string name = "status_" + lower(simverbs::kWcStatusNames[GetParam()]);
    const Verdict verdict = run_file(name);
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_TRUE(std::ranges::any_of(verdict.completed, [](const Completed& completed) {
        return completed.status == static_cast<int>(GetParam());
    })) << name;
}
INSTANTIATE_TEST_SUITE_P(Of, EachStatus, ::testing::Range(std::size_t{0}, simverbs::kWcStatuses),
                         [](const auto& row) {
                             return std::string(simverbs::kWcStatusNames[row.param]);
                         });

class EachEvent : public ::testing::TestWithParam<std::size_t> {};
TEST_P(EachEvent, HasAScenarioThatReachesIt) {
    const std::string name = "event_" + lower(simverbs::kAsyncEvents[GetParam()].name);
    const Verdict verdict = run_file(name);
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_TRUE(std::ranges::any_of(verdict.events, [](const AsyncEventSeen& seen) {
        return seen.event == static_cast<int>(GetParam());
    })) << name;
}
INSTANTIATE_TEST_SUITE_P(Of, EachEvent,
                         ::testing::Range(std::size_t{0}, simverbs::kAsyncEventCount),
                         [](const auto& row) {
                             return std::string(simverbs::kAsyncEvents[row.param].name);
                         });

// Where an injected fault has fired and a request has failed, the one is the root of the other;
// where only programs make mistakes, no fault is blamed.
void expect_explained(const Verdict& verdict) {
    const bool failed = std::ranges::any_of(verdict.completed, [](const Completed& completed) {
        return completed.status != static_cast<int>(simverbs::WcStatus::kSuccess) &&
               completed.status != static_cast<int>(simverbs::WcStatus::kWrFlushErr);
    });
    const bool injected =
        std::ranges::any_of(verdict.fired, [](const auto& fault) { return !fault.second.empty(); });
    const bool blamed =
        verdict.explanation.find("Root: the injected fault \"") != std::string::npos;
    if (failed) {
        EXPECT_EQ(blamed, injected) << verdict.file << "\n" << verdict.explanation;
    }
}

TEST(Library, RepeatsItselfWhateverRanBefore) {
    const auto files = find_files({SIMVERBS_SCENARIO_LIBRARY}).value();
    ASSERT_GE(files.size(), simverbs::kWcStatuses + simverbs::kAsyncEventCount);
    std::vector<std::uint64_t> digests;
    for (const std::string& file : files) {
        const Verdict verdict = run_file(std::filesystem::path(file).stem().string());
        expect_explained(verdict);
        EXPECT_TRUE(verdict.deterministic) << file << ": " << verdict.mark;
        digests.push_back(verdict.digest);
    }
    for (std::size_t i = files.size(); i-- > 0;) {
        const Verdict verdict = run_file(std::filesystem::path(files[i]).stem().string());
        EXPECT_EQ(verdict.digest, digests[i]) << files[i];
        EXPECT_TRUE(verdict.deterministic) << files[i] << ": " << verdict.mark;
        EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    }
}

TEST(Library, EachFileTeaches) {
    const auto files = find_files({SIMVERBS_SCENARIO_LIBRARY, SIMVERBS_SCENARIO_LIBRARY "/cm"});
    ASSERT_TRUE(files) << files.error();
    for (const std::string& file : *files) {
        const auto scenario = load(file, {});
        ASSERT_TRUE(scenario) << scenario.error();
        std::ifstream in(file);
        const std::string text((std::istreambuf_iterator<char>(in)), {});
        for (const char* const part :
             {"# What happens: ", "# What to observe: ", "# In the field: "}) {
            EXPECT_NE(text.find(part), std::string::npos) << file << ": " << part;
        }
        EXPECT_TRUE(text.starts_with("# ")) << file;
        EXPECT_TRUE(scenario->at("expect").value() != nullptr) << file;
    }
}

}  // namespace
}  // namespace scenarios
