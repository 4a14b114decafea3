// Every view of every scenario of the library: each is run once, with a trace, and all that
// `simverbs viz` can draw is drawn from that trace.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "simverbs/model/statuses.hpp"

#include "scenarios/engine/batch.hpp"
#include "viz/coverage.hpp"
#include "viz/graphviz.hpp"
#include "viz/ladder.hpp"
#include "viz/report.hpp"
#include "viz/run.hpp"
#include "viz/state_diagram.hpp"
#include "viz/state_machine.hpp"
#include "viz/timeline.hpp"
#include "viz/topology_picture.hpp"
#include "viz/trace_file.hpp"
#include "well_formed.hpp"

namespace viz_test {
namespace {

using nlohmann::json;
using simverbs::viz::Record;
using simverbs::viz::RunPacket;

std::vector<std::string> files_of_library() {
    std::string error;
    return scenarios::find_files({SIMVERBS_SCENARIO_LIBRARY}, error);
}

class EveryScenario : public testing::TestWithParam<std::string> {
  protected:
    void SetUp() override {
        if (GetParam().ends_with("/story_flapping_port.yaml") &&
            std::getenv("SIMVERBS_TEST_LARGE") == nullptr) {
            GTEST_SKIP() << "a trace of 90 MB; ctest -L slow looks at it";
        }
        const std::string path =
            testing::TempDir() + "viz_library_" + std::to_string(getpid()) + ".jsonl";
        std::string error;
        const auto scenario = scenarios::load(GetParam(), {}, error);
        ASSERT_TRUE(scenario) << error;
        verdict = scenarios::run(*scenario, {path});
        ASSERT_TRUE(verdict.passed()) << scenarios::report(verdict, {});
        auto read = simverbs::viz::read_trace(path, error);
        std::remove(path.c_str());
        ASSERT_TRUE(read) << error;
        trace = std::move(*read);
        run = simverbs::viz::read_run(trace);
    }
    [[nodiscard]] std::size_t records_named(std::string_view name) const {
        std::size_t count = 0;
        for (const Record& record : trace.records) {
            count += record.name == name ? 1 : 0;
        }
        return count;
    }

    void expect_diagrams() const;
    void expect_ladder() const;
    void expect_timeline() const;
    void expect_coverage() const;
    void expect_report() const;

