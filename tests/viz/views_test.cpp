// Ladder, timeline, topology and coverage of a run that had everything.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "recorded_run.hpp"
#include "viz/coverage.hpp"
#include "viz/graphviz.hpp"
#include "viz/ladder.hpp"
#include "viz/run.hpp"
#include "viz/timeline.hpp"
#include "viz/topology_picture.hpp"

namespace viz_test {
namespace {

using nlohmann::json;
using simverbs::viz::RunPacket;
using simverbs::viz::Trace;

class Views : public RecordedRun {
  protected:
    void SetUp() override {
        RecordedRun::SetUp();
        open_trace();
        reliable_traffic();
        close_trace();
        traced = trace();
        run = simverbs::viz::read_run(traced);
    }
    Trace traced;
    simverbs::viz::Run run;
};

// Whether every tag is closed in its turn.
bool is_well_formed(const std::string& xml) {
    std::vector<std::string> open;
    for (std::size_t at = 0; (at = xml.find('<', at)) != std::string::npos;) {
        const std::size_t end = xml.find('>', at);
        if (end == std::string::npos) {
            return false;
        }
        const std::string tag = xml.substr(at + 1, end - at - 1);
        const std::string name = tag.substr(0, tag.find_first_of(" \n"));
        at = end;
        if (name.starts_with('/')) {
            if (open.empty() || open.back() != name.substr(1)) {
                return false;
            }
            open.pop_back();
        } else if (!tag.ends_with('/')) {
            open.push_back(name);
        }
    }
    return open.empty();
}

TEST_F(Views, FollowEachPacketToItsEnd) {
    std::size_t lost = 0;
    for (const RunPacket& packet : run.packets) {
        EXPECT_NE(packet.lost.empty(), !packet.arrived_at.has_value()) << packet.opcode;
        if (packet.lost.empty()) {
            EXPECT_EQ(packet.hops.size(), 2U) << "over the switch";
            EXPECT_EQ(packet.hops.back().arrival, packet.arrived);
        } else {
            ++lost;
            EXPECT_EQ(packet.lost, "fault");
            EXPECT_EQ(packet.lost_where, "h0 port 1");
        }
    }
    EXPECT_EQ(lost, 1U);
}

TEST_F(Views, TheLadderShowsWhatWasLostAndWhatFollowed) {
    const std::string svg = simverbs::viz::ladder(traced, run, {});
    EXPECT_TRUE(is_well_formed(svg));
    for (const char* const words :
         {"lost at h0 port 1: fault", "(again)", "NAK: PSN sequence error", "RNR NAK, timer",
          "NAK: remote access error", "RDMA_READ_RESPONSE_FIRST", "RTR &gt; RTS",
          "failed: RDMA_WRITE REM_ACCESS_ERR", "h0 QP", "h1 QP"}) {
        EXPECT_NE(svg.find(words), std::string::npos) << words;
    }
    const std::string few = simverbs::viz::ladder(traced, run, {.rows = 5});
    EXPECT_NE(few.find("more rows are not drawn"), std::string::npos);
}

// The Trace Event Format: what each phase must have, and that slices of a track nest.
TEST_F(Views, TheTimelineIsATraceThatViewersTake) {
    const json timeline = json::parse(simverbs::viz::timeline(traced, run));
    ASSERT_TRUE(timeline["traceEvents"].is_array());
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> slices;
    std::map<int, int> starts;
    std::map<int, int> ends;
    std::set<std::pair<int, int>> named;
    std::map<std::string, int> work;
    for (const json& event : timeline["traceEvents"]) {
        const std::string phase = event.at("ph");
        const std::pair<int, int> track{event.at("pid"), event.at("tid")};
        EXPECT_TRUE(event.at("ts").is_number());
        EXPECT_TRUE(event.at("name").is_string());
        if (phase == "X") {
            EXPECT_GE(event.at("dur").get<double>(), 0);
            slices[track].emplace_back(event["ts"], event["dur"]);
            if (event.at("cat") == "work") {
                ++work[event["name"]];
            }
        } else if (phase == "s") {
            ++starts[event.at("id")];
        } else if (phase == "f") {
            EXPECT_EQ(event.at("bp"), "e");
            ++ends[event.at("id")];
        } else if (phase == "M") {
            EXPECT_TRUE(event.at("args").at("name").is_string());
            if (event["name"] == "thread_name") {
                named.insert(track);
            }
        } else {
            EXPECT_EQ(phase, "i");
            EXPECT_TRUE(event.at("s") == "t" || event.at("s") == "p");
        }
    }
    EXPECT_EQ(starts, ends) << "each arrow has both ends";
    EXPECT_GT(starts.size(), 20U);
    EXPECT_EQ(work["RDMA_READ"], 1);
    EXPECT_EQ(work["RDMA_WRITE REM_ACCESS_ERR"], 1);
    for (auto& [track, of_track] : slices) {
        EXPECT_TRUE(named.contains(track));
        std::sort(of_track.begin(), of_track.end());
        for (std::size_t i = 1; i < of_track.size(); ++i) {
            constexpr double kRounding = 1e-6;
            EXPECT_LE(of_track[i - 1].first + of_track[i - 1].second,
                      of_track[i].first + kRounding);
        }
    }
}

TEST_F(Views, TheTopologyHasCountersAndTheWayOfAFlow) {
    const auto flow = run.parse_qp("h0:" + std::to_string(a->qp->qp_num));
    ASSERT_TRUE(flow);
    EXPECT_FALSE(run.parse_qp("h9:1"));
    EXPECT_FALSE(run.parse_qp("h0"));
    const std::string dot = simverbs::viz::topology_picture(run, flow);
    EXPECT_NE(dot.find("1 lost there"), std::string::npos);
    EXPECT_NE(dot.find("100 Gb/s"), std::string::npos);
    EXPECT_NE(dot.find("dir=forward"), std::string::npos);
    std::string error;
    EXPECT_TRUE(simverbs::viz::draw(dot, "svg", error)) << error;
}

TEST_F(Views, CoverageCountsWhatWasReached) {
    simverbs::viz::Coverage coverage;
    coverage.add(traced);
    const json found = json::parse(coverage.json());
    EXPECT_EQ(found["completion statuses"]["of"], 24);
    EXPECT_EQ(found["completion statuses"]["items"]["REM_ACCESS_ERR"], 1);
    EXPECT_EQ(found["completion statuses"]["items"]["LOC_LEN_ERR"], 0);
    EXPECT_EQ(found["opcodes on the wire"]["items"]["RC CMP_SWAP"], 1);
    EXPECT_EQ(found["reasons of loss"]["items"]["fault"], 1);
    EXPECT_EQ(found["injected faults"]["items"]["drop"], 1);
    EXPECT_EQ(found["moves: Queue pair, service RC"]["items"]["RTR > RTS (modify)"], 2);
    EXPECT_EQ(found["asynchronous events"]["items"]["QP_ACCESS_ERR"], 1);
    EXPECT_NE(coverage.text().find("not reached:"), std::string::npos);
}

}  // namespace
}  // namespace viz_test
