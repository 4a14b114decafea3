#include "fetch_add_barrier.h"

#include <chrono>
#include <cstdint>
#include <deque>

#include <gtest/gtest.h>

#include <simverbs/connect.hpp>
#include <simverbs/gtest.hpp>

namespace {

using namespace std::chrono_literals;

constexpr unsigned kRanks = 3;

// A rank on h0. It has the fixture's region of h1 as the place of the barrier.
struct Rank {
    Rank(simverbs::TwoHostsEnd& home, simverbs::TwoHostsEnd& memory, unsigned rank) {
        EXPECT_EQ(fetch_add_barrier_open(
                      &barrier, home.context,
                      {reinterpret_cast<std::uintptr_t>(memory.bytes.data()), memory.mr->rkey},
                      rank, kRanks),
                  0);
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_RC;
        init.send_cq = init.recv_cq = memory.cq;
        init.cap.max_send_wr = init.cap.max_recv_wr = 1;
        init.cap.max_send_sge = init.cap.max_recv_sge = 1;
        peer = ibv_create_qp(memory.pd, &init);
        connect(0);
    }
    ~Rank() {
        ibv_destroy_qp(peer);
        fetch_add_barrier_close(&barrier);
    }
    Rank(const Rank&) = delete;
    Rank& operator=(const Rank&) = delete;

    // A new connection has a PSN of its own, so that it takes no packet of the one before.
    void connect(std::uint32_t psn) {
        simverbs::connect(*barrier.qp, *peer, {.timeout = 8, .retries = 2, .first_psn = psn});
    }
    auto arrive() { return fetch_add_barrier_arrive(&barrier); }
    auto look() { return fetch_add_barrier_look(&barrier); }

    fetch_add_barrier barrier{};
    ibv_qp* peer = nullptr;
};

class FetchAddBarrier : public simverbs::TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        for (unsigned rank = 0; rank < kRanks; ++rank) {
            ranks.emplace_back(h0, h1, rank);
        }
    }
    void TearDown() override {
        ranks.clear();
        TwoHosts::TearDown();
    }
    // The answer to the first arrival of rank 0 is lost, as often as it is sent.
    void arrive_without_an_answer() {
        const simverbs::Fault lost =
            simverbs::drop().opcode("ATOMIC_ACKNOWLEDGE").every_time().inject();
        EXPECT_EQ(ranks[0].arrive(), FETCH_ADD_BARRIER_UNREACHABLE);
        EXPECT_EQ(ranks[0].barrier.status, IBV_WC_RETRY_EXC_ERR);
    }
    [[nodiscard]] int arrivals_of_rank_0() const { return h1.bytes[0]; }

    std::deque<Rank> ranks;
};

TEST_F(FetchAddBarrier, OpensWhenAllHaveArrived) {
    for (int round = 0; round < 600; ++round) {  // past 255, twice
        for (Rank& rank : ranks) {
            ASSERT_EQ(ranks[0].look(),
                      &rank == &ranks[0] ? FETCH_ADD_BARRIER_OPEN : FETCH_ADD_BARRIER_CLOSED);
            ASSERT_EQ(rank.arrive(), FETCH_ADD_BARRIER_ARRIVED);
        }
        ASSERT_EQ(ranks[0].look(), FETCH_ADD_BARRIER_OPEN) << "round " << round;
    }
}

TEST_F(FetchAddBarrier, CountsAnArrivalOnceWhoseAnswerIsLostOnce) {
    const simverbs::Fault lost = simverbs::drop().opcode("ATOMIC_ACKNOWLEDGE").inject();
    EXPECT_EQ(ranks[0].arrive(), FETCH_ADD_BARRIER_ARRIVED);
    EXPECT_THAT(lost, simverbs::Fired(1));
    EXPECT_EQ(arrivals_of_rank_0(), 1);
}

TEST_F(FetchAddBarrier, CountsAnArrivalOnceAfterAConnectionThatFailed) {
    arrive_without_an_answer();
    ranks[0].connect(1000);
    EXPECT_EQ(ranks[0].arrive(), FETCH_ADD_BARRIER_ARRIVED);
    EXPECT_EQ(arrivals_of_rank_0(), 1);
}

TEST_F(FetchAddBarrier, ArrivesAfterALinkThatWasDown) {
    const simverbs::Fault down = simverbs::link_down("h0-s0", 1s).inject();
    EXPECT_EQ(ranks[0].arrive(), FETCH_ADD_BARRIER_UNREACHABLE);
    simverbs::advance(2s);
    ranks[0].connect(1000);
    EXPECT_EQ(ranks[0].arrive(), FETCH_ADD_BARRIER_ARRIVED);
    EXPECT_EQ(arrivals_of_rank_0(), 1);
}

// Fails: a rank that takes an arrival without an answer for one that was not counted.
TEST_F(FetchAddBarrier, DISABLED_CountsAnArrivalOnceWhenItIsMerelyRepeated) {
    arrive_without_an_answer();
    ranks[0].connect(1000);
    ranks[0].barrier.is_unsure = 0;
    EXPECT_EQ(ranks[0].arrive(), FETCH_ADD_BARRIER_ARRIVED);
    EXPECT_EQ(arrivals_of_rank_0(), 1) << "arrivals of a rank that has arrived once";
}

}  // namespace
