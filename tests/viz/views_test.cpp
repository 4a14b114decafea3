// Ladder, timeline, topology and coverage of a run that had everything.
#include <string>

#include <nlohmann/json.hpp>

#include "drawing.hpp"
#include "recorded_run.hpp"
#include "viz/coverage.hpp"
#include "viz/graphviz.hpp"
#include "viz/ladder.hpp"
#include "viz/run.hpp"
#include "viz/timeline.hpp"
#include "viz/topology_picture.hpp"
#include "well_formed.hpp"

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

TEST_F(Views, FollowEachPacketToItsEnd) {
    std::size_t lost = 0;
    for (const RunPacket& packet : run.packets) {
        EXPECT_NE(packet.lost.empty(), packet.arrivals.empty()) << packet.opcode;
        if (packet.lost.empty()) {
            EXPECT_EQ(packet.hops.size(), 2U) << "over the switch";
            EXPECT_EQ(packet.hops.back().arrival, packet.arrivals.front().time);
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
    expect_readable(svg, "ladder");
    for (const char* const words :
         {"fault 1: drop, lost at h0 port 1", "(again)", "NAK: PSN sequence error",
          "RNR NAK, timer", "NAK: remote access error", "RDMA_READ_RESPONSE 3001 B, PSN",
          "RTR &gt; RTS", "failed: RDMA_WRITE, request 6: REM_ACCESS_ERR", "h0 QP", "h1 QP"}) {
        EXPECT_NE(svg.find(words), std::string::npos) << words;
    }
    const std::string few = simverbs::viz::ladder(traced, run, {.rows = 5});
    EXPECT_NE(few.find("The end is left out: "), std::string::npos);
    const std::string packets = simverbs::viz::ladder(traced, run, {.folds = false});
    EXPECT_NE(packets.find("RDMA_READ_RESPONSE_FIRST"), std::string::npos);
}

TEST_F(Views, TheTimelineIsATraceThatViewersTake) {
    TimelineSeen seen = expect_trace_events(simverbs::viz::timeline(traced, run));
    EXPECT_GT(seen.arrows, 20U);
    EXPECT_EQ(seen.work["RDMA_READ"], 1);
    EXPECT_EQ(seen.work["RDMA_WRITE REM_ACCESS_ERR"], 1);
}

TEST_F(Views, TheTopologyHasCountersAndTheWayOfAFlow) {
    const auto flow = run.find_qps("h0:" + std::to_string(a->qp->qp_num));
    ASSERT_EQ(flow.size(), 1U);
    EXPECT_EQ(run.find_qps("h0"), flow) << "it is the only one";
    EXPECT_TRUE(run.find_qps("h9:1").empty());
    EXPECT_TRUE(run.find_qps("h9").empty());
    EXPECT_TRUE(run.find_qps("h0:1").empty()) << "no queue pair has that number";
    const std::string dot = simverbs::viz::topology_picture(run, flow);
    EXPECT_NE(dot.find("1 lost at h0"), std::string::npos);
    EXPECT_NE(dot.find("100 Gb/s"), std::string::npos);
    EXPECT_NE(dot.find("dir=forward"), std::string::npos);
    const auto svg = simverbs::viz::draw(dot, "svg");
    ASSERT_TRUE(svg) << svg.error();
    expect_readable(*svg, "topology");
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
