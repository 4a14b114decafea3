// Every view of every scenario of the library: each is run once, with a trace, and all that
// `simverbs viz` can draw is drawn from that trace.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "simverbs/model/statuses.hpp"

#include "drawing.hpp"
#include "scenarios/engine/batch.hpp"
#include "viz/coverage.hpp"
#include "viz/graphviz.hpp"
#include "viz/ladder.hpp"
#include "viz/messages.hpp"
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
    return scenarios::find_files({SIMVERBS_SCENARIO_LIBRARY}).value();
}

// Runs a scenario with a trace, and reads it.
class TracedScenario : public testing::TestWithParam<std::string> {
  protected:
    void record(const std::string& file) {
        const std::string path =
            testing::TempDir() + "viz_library_" + std::to_string(getpid()) + ".jsonl";
        const auto scenario = scenarios::load(file, {});
        ASSERT_TRUE(scenario) << scenario.error();
        verdict = scenarios::run(*scenario, {.files = {.trace = path}});
        ASSERT_TRUE(verdict.passed()) << scenarios::report(verdict, {});
        auto read = simverbs::viz::read_trace(path);
        std::remove(path.c_str());
        ASSERT_TRUE(read) << read.error();
        trace = std::move(*read);
        run = simverbs::viz::read_run(trace);
    }

    scenarios::Verdict verdict;
    simverbs::viz::Trace trace;
    simverbs::viz::Run run;
};

