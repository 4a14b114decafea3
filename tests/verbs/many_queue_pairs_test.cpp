// Ten thousand connections at once: made, used in both directions, and gone again.
#include <algorithm>
#include <vector>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

constexpr std::size_t kConnections = 10'000;
constexpr std::uint32_t kBytes = 32;
constexpr int kBatch = 256;

class ManyQueuePairs : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
        ASSERT_EQ(simverbs_set_topology("pair"), 0) << simverbs_last_error();
        a = std::make_unique<End>(0, Connection{});
        b = std::make_unique<End>(1, Connection{});
        make(*a, here);
        make(*b, there);
    }
    void TearDown() override {
        for (const Side* side : {&here, &there}) {
            for (ibv_qp* qp : side->qps) {
                EXPECT_EQ(ibv_destroy_qp(qp), 0);
            }
            EXPECT_EQ(ibv_destroy_cq(side->cq), 0);
        }
        TwoHosts::TearDown();
    }

    struct Side {
        ibv_cq* cq = nullptr;
        std::vector<ibv_qp*> qps;
    };

    static void make(End& end, Side& side) {
        side.cq = ibv_create_cq(end.context, 2 * kConnections, nullptr, nullptr, 0);
        ASSERT_NE(side.cq, nullptr);
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = side.cq;
        init.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
        init.qp_type = IBV_QPT_RC;
        for (std::size_t i = 0; i < kConnections; ++i) {
            side.qps.push_back(ibv_create_qp(end.pd, &init));
            ASSERT_NE(side.qps.back(), nullptr) << "of number " << i;
        }
    }
    static void bring_up_side(const Side& side, const End& peer, const Side& peers) {
        const Connection with;
        ibv_qp_attr init = init_attr(with);
        ibv_qp_attr rtr = rtr_attr(peer, with);
        ibv_qp_attr rts = rts_attr(with);
        for (std::size_t i = 0; i < kConnections; ++i) {
            rtr.dest_qp_num = peers.qps[i]->qp_num;
            ASSERT_EQ(ibv_modify_qp(side.qps[i], &init, kInitMask), 0);
            ASSERT_EQ(ibv_modify_qp(side.qps[i], &rtr, kRtrMask), 0);
            ASSERT_EQ(ibv_modify_qp(side.qps[i], &rts, kRtsMask), 0);
        }
    }
    // Each connection's own bytes of a region.
    static ibv_sge place(End& end, std::size_t index, std::size_t half) {
        return end.range(half * End::kBytes / 2 + index * kBytes, kBytes);
    }
    static void post_all(End& end, const Side& side) {
        for (std::size_t i = 0; i < kConnections; ++i) {
            ibv_sge into = place(end, i, 1);
            ibv_recv_wr receive{i, nullptr, &into, 1};
            ibv_recv_wr* bad_receive = nullptr;
            ASSERT_EQ(ibv_post_recv(side.qps[i], &receive, &bad_receive), 0);
        }
    }
    static void send_all(End& end, const Side& side) {
        for (std::size_t i = 0; i < kConnections; ++i) {
            ibv_sge from = place(end, i, 0);
            ibv_send_wr send{};
            send.wr_id = kConnections + i;
            send.sg_list = &from;
            send.num_sge = 1;
            send.opcode = IBV_WR_SEND;
            send.send_flags = IBV_SEND_SIGNALED;
            ibv_send_wr* bad_send = nullptr;
            ASSERT_EQ(ibv_post_send(side.qps[i], &send, &bad_send), 0);
        }
    }
    // A send and a receive of every queue pair, each once.
    static void expect_all(const Side& side) {
        std::vector<bool> seen(2 * kConnections);
        std::vector<ibv_wc> found(kBatch);
        std::size_t count = 0;
        for (int empty = 0; count < seen.size() && empty < 1'000'000; ++empty) {
            const int polled = ibv_poll_cq(side.cq, kBatch, found.data());
            ASSERT_GE(polled, 0);
            for (int i = 0; i < polled; ++i) {
                const ibv_wc& wc = found[static_cast<std::size_t>(i)];
                ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
                ASSERT_EQ(wc.qp_num, side.qps[wc.wr_id % kConnections]->qp_num);
                ASSERT_FALSE(seen[wc.wr_id]) << "twice";
                seen[wc.wr_id] = true;
                ++count;
            }
        }
        EXPECT_EQ(count, seen.size());
    }

    Side here;
    Side there;
};

TEST_F(ManyQueuePairs, TenThousandExchange) {
    bring_up_side(here, *b, there);
    bring_up_side(there, *a, here);
    for (std::size_t i = 0; i < kConnections * kBytes; ++i) {
        *a->at(i) = static_cast<std::uint8_t>(i * 7);
        *b->at(i) = static_cast<std::uint8_t>(i * 5 + 1);
    }
    post_all(*a, here);
    post_all(*b, there);
    send_all(*a, here);
    send_all(*b, there);
    expect_all(here);
    expect_all(there);
    constexpr std::size_t kHalf = End::kBytes / 2;
    EXPECT_TRUE(std::equal(a->at(0), a->at(kConnections * kBytes), b->at(kHalf)));
    EXPECT_TRUE(std::equal(b->at(0), b->at(kConnections * kBytes), a->at(kHalf)));
}

}  // namespace
}  // namespace verbs_test