    scenarios::Verdict verdict;
    simverbs::viz::Trace trace;
    simverbs::viz::Run run;
};
INSTANTIATE_TEST_SUITE_P(Of, EveryScenario, testing::ValuesIn(files_of_library()),
                         [](const auto& file) {
                             return std::filesystem::path(file.param).stem().string();
                         });

void EveryScenario::expect_diagrams() const {
    std::string graphs;
    std::vector<std::string> titles;
    std::size_t moves = 0;
    for (simverbs::viz::StateMachine& machine : simverbs::viz::all_machines()) {
        simverbs::viz::count_moves(machine, trace);
        EXPECT_EQ(machine.unlisted, 0U) << machine.title << " has made a move that no row has";
        for (const simverbs::viz::Move& move : machine.moves) {
            moves += machine.event == "qp_state" ? move.count : 0;
        }
        graphs += simverbs::viz::state_diagram(machine);
        titles.push_back(machine.title);
    }
    EXPECT_EQ(moves, records_named("qp_state") + records_named("qp_stayed"))
        << "each is on an edge";
    std::optional<simverbs::viz::QpName> flow;
    if (!run.packets.empty()) {
        flow = run.packets.front().from;
    }
    graphs += simverbs::viz::topology_picture(run, flow);
    std::string error;
    const auto pictures = simverbs::viz::draw(graphs, "svg", error);
    ASSERT_TRUE(pictures) << error;
    const std::vector<std::string> each = split_svgs(*pictures);
    ASSERT_EQ(each.size(), titles.size() + 1);
    for (const std::string& picture : each) {
        EXPECT_EQ(xml_error(picture), "") << picture.substr(0, 500);
    }
    for (std::size_t i = 0; i < titles.size(); ++i) {
        EXPECT_NE(each[i].find(titles[i]), std::string::npos) << titles[i];
    }
    for (const simverbs::viz::RunLink& link : run.links) {
        EXPECT_NE(each.back().find(run.label(link.node)), std::string::npos) << link.name;
    }
}

void EveryScenario::expect_ladder() const {
    const std::string ladder = simverbs::viz::ladder(trace, run, {});
    EXPECT_EQ(xml_error(ladder), "");
    EXPECT_NE(ladder.find("<svg"), std::string::npos);
    if (!run.packets.empty()) {
        EXPECT_NE(ladder.find(run.label(run.packets.front().from)), std::string::npos);
        EXPECT_NE(ladder.find(run.packets.front().opcode), std::string::npos);
    }
}

void EveryScenario::expect_timeline() const {
    const TimelineSeen seen = expect_trace_events(simverbs::viz::timeline(trace, run));
    std::size_t arrived = 0;
    for (const RunPacket& packet : run.packets) {
        arrived += packet.arrived_at && !packet.hops.empty() ? 1 : 0;
    }
    EXPECT_EQ(seen.arrows, arrived);
}

void EveryScenario::expect_coverage() const {
    simverbs::viz::Coverage coverage;
    coverage.add(trace);
    EXPECT_NE(coverage.text().find("completion statuses"), std::string::npos);
    const json found = json::parse(coverage.json(), nullptr, false);
    ASSERT_TRUE(found.is_object());
    for (const scenarios::Completed& completed : verdict.completed) {
        const std::string status(
            simverbs::kWcStatusNames.at(static_cast<std::size_t>(completed.status)));
        EXPECT_GT(found["completion statuses"]["items"][status], 0) << status;
    }
    for (const scenarios::AsyncEventSeen& event : verdict.events) {
        const std::string name(
            simverbs::kAsyncEvents.at(static_cast<std::size_t>(event.event)).name);
        EXPECT_GT(found["asynchronous events"]["items"][name], 0) << name;
    }
}

void EveryScenario::expect_report() const {
    const std::string page = simverbs::viz::report(trace, GetParam());
    EXPECT_EQ(page.find("No picture"), std::string::npos);
    const std::string opening = "<script type=\"application/json\" id=\"data\">";
    const std::size_t begin = page.find(opening);
    ASSERT_NE(begin, std::string::npos);
    const std::size_t from = begin + opening.size();
    const json data =
        json::parse(page.substr(from, page.find("</script>", from) - from), nullptr, false);
    ASSERT_TRUE(data.is_object()) << "what its script reads is no JSON";
    EXPECT_EQ(data["events"].size(), trace.records.size());
    EXPECT_EQ(data["completions"].size(), records_named("completion"));
    EXPECT_EQ(data["ladder"]["packets"].size(), run.packets.size());
    std::size_t moving = 0;
    for (simverbs::viz::StateMachine& machine : simverbs::viz::all_machines()) {
        simverbs::viz::count_moves(machine, trace);
        moving += machine.moves_made() > 0 ? 1 : 0;
    }
    std::size_t pictures = 0;
    for (std::size_t at = 0; (at = page.find("<svg", at)) != std::string::npos; ++pictures) {
        const std::size_t end = page.find("</svg>", at);
        ASSERT_NE(end, std::string::npos);
        EXPECT_EQ(xml_error(page.substr(at, end + 6 - at)), "");
        at = end;
    }
    EXPECT_EQ(pictures, 1 + moving) << "the topology, and what has moved";
}

TEST_P(EveryScenario, HasEveryView) {
    expect_diagrams();
    expect_ladder();
    expect_timeline();
    expect_coverage();
    expect_report();
}

}  // namespace
}  // namespace viz_test
