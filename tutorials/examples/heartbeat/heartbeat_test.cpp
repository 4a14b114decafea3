#include "heartbeat.hpp"

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <simverbs/connect.hpp>
#include <simverbs/gtest.hpp>

namespace {

using namespace std::chrono_literals;
using heartbeat::name_of;
using heartbeat::Node;

constexpr std::size_t kNodes = 3;

struct CloseDevice {
    void operator()(ibv_context* device) const { ibv_close_device(device); }
};
using Device = std::unique_ptr<ibv_context, CloseDevice>;

// Nodes on h0 to h2, in one thread.
struct Cluster {
    explicit Cluster(const heartbeat::Options& options = {}) {
        ibv_device** const list = ibv_get_device_list(nullptr);
        for (std::size_t i = 0; i < kNodes; ++i) {
            devices.emplace_back(ibv_open_device(list[i]));
            nodes.emplace_back(devices.back().get(), i, kNodes, options);
        }
        ibv_free_device_list(list);
        for (std::size_t a = 0; a < kNodes; ++a) {
            for (std::size_t b = a + 1; b < kNodes; ++b) {
                simverbs::connect(*nodes[a].qp(b), *nodes[b].qp(a));
                nodes[a].set_place(b, nodes[b].place(a));
                nodes[b].set_place(a, nodes[a].place(b));
            }
        }
        for (Node& node : nodes) {
            node.begin(now());
        }
    }
    void run(std::chrono::milliseconds duration) {
        for (std::chrono::milliseconds passed{}; passed < duration; passed += 1ms) {
            for (Node& node : nodes) {
                node.tick(now());
            }
            simverbs::advance(1ms);
        }
    }
    // Returns whether each node is "alive" or "suspected" in the view of one of them.
    [[nodiscard]] std::vector<std::string> view_of(std::size_t node) const {
        std::vector<std::string> view;
        for (std::size_t peer = 0; peer < kNodes; ++peer) {
            view.emplace_back(name_of(nodes[node].health(peer)));
        }
        return view;
    }
    static std::chrono::nanoseconds now() {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(simverbs::now());
    }

    simverbs::World world{{.topology = "star:3"}};
    std::vector<Device> devices;
    std::deque<Node> nodes;
};

simverbs::Fault two_lost_heartbeats() {
    return simverbs::drop().from("h1").to("h0").opcode("RDMA_WRITE").nth(5).times(2).inject();
}

TEST(Heartbeat, FindsEveryNodeAlive) {
    Cluster cluster;
    cluster.run(100ms);
    for (std::size_t node = 0; node < kNodes; ++node) {
        EXPECT_THAT(cluster.view_of(node), testing::Each("alive"));
    }
}

TEST(Heartbeat, SuspectsANodeThatLosesItsLinkUntilItIsBack) {
    Cluster cluster;
    cluster.run(10ms);
    const simverbs::Fault down = simverbs::link_down("h2-s0", 50ms).inject();
    cluster.run(20ms);
    EXPECT_THAT(cluster.view_of(0), testing::ElementsAre("alive", "alive", "suspected"));
    EXPECT_THAT(cluster.view_of(1), testing::ElementsAre("alive", "alive", "suspected"));
    cluster.run(60ms);
    EXPECT_THAT(cluster.view_of(0), testing::Each("alive"));
}

TEST(Heartbeat, SuspectsNobodyWhileItsOwnPortIsDown) {
    Cluster cluster;
    cluster.run(10ms);
    const simverbs::Fault down = simverbs::link_down("h2-s0", 50ms).inject();
    cluster.run(20ms);
    EXPECT_TRUE(cluster.nodes[2].is_cut_off());
    EXPECT_THAT(cluster.view_of(2), testing::Each("alive"));
    cluster.run(60ms);
    EXPECT_FALSE(cluster.nodes[2].is_cut_off());
}

TEST(Heartbeat, OutlivesTwoLostHeartbeats) {
    Cluster cluster;
    const simverbs::Fault lost = two_lost_heartbeats();
    for (int i = 0; i < 20; ++i) {
        cluster.run(1ms);
        ASSERT_THAT(cluster.view_of(0), testing::Each("alive")) << "after " << i << " ms";
    }
    EXPECT_THAT(lost, simverbs::Fired(2));
}

// Fails: this detector has no patience.
TEST(Heartbeat, DISABLED_OutlivesTwoLostHeartbeatsWhereEveryOneCounts) {
    Cluster cluster({.misses = 1});
    const simverbs::Fault lost = two_lost_heartbeats();
    for (int i = 0; i < 20; ++i) {
        cluster.run(1ms);
        ASSERT_THAT(cluster.view_of(0), testing::Each("alive")) << "after " << i << " ms";
    }
}

}  // namespace
