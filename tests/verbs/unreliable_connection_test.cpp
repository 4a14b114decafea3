// Unreliable connections: no acknowledgments, and what the receiver cannot use is dropped.
#include <cerrno>
#include <cstring>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class Unreliable : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        Connection with;
        with.type = IBV_QPT_UC;
        connect(with);
    }
    void sent(std::uint64_t id) {
        const ibv_wc wc = a->wait();
        EXPECT_EQ(wc.wr_id, id);
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    }
    // Lose the n-th packet from now that h0 sends.
    static void lose(std::uint64_t nth) {
        ASSERT_EQ(simverbs_drop_nth("h0-s0", "h0", nth, nullptr), 0) << simverbs_last_error();
    }
};

TEST_F(Unreliable, MessagesOfSeveralPacketsArriveInOrder) {
    for (std::size_t i = 0; i < 5000; ++i) {
        *a->at(i) = static_cast<std::uint8_t>(i * 13);
    }
    ASSERT_EQ(b->receive(1, {b->range(0, 8000)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND_WITH_IMM).id(2).from(a->range(0, 5000)).immediate(9).post(*a), 0);
    sent(2);
    const ibv_wc wc = b->wait();
    EXPECT_EQ(wc.byte_len, 5000U);
    EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
    EXPECT_EQ(std::memcmp(a->at(), b->at(), 5000), 0);
    EXPECT_EQ(b->events(), std::vector<ibv_event_type>{}) << "it was in RTS already";
}

TEST_F(Unreliable, TheBufferIsTheSendersAgainWhenItCompletes) {
    std::memset(a->at(), 1, 4096);
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .id(2)
                  .from(a->range(0, 4096))
                  .to(b->address(), b->mr->rkey)
                  .post(*a),
              0);
    sent(2);
    std::memset(a->at(), 2, 4096);
    pass(1);
    for (std::size_t i = 0; i < 4096; ++i) {
        ASSERT_EQ(*b->at(i), 1) << i;
    }
}

TEST_F(Unreliable, ALostPacketLosesItsMessageAndKeepsTheReceive) {
    lose(2);
    ASSERT_EQ(b->receive(1, {b->range(0, 8192)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 3000)).post(*a), 0);
    sent(2);
    expect_silence();
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
    ASSERT_EQ(Request(IBV_WR_SEND).id(3).from(a->range(0, 100)).post(*a), 0);
    sent(3);
    const ibv_wc wc = b->wait();
    EXPECT_EQ(wc.wr_id, 1U);
    EXPECT_EQ(wc.byte_len, 100U);
}

TEST_F(Unreliable, AMessageThatDoesNotFitIsDropped) {
    ASSERT_EQ(b->receive(1, {b->range(0, 1500)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 3000)).post(*a), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(3).from(a->range(0, 1500)).post(*a), 0);
    sent(2);
    sent(3);
    EXPECT_EQ(b->wait().byte_len, 1500U);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
}

TEST_F(Unreliable, WithoutAReceiveAMessageIsDropped) {
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 3000)).post(*a), 0);
    sent(2);
    pass(1);  // sent is not yet arrived
    ASSERT_EQ(b->receive(1, {b->range(0, 4096)}), 0);
    expect_silence();
}

TEST_F(Unreliable, AWriteToABadKeyIsDropped) {
    std::memset(b->at(), 7, 64);
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .id(2)
                  .from(a->range(0, 64))
                  .to(b->address(), b->mr->rkey + 0x100)
                  .post(*a),
              0);
    sent(2);
    expect_silence();
    EXPECT_EQ(*b->at(), 7);
    EXPECT_EQ(a->state(), IBV_QPS_RTS);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
    EXPECT_TRUE(b->events().empty());
}

TEST_F(Unreliable, ABadReceiveTakesTheReceiverDown) {
    ASSERT_EQ(b->receive(1, {{b->address(), 64, b->mr->lkey + 0x100}}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 64)).post(*a), 0);
    sent(2);
    EXPECT_EQ(b->wait().status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
}

TEST_F(Unreliable, ASendErrorStopsTheSendQueueAlone) {
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from({a->address(), 8, 0xDEAD}).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_SQE);
    ASSERT_EQ(a->to_state(IBV_QPS_RTS), 0);
    expect_works();
}

TEST_F(Unreliable, ReadsAndAtomicsAreRefused) {
    ASSERT_EQ(
        Request(IBV_WR_RDMA_READ).id(2).into(a->range(0, 8)).to(b->address(), b->mr->rkey).post(*a),
        0);
    EXPECT_EQ(a->wait().status, IBV_WC_LOC_QP_OP_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_SQE);
}

TEST_F(Unreliable, TakesNoSharedReceives) {
    ibv_srq_init_attr shared{};
    shared.attr.max_wr = 4;
    shared.attr.max_sge = 1;
    ibv_srq* srq = ibv_create_srq(a->pd, &shared);
    ASSERT_NE(srq, nullptr);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = a->cq;
    init.qp_type = IBV_QPT_UC;
    init.srq = srq;
    EXPECT_EQ(ibv_create_qp(a->pd, &init), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Unreliable, SendsOverALinkThatIsDownCompleteOneAfterTheOther) {
    connect({.type = IBV_QPT_UC});
    ASSERT_EQ(simverbs_set_link("h0-s0", 0), 0);
    for (std::uint64_t round = 0; round < 3; ++round) {
        for (std::uint64_t id = 0; id < 2; ++id) {
            ASSERT_EQ(Request(IBV_WR_SEND).id(id).from(a->range(0, 64)).post(*a), 0);
        }
        EXPECT_EQ(a->wait().wr_id, 0U);
        EXPECT_EQ(a->wait().wr_id, 1U);
    }
    ASSERT_EQ(simverbs_set_link("h0-s0", 1), 0);
}

}  // namespace
}  // namespace verbs_test