class EveryScenario : public TracedScenario {
  protected:
    void SetUp() override {
        if (GetParam().ends_with("/story_flapping_port.yaml") &&
            std::getenv("SIMVERBS_TEST_LARGE") == nullptr) {
            GTEST_SKIP() << "a trace of 90 MB; ctest -L slow looks at it";
        }
        record(GetParam());
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
    std::vector<simverbs::viz::QpName> flow;
    if (!run.packets.empty()) {
        flow.push_back(run.packets.front().from);
    }
    graphs += simverbs::viz::topology_picture(run, flow);
    const auto pictures = simverbs::viz::draw(graphs, "svg");
    ASSERT_TRUE(pictures) << pictures.error();
    const std::vector<std::string> each = split_svgs(*pictures);
    ASSERT_EQ(each.size(), titles.size() + 1);
    for (const std::string& picture : each) {
        EXPECT_EQ(xml_error(picture), "") << picture.substr(0, 500);
        expect_readable(picture, picture.substr(picture.find("<title>"), 40));
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
    expect_readable(ladder, "ladder");
    expect_readable(simverbs::viz::ladder(trace, run, {.rows = 25, .folds = false}), "packets");
    if (!run.packets.empty()) {
        const simverbs::viz::MessagePart first = simverbs::viz::message_parts(run).front();
        EXPECT_NE(ladder.find(run.label(run.packets.front().from)), std::string::npos);
        EXPECT_NE(ladder.find(words_of(run, first)), std::string::npos);
    }
}

void EveryScenario::expect_timeline() const {
    const TimelineSeen seen = expect_trace_events(simverbs::viz::timeline(trace, run));
    std::size_t arrived = 0;
    for (const RunPacket& packet : run.packets) {
        arrived += packet.hops.empty() ? 0 : packet.arrivals.size();
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
    EXPECT_LT(page.size(), 5'000'000U);
    EXPECT_EQ(data["all"]["events"], trace.records.size());
    EXPECT_EQ(data["all"]["completions"], records_named("completion"));
    std::size_t messages = 0;  // with a row for each copy
    for (const simverbs::viz::MessagePart& part : simverbs::viz::message_parts(run)) {
        messages += run.packets[part.packets.front()].ends();
    }
    EXPECT_EQ(data["all"]["messages"], messages);
    const bool is_cut = data["events"].size() < trace.records.size() ||
                        data["completions"].size() < data["all"]["completions"] ||
                        data["ladder"]["messages"].size() < data["all"]["messages"];
    EXPECT_EQ(is_cut, page.find("The trace is large") != std::string::npos);
    for (const Record& record : trace.records) {
        if (record.name == "completion" && record.text("status") != "SUCCESS") {
            EXPECT_NE(
                page.find("<ul class=\"causes\"><li><b>" + std::string(record.text("status"))),
                std::string::npos)
                << "the first failure stands under the verdict";
            break;
        }
    }
    std::size_t moving = 0;
    for (simverbs::viz::StateMachine& machine : simverbs::viz::all_machines()) {
        simverbs::viz::count_moves(machine, trace);
        moving += machine.moves_made() > 0 ? 1 : 0;
    }
    std::size_t pictures = 0;
    for (std::size_t at = 0; (at = page.find("<svg", at)) != std::string::npos; ++pictures) {
        const std::size_t end = page.find("</svg>", at);
        ASSERT_NE(end, std::string::npos);
        expect_readable(page.substr(at, end + 6 - at), "picture of the report");
        at = end;
    }
    EXPECT_EQ(pictures, 2 + moving) << "the timeline, the topology, and what has moved";
}

// Traffic from everywhere to h0, on each kind of topology.
class EveryTopology : public TracedScenario {
  protected:
    void SetUp() override {
        const std::string path =
            testing::TempDir() + "viz_topology_" + std::to_string(getpid()) + ".yaml";
        std::ofstream(path) << "fabric: " << GetParam()
                            << "\nworkloads:\n  in: {incast: {to: h0, messages: 1, size: 2KiB}}\n";
        record(path);
        std::remove(path.c_str());
    }
    [[nodiscard]] std::string picture(const std::vector<simverbs::viz::QpName>& flow) const {
        const auto svg = simverbs::viz::draw(simverbs::viz::topology_picture(run, flow), "svg");
        EXPECT_TRUE(svg) << svg.error();
        return svg.value_or("");
    }
};
INSTANTIATE_TEST_SUITE_P(Of, EveryTopology,
                         testing::Values("pair", "vpi-pair", "star:8", "eth-star:48", "ring:6",
                                         "fat-tree2:4x2", "fat-tree:4", "fat-tree:8", "torus:3x3",
                                         "dragonfly:a=4,p=2,h=2"),
                         [](const auto& topology) {
                             std::string name = topology.param;
                             std::replace_if(
                                 name.begin(), name.end(),
                                 [](char c) { return std::isalnum(c) == 0; }, '_');
                             return name;
                         });

TEST_P(EveryTopology, IsReadable) {
    ASSERT_FALSE(run.packets.empty());
    expect_readable(picture({}), "without a flow");
    expect_readable(picture({run.packets.back().from}), "with a flow");
    expect_readable(simverbs::viz::ladder(trace, run, {}), "ladder");
}

TEST_P(EveryTopology, HasALegendOfTheColoursThatItDraws) {
    const std::string with_flow = picture({run.packets.front().from});
    const std::string without = picture({});
    EXPECT_NE(with_flow.find("the flow"), std::string::npos);
    EXPECT_EQ(without.find("the flow"), std::string::npos);
    EXPECT_NE(without.find("busiest"), std::string::npos);
    EXPECT_EQ(without.find(">down<"), std::string::npos) << "all links are up";
}

class FatTree : public EveryTopology {};
INSTANTIATE_TEST_SUITE_P(Of, FatTree, testing::Values("fat-tree:4"),
                         [](const auto&) { return "FourPorts"; });

TEST_P(FatTree, IsDrawnInItsLayers) {
    const Drawing drawing = read_drawing(picture({}));
    std::map<std::string, std::set<int>> heights;
    for (const DrawnText& text : drawing.texts) {
        for (const char* const layer : {"core", "agg", "edge", "h"}) {
            const std::size_t point = text.content.find('.');
            const std::string name =
                point == std::string::npos ? text.content : text.content.substr(point + 1);
            if (name.starts_with(layer) &&
                name.find_first_of("0123456789") == std::string(layer).size() &&
                name.find(' ') == std::string::npos) {
                heights[layer].insert(static_cast<int>(text.area.bottom));
            }
        }
    }
    for (const auto& [layer, of_layer] : heights) {
        EXPECT_EQ(of_layer.size(), 1U) << layer << " is one row";
    }
    EXPECT_LT(*heights["core"].begin(), *heights["agg"].begin());
    EXPECT_LT(*heights["agg"].begin(), *heights["edge"].begin());
    EXPECT_LT(*heights["edge"].begin(), *heights["h"].begin());
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
