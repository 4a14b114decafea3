#include "ring_all_reduce.hpp"

#include <chrono>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <boost/fiber/all.hpp>
#include <gtest/gtest.h>

#include <simverbs/connect.hpp>
#include <simverbs/gtest.hpp>
#include <simverbs/lab.hpp>

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRanks = 4;
constexpr std::size_t kValues = 4000;

using Program = std::function<void(std::size_t rank, ring::Rank& ring)>;

// Runs the program as each rank of a ring of four hosts, h0 to h3.
void run_ring(const ring::RingOptions& options, const Program& program) {
    simverbs::Lab lab({.topology = "star:4"});
    boost::fibers::barrier all(kRanks);
    std::vector<ring::Rank*> rings(kRanks);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
        lab.host("h" + std::to_string(rank), [&, rank](ibv_context* device) {
            ring::Rank ring(device, rank, kRanks, options);
            rings[rank] = &ring;
            all.wait();
            const ring::Rank& next = *rings[(rank + 1) % kRanks];
            simverbs::connect(*ring.right(), *next.left(), {.mtu = IBV_MTU_1024, .timeout = 8});
            ring.set_right_landing(next.landing());
            all.wait();
            ring.begin();
            all.wait();
            program(rank, ring);
        });
    }
    lab.run();
}

// Each rank adds rank + 1 times the index of the value.
void sum_and_check(std::size_t rank, ring::Rank& ring) {
    std::vector<std::int64_t> values(kValues);
    std::iota(values.begin(), values.end(), 0);
    for (std::int64_t& value : values) {
        value *= static_cast<std::int64_t>(rank) + 1;
    }
    ASSERT_EQ(ring.all_reduce(values), ring::Outcome::kDone);
    for (std::size_t i = 0; i < kValues; ++i) {
        ASSERT_EQ(values[i], static_cast<std::int64_t>(i) * 10) << "value " << i;
    }
}

TEST(RingAllReduce, GivesTheSumsToEveryRank) {
    run_ring({}, [](std::size_t rank, ring::Rank& ring) {
        sum_and_check(rank, ring);
        sum_and_check(rank, ring);
    });
}

TEST(RingAllReduce, IsExactWhenATenthOfAllPacketsIsLost) {
    std::uint64_t lost = 0;
    run_ring({}, [&lost](std::size_t rank, ring::Rank& ring) {
        const std::string host = "h" + std::to_string(rank);
        const simverbs::Fault loss =
            simverbs::drop().from(host.c_str()).with_chance(1, 10).inject();
        sum_and_check(rank, ring);
        lost += loss.fired();
    });
    EXPECT_GE(lost, 1U);
}

// h2 loses its link. Only h1 and h2 itself see a request that is not answered.
std::vector<ring::Outcome> sum_without_h2(const ring::RingOptions& options) {
    std::vector<ring::Outcome> outcomes(kRanks);
    run_ring(options, [&](std::size_t rank, ring::Rank& ring) {
        if (rank == 2) {
            simverbs::link_down("h2-s0").inject().leave();
        }
        std::vector<std::int64_t> values(kValues, 1);
        outcomes[rank] = ring.all_reduce(values);
        EXPECT_EQ(values, std::vector<std::int64_t>(kValues, 1));
    });
    return outcomes;
}

TEST(RingAllReduce, EndsOnEveryRankWhenOneIsLost) {
    EXPECT_THAT(sum_without_h2({}), testing::Each(ring::Outcome::kPeerLost));
}

// Fails: ranks that tell nobody.
TEST(RingAllReduce, DISABLED_EndsOnEveryRankWhenNobodyIsTold) {
    EXPECT_THAT(sum_without_h2({.tell_peers = false}), testing::Each(ring::Outcome::kPeerLost));
}

}  // namespace
