// Rendezvous with tag matching: the device reads the data, or leaves it to software.
#include <cerrno>

#include "tag_matching.hpp"

namespace verbs_test {
namespace {

constexpr unsigned kMatched = IBV_WC_TM_MATCH;
constexpr unsigned kHasData = IBV_WC_TM_DATA_VALID;

class TagRendezvous : public TagMatching {
  protected:
    // Returns the header of the FIN that came to `a`.
    ibv_tmh await_fin() {
        ibv_wc wc = a->wait();
        while (wc.opcode == IBV_WC_SEND && wc.status == IBV_WC_SUCCESS) {
            wc = a->wait();
        }
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, IBV_WC_RECV);
        EXPECT_EQ(wc.byte_len, 16U);
        ibv_tmh fin{};
        std::memcpy(&fin, a->at(kFin), sizeof fin);
        return fin;
    }
    void post_fin_receive() { ASSERT_EQ(a->receive(99, {a->range(kFin, 64)}), 0); }
    void fill(std::size_t length) {
        for (std::size_t i = 0; i < length; ++i) {
            *a->at(kPayload + i) = static_cast<std::uint8_t>(i * 7 + (i >> 8U));
        }
        std::memset(b->at(0), 0, length + 1);
    }
    static constexpr std::size_t kFin = 1024;
};

TEST_F(TagRendezvous, TheDeviceReadsTheDataAndSendsAFin) {
    connect_tags();
    post_fin_receive();
    constexpr std::uint32_t kLength = 100'001;
    fill(kLength);
    ASSERT_EQ(add(7, 5, {b->range(0, kLength)}, kWholeTag, 0), 0);
    send_rendezvous(5, kLength, 0xCAFE);
    const TagCompletion matched = next();
    EXPECT_EQ(matched.wr_id, 7U);
    EXPECT_EQ(matched.opcode, IBV_WC_TM_RECV);
    EXPECT_EQ(matched.flags, kMatched);
    EXPECT_EQ(matched.tag, 5U);
    EXPECT_EQ(matched.priv, 0xCAFEU);
    const TagCompletion complete = next();
    EXPECT_EQ(complete.wr_id, 7U);
    EXPECT_EQ(complete.status, IBV_WC_SUCCESS);
    EXPECT_EQ(complete.flags, kHasData);
    EXPECT_EQ(complete.bytes, kLength);
    EXPECT_EQ(std::memcmp(b->at(0), a->at(kPayload), kLength), 0);
    EXPECT_EQ(*b->at(kLength), 0);
    const ibv_tmh fin = await_fin();
    EXPECT_EQ(fin.opcode, IBV_TMH_FIN);
    EXPECT_EQ(be32toh(fin.app_ctx), 0xCAFEU);
    EXPECT_EQ(be64toh(fin.tag), 5U);
}

TEST_F(TagRendezvous, OneWithoutDataIsAlsoAnswered) {
    connect_tags();
    post_fin_receive();
    ASSERT_EQ(add(7, 5, {}, kWholeTag, 0), 0);
    send_rendezvous(5, 0);
    EXPECT_EQ(next().flags, kMatched);
    const TagCompletion complete = next();
    EXPECT_EQ(complete.flags, kHasData);
    EXPECT_EQ(complete.bytes, 0U);
    EXPECT_EQ(await_fin().opcode, IBV_TMH_FIN);
}

TEST_F(TagRendezvous, AnUnexpectedOneGoesToSoftware) {
    connect_tags();
    ASSERT_EQ(b->receive(11, {b->range(0, 256)}), 0);
    send_rendezvous(5, 1000, 3);
    const TagCompletion received = next();
    EXPECT_EQ(received.wr_id, 11U);
    EXPECT_EQ(received.opcode, IBV_WC_TM_RECV);
    EXPECT_EQ(received.flags, 0U);
    EXPECT_EQ(received.bytes, 32U);
    EXPECT_EQ(a->wait().opcode, IBV_WC_SEND);
    expect_silence();
}

// More than max_rd_atomic at once, beside requests of the program's own.
TEST_F(TagRendezvous, ManyGoInOrderBesideThePrograms) {
    Connection with;
    with.reads = 2;
    with.cap.max_recv_wr = 64;
    TagLimits limits;
    limits.tags = 32;
    connect_tags(limits, with);
    constexpr std::uint32_t kLength = 3000;
    constexpr std::uint64_t kCount = 12;
    fill(std::size_t{kLength} * kCount);
    for (std::uint64_t i = 0; i < kCount; ++i) {
        post_fin_receive();
        ASSERT_EQ(a->receive(50, {a->range(kFin, 64)}), 0) << "of a message of the program";
        ASSERT_EQ(add(i, i, {b->range(i * kLength, kLength)}, kWholeTag, 0), 0);
    }
    for (std::uint64_t i = 0; i < kCount; ++i) {
        send_rendezvous(i, kLength, 0, kPayload + i * kLength);
        ASSERT_EQ(Request(IBV_WR_SEND).id(500 + i).from(b->range(0, 16)).post(*b), 0);
    }
    std::vector<std::uint64_t> complete;
    while (complete.size() < kCount) {
        const TagCompletion found = next();
        ASSERT_EQ(found.status, IBV_WC_SUCCESS);
        if (found.flags == kHasData) {
            complete.push_back(found.wr_id);
        }
    }
    for (std::uint64_t i = 0; i < kCount; ++i) {
        EXPECT_EQ(complete[i], i);
        const ibv_wc sent = b->wait();
        EXPECT_EQ(sent.wr_id, 500 + i) << "the program's own, each once";
        EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(std::memcmp(b->at(0), a->at(kPayload), std::size_t{kLength} * kCount), 0);
    EXPECT_TRUE(b->drain().empty());
}

TEST_F(TagRendezvous, LostPacketsAreSentAgain) {
    connect_tags();
    post_fin_receive();
    constexpr std::uint32_t kLength = 40'000;
    fill(kLength);
    ASSERT_EQ(add(7, 5, {b->range(0, kLength)}, kWholeTag, 0), 0);
    send_rendezvous(5, kLength);
    EXPECT_EQ(next().flags, kMatched);
    ASSERT_EQ(simverbs_set_link("h0-s0", 0), 0) << simverbs_last_error();
    pass(1);
    ASSERT_EQ(simverbs_set_link("h0-s0", 1), 0) << simverbs_last_error();
    const TagCompletion complete = next();
    EXPECT_EQ(complete.status, IBV_WC_SUCCESS);
    EXPECT_EQ(complete.bytes, kLength);
    EXPECT_EQ(std::memcmp(b->at(0), a->at(kPayload), kLength), 0);
    EXPECT_EQ(await_fin().opcode, IBV_TMH_FIN);
}

// ---- left to software: the tag is used up, the request lies in its buffer

class LeftToSoftware : public TagRendezvous {
  protected:
    void expect_left(std::uint32_t extra) {
        const TagCompletion left = next();
        EXPECT_EQ(left.wr_id, 7U);
        EXPECT_EQ(left.status, IBV_WC_TM_RNDV_INCOMPLETE);
        EXPECT_EQ(left.opcode, IBV_WC_TM_RECV);
        EXPECT_EQ(left.flags, kMatched | kHasData);
        EXPECT_EQ(left.bytes, 16U + extra);
        EXPECT_EQ(left.tag, 5U);
        EXPECT_EQ(left.priv, 3U);
        ibv_rvh seen{};
        std::memcpy(&seen, b->at(0), sizeof seen);
        EXPECT_EQ(be64toh(seen.va), a->address(kPayload));
        EXPECT_EQ(be32toh(seen.rkey), a->mr->rkey);
        EXPECT_EQ(b->state(), IBV_QPS_RTS);
        EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
        expect_silence();
    }
};

TEST_F(LeftToSoftware, WhatDoesNotFitIntoTheBuffer) {
    connect_tags();
    ASSERT_EQ(add(7, 5, {b->range(0, 999)}, kWholeTag, 0), 0);
    send_rendezvous(5, 1000, 3);
    expect_left(0);
}

TEST_F(LeftToSoftware, ARequestLongerThanTheDeviceTakes) {
    connect_tags();
    ASSERT_EQ(add(7, 5, {b->range(0, 1000)}, kWholeTag, 0), 0);
    send_rendezvous(5, 1000, 3, kPayload, 33);
    expect_left(33);
}

TEST_F(LeftToSoftware, ARequestOnAConnectionThatMayNotRead) {
    Connection with;
    with.reads = 0;
    connect_tags({}, with);
    ASSERT_EQ(add(7, 5, {b->range(0, 1000)}, kWholeTag, 0), 0);
    send_rendezvous(5, 1000, 3);
    expect_left(0);
}

TEST_F(TagRendezvous, TheLongestRequestThatTheDeviceTakes) {
    connect_tags();
    post_fin_receive();
    ASSERT_EQ(add(7, 5, {b->range(0, 1000)}, kWholeTag, 0), 0);
    send_rendezvous(5, 1000, 3, kPayload, 32);
    EXPECT_EQ(next().flags, kMatched);
    EXPECT_EQ(next().flags, kHasData);
}

// ---- what fails

TEST_F(TagRendezvous, AReadThatTheSenderRefusesFailsTheTagAndTheQueuePair) {
    connect_tags();
    ASSERT_EQ(add(7, 5, {b->range(0, 1000)}, kWholeTag, 0), 0);
    send_rendezvous(5, 1000, 3, End::kBytes - 10);
    EXPECT_EQ(next().flags, kMatched);
    const TagCompletion failed = next();
    EXPECT_EQ(failed.wr_id, 7U);
    EXPECT_EQ(failed.status, IBV_WC_TM_RNDV_INCOMPLETE);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
}

TEST_F(TagRendezvous, ABufferThatIsNoMoreFailsTheTagAndTheQueuePair) {
    connect_tags();
    ibv_mr* mr = ibv_reg_mr(b->pd, b->at(0), 4096, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(mr, nullptr);
    ASSERT_EQ(add(7, 5, {{b->address(0), 1000, mr->lkey}}, kWholeTag, 0), 0);
    ASSERT_EQ(ibv_dereg_mr(mr), 0);
    send_rendezvous(5, 1000, 3);
    EXPECT_EQ(next().flags, kMatched);
    EXPECT_EQ(next().status, IBV_WC_TM_RNDV_INCOMPLETE);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
}

TEST_F(TagRendezvous, AQueuePairThatStopsGivesUpWhatItWasReading) {
    connect_tags();
    for (const std::uint64_t id : {1, 2}) {
        ASSERT_EQ(add(id, id, {b->range(0, 1U << 18U)}, kWholeTag, 0), 0);
        send_rendezvous(id, 1U << 18U);
        EXPECT_EQ(next().flags, kMatched);
    }
    ASSERT_EQ(b->to_state(IBV_QPS_ERR), 0);
    for (const std::uint64_t id : {1, 2}) {
        const TagCompletion failed = next();
        EXPECT_EQ(failed.wr_id, id);
        EXPECT_EQ(failed.status, IBV_WC_TM_RNDV_INCOMPLETE);
    }
    pass(1);
    EXPECT_FALSE(poll());
}

TEST_F(TagRendezvous, AQueuePairThatIsDestroyedGivesItsTagsBack) {
    TagLimits limits;
    limits.tags = 1;
    connect_tags(limits);
    ASSERT_EQ(add(1, 1, {b->range(0, 1U << 18U)}, kWholeTag, 0), 0);
    send_rendezvous(1, 1U << 18U);
    EXPECT_EQ(next().flags, kMatched);
    ASSERT_EQ(ibv_destroy_qp(b->qp), 0);
    b->qp = nullptr;
    EXPECT_FALSE(poll()) << "its completions went with it";
    EXPECT_EQ(add(2, 1, {b->range(0, 64)}, kWholeTag, 0), 0);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = b->cq;
    init.srq = tags;
    init.cap = Connection{}.cap;
    init.qp_type = IBV_QPT_RC;
    b->qp = ibv_create_qp(b->pd, &init);
    ASSERT_NE(b->qp, nullptr);
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    bring_up({});
    send_eager(1, 8);
    const TagCompletion received = next();
    EXPECT_EQ(received.wr_id, 2U);
    EXPECT_EQ(received.qp_num, b->qp->qp_num);
}

TEST_F(TagRendezvous, AsConnectX6) {
    ASSERT_EQ(simverbs_set_personality("connectx6"), 0) << simverbs_last_error();
    connect_tags();
    post_fin_receive();
    fill(70'000);
    ASSERT_EQ(add(7, 5, {b->range(0, 70'000)}, kWholeTag, 0), 0);
    send_rendezvous(5, 70'000);
    EXPECT_EQ(next().flags, kMatched);
    EXPECT_EQ(next().flags, kHasData);
    EXPECT_EQ(std::memcmp(b->at(0), a->at(kPayload), 70'000), 0);
    EXPECT_EQ(await_fin().opcode, IBV_TMH_FIN);
    ASSERT_EQ(add(7, 5, {b->range(0, 10)}, kWholeTag, 0), 0);
    send_rendezvous(5, 11);
    const TagCompletion left = next();
    EXPECT_EQ(left.status, IBV_WC_LOC_LEN_ERR) << "no room for the request either";
}

TEST_F(TagRendezvous, ASenderThatTakesNoFinIsAskedAgain) {
    connect_tags();
    ASSERT_EQ(add(7, 5, {b->range(0, 1000)}, kWholeTag, 0), 0);
    send_rendezvous(5, 1000, 3);
    EXPECT_EQ(next().flags, kMatched);
    EXPECT_EQ(next().flags, kHasData);
    pass(1);
    post_fin_receive();
    EXPECT_EQ(await_fin().opcode, IBV_TMH_FIN);
}

}  // namespace
}  // namespace verbs_test
