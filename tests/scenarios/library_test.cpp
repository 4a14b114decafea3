// Every file of the library: it passes, it repeats itself, and it shows what it is called after.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "simverbs/model/rdma_cm_events.hpp"
#include "simverbs/model/statuses.hpp"

#include "tests/atlas/atlas_rows.hpp"
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

// The causes of events of rdma_cm, each with its scenario.
using RdmaEventCause = simverbs::atlas::RdmaEventTest;
class EachRdmaEventCause : public ::testing::TestWithParam<RdmaEventCause> {};
TEST_P(EachRdmaEventCause, HasAScenarioThatReachesIt) {
    const Verdict verdict = run_file("cm/" + std::string(GetParam().scenario));
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_TRUE(std::ranges::any_of(verdict.cm_events, [](const CmEventSeen& seen) {
        return seen.event == static_cast<int>(GetParam().event);
    }));
}
INSTANTIATE_TEST_SUITE_P(Of, EachRdmaEventCause, ::testing::ValuesIn([] {
                             std::vector<RdmaEventCause> rows;
                             std::ranges::copy_if(
                                 simverbs::atlas::kRdmaEventTests, std::back_inserter(rows),
                                 [](const auto& row) { return !row.scenario.empty(); });
                             return rows;
                         }()),
                         [](const auto& row) {
                             return std::string(to_string(row.param.event)) + "_by_" +
                                    std::string(row.param.scenario) + "_" +
                                    std::to_string(row.index);
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

TEST(Library, ConnectionsByCmRepeatThemselves) {
    const auto files = find_files({SIMVERBS_SCENARIO_LIBRARY "/cm"}).value();
    unsigned count = 0;
    for (const std::string& file : files) {
        const auto scenario = load(file, {});
        ASSERT_TRUE(scenario) << scenario.error();
        if (scenario->has_processes()) {
            continue;
        }
        ++count;
        const Verdict first = run(*scenario);
        EXPECT_TRUE(first.passed()) << report(first, {});
        EXPECT_TRUE(first.deterministic) << file << ": " << first.mark;
        EXPECT_EQ(first.warnings, std::vector<std::string>{}) << file;
        EXPECT_EQ(run(*scenario).digest, first.digest) << file;
    }
    EXPECT_GE(count, simverbs::kRdmaEventTypes);
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
