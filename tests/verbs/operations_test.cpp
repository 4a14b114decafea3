// Each operation of the reliable-connected service, done right: data, completions on both sides.
#include <cstring>
#include <numeric>

#include <arpa/inet.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

constexpr std::uint32_t kLong = 5000;  // five packets at an MTU of 1024

class RcOperation : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        connect();
        std::iota(a->at(0), a->at(kLong), std::uint8_t{1});
        std::iota(b->at(0), b->at(kLong), std::uint8_t{101});
    }

    bool equal(std::size_t offset_a, std::size_t offset_b, std::size_t length) {
        return std::memcmp(a->at(offset_a), b->at(offset_b), length) == 0;
    }
    void expect_sent(ibv_wc_opcode opcode, std::uint64_t id) {
        const ibv_wc wc = a->wait();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, opcode);
        EXPECT_EQ(wc.wr_id, id);
        EXPECT_EQ(wc.qp_num, a->qp->qp_num);
        EXPECT_EQ(wc.wc_flags, 0U);
    }
    ibv_wc expect_received(ibv_wc_opcode opcode, std::uint64_t id, std::uint32_t bytes) {
        const ibv_wc wc = b->wait();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, opcode);
        EXPECT_EQ(wc.wr_id, id);
        EXPECT_EQ(wc.byte_len, bytes);
        EXPECT_EQ(wc.qp_num, b->qp->qp_num);
        return wc;
    }
};

TEST_F(RcOperation, SendFillsTheReceive) {
    ASSERT_EQ(b->receive(7, {b->range(65536, kLong)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(3).from(a->range(0, kLong)).post(*a), 0);
    const ibv_wc wc = expect_received(IBV_WC_RECV, 7, kLong);
    EXPECT_EQ(wc.wc_flags, 0U);
    expect_sent(IBV_WC_SEND, 3);
    EXPECT_TRUE(equal(0, 65536, kLong));
    expect_silence();
}

TEST_F(RcOperation, SendWithImmediateCarriesIt) {
    ASSERT_EQ(b->receive(7, {b->range(65536, 64)}), 0);
    ASSERT_EQ(
        Request(IBV_WR_SEND_WITH_IMM).id(3).immediate(0xCAFE0123).from(a->range(0, 64)).post(*a),
        0);
    const ibv_wc wc = expect_received(IBV_WC_RECV, 7, 64);
    EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
    EXPECT_EQ(ntohl(wc.imm_data), 0xCAFE0123);
    expect_sent(IBV_WC_SEND, 3);
}

TEST_F(RcOperation, SendGathersAndTheReceiveScatters) {
    ASSERT_EQ(b->receive(1, {b->range(9000, 10), b->range(9100, 1500), b->range(12000, 2000)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND)
                  .from(a->range(0, 1000))
                  .from(a->range(2000, 1))
                  .from(a->range(3000, 999))
                  .post(*a),
              0);
    expect_received(IBV_WC_RECV, 1, 2000);
    expect_sent(IBV_WC_SEND, 0);
    std::vector<std::uint8_t> sent(a->at(0), a->at(1000));
    sent.push_back(*a->at(2000));
    sent.insert(sent.end(), a->at(3000), a->at(3999));
    std::vector<std::uint8_t> got(b->at(9000), b->at(9010));
    got.insert(got.end(), b->at(9100), b->at(10600));
    got.insert(got.end(), b->at(12000), b->at(12490));
    EXPECT_EQ(got, sent);
}

TEST_F(RcOperation, SendOfNothingCompletesAReceiveOfNothing) {
    ASSERT_EQ(b->receive(7, {}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(3).post(*a), 0);
    expect_received(IBV_WC_RECV, 7, 0);
    expect_sent(IBV_WC_SEND, 3);
}

TEST_F(RcOperation, WriteLandsWithoutACompletionAtThePeer) {
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .id(4)
                  .from(a->range(0, kLong))
                  .to(b->address(65536), b->mr->rkey)
                  .post(*a),
              0);
    expect_sent(IBV_WC_RDMA_WRITE, 4);
    EXPECT_TRUE(equal(0, 65536, kLong));
    expect_silence();
}

TEST_F(RcOperation, WriteWithImmediateTakesAReceiveButNotItsMemory) {
    std::memset(b->at(32768), 0x77, 64);
    ASSERT_EQ(b->receive(8, {b->range(32768, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE_WITH_IMM)
                  .id(4)
                  .immediate(42)
                  .from(a->range(0, kLong))
                  .to(b->address(65536), b->mr->rkey)
                  .post(*a),
              0);
    const ibv_wc wc = expect_received(IBV_WC_RECV_RDMA_WITH_IMM, 8, kLong);
    EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
    EXPECT_EQ(ntohl(wc.imm_data), 42U);
    expect_sent(IBV_WC_RDMA_WRITE, 4);
    EXPECT_TRUE(equal(0, 65536, kLong));
    EXPECT_EQ(*b->at(32768), 0x77);
}

TEST_F(RcOperation, ReadFetchesIntoScatteredMemory) {
    ASSERT_EQ(Request(IBV_WR_RDMA_READ)
                  .id(5)
                  .into(a->range(65536, 3000))
                  .into(a->range(70000, 2000))
                  .to(b->address(0), b->mr->rkey)
                  .post(*a),
              0);
    const ibv_wc wc = a->wait();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_RDMA_READ);
    EXPECT_EQ(wc.byte_len, kLong);
    EXPECT_TRUE(equal(65536, 0, 3000));
    EXPECT_TRUE(equal(70000, 3000, 2000));
    expect_silence();
}

TEST_F(RcOperation, CompareAndSwapStoresOnlyOnAMatch) {
    b->word(4096) = 10;
    const auto swap = [this](std::uint64_t expected, std::uint64_t value) {
        EXPECT_EQ(Request(IBV_WR_ATOMIC_CMP_AND_SWP)
                      .id(6)
                      .into(a->range(8192, 8))
                      .compare_and_swap(b->address(4096), b->mr->rkey, expected, value)
                      .post(*a),
                  0);
        const ibv_wc wc = a->wait();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, IBV_WC_COMP_SWAP);
        EXPECT_EQ(wc.byte_len, 8U);
        return a->word(8192);
    };
    EXPECT_EQ(swap(10, 20), 10U);
    EXPECT_EQ(b->word(4096), 20U);
    EXPECT_EQ(swap(10, 30), 20U);
    EXPECT_EQ(b->word(4096), 20U);
}

TEST_F(RcOperation, FetchAndAddReturnsWhatWasThere) {
    b->word(4096) = ~std::uint64_t{0};
    ASSERT_EQ(Request(IBV_WR_ATOMIC_FETCH_AND_ADD)
                  .id(6)
                  .into(a->range(8192, 8))
                  .fetch_and_add(b->address(4096), b->mr->rkey, 3)
                  .post(*a),
              0);
    expect_sent(IBV_WC_FETCH_ADD, 6);
    EXPECT_EQ(a->word(8192), ~std::uint64_t{0});
    EXPECT_EQ(b->word(4096), 2U);
}

TEST_F(RcOperation, AtomicsLandInSeveralSegmentsOfEightBytesTogether) {
    b->word(4096) = 0x1122334455667788;
    ASSERT_EQ(Request(IBV_WR_ATOMIC_FETCH_AND_ADD)
                  .into(a->range(8192, 3))
                  .into(a->range(9000, 5))
                  .fetch_and_add(b->address(4096), b->mr->rkey, 1)
                  .post(*a),
              0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(*a->at(8192), 0x88);
    EXPECT_EQ(*a->at(9004), 0x11);
}

TEST_F(RcOperation, InlineDataIsTakenWhenItIsPosted) {
    ASSERT_EQ(b->receive(7, {b->range(65536, 256)}), 0);
    ibv_sge segment{a->address(0), 256, 0xBAD};  // inline data needs no key
    ASSERT_EQ(Request(IBV_WR_SEND).id(3).with(IBV_SEND_INLINE).from(segment).post(*a), 0);
    std::memset(a->at(0), 0, 256);
    expect_received(IBV_WC_RECV, 7, 256);
    expect_sent(IBV_WC_SEND, 3);
    EXPECT_EQ(*b->at(65536), 1);
    EXPECT_EQ(*b->at(65536 + 100), 101);
}

TEST_F(RcOperation, InlineWritesToo) {
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .with(IBV_SEND_INLINE)
                  .from(a->range(0, 100))
                  .from(a->range(200, 100))
                  .to(b->address(65536), b->mr->rkey)
                  .post(*a),
              0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(equal(0, 65536, 100));
    EXPECT_TRUE(equal(200, 65636, 100));
}

TEST_F(RcOperation, MoreInlineDataThanGrantedIsRefusedAtOnce) {
    EXPECT_EQ(Request(IBV_WR_SEND).with(IBV_SEND_INLINE).from(a->range(0, 257)).post(*a), EINVAL);
    expect_works();
}

TEST_F(RcOperation, AMebibyteAtTheLargestMtu) {
    a.reset();
    b.reset();
    connect({.mtu = IBV_MTU_4096});
    constexpr std::uint32_t kHalf = End::kBytes / 2;
    for (std::size_t i = 0; i < kHalf / 8; ++i) {
        a->word(8 * i) = i * 0x9E3779B97F4A7C15;
    }
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .from(a->range(0, kHalf))
                  .to(b->address(kHalf), b->mr->rkey)
                  .post(*a),
              0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(equal(0, kHalf, kHalf));
}

TEST_F(RcOperation, RequestsOfAListAreDoneInOrder) {
    std::vector<ibv_send_wr> list(8);
    std::vector<ibv_sge> segments;
    for (std::uint32_t i = 0; i < list.size(); ++i) {
        segments.push_back(a->range(i, 1));
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
        list[i].wr_id = i;
        list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
        list[i].sg_list = &segments[i];
        list[i].num_sge = 1;
        list[i].opcode = i % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
        list[i].send_flags = IBV_SEND_SIGNALED;
        list[i].wr.rdma = {b->address(65536 + i), b->mr->rkey};
    }
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(a->qp, list.data(), &bad), 0);
    for (std::size_t i = 0; i < list.size(); ++i) {
        const ibv_wc wc = a->wait();
        EXPECT_EQ(wc.wr_id, i);
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    }
}

TEST_F(RcOperation, RequestsBeforeABadOneOfAListAreDone) {
    ibv_sge one = a->range(0, 8);
    std::vector<ibv_send_wr> list(3);
    for (std::size_t i = 0; i < list.size(); ++i) {
        list[i].wr_id = i;
        list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
        list[i].sg_list = &one;
        list[i].num_sge = i == 1 ? 5 : 1;  // more than max_send_sge
        list[i].opcode = IBV_WR_RDMA_WRITE;
        list[i].send_flags = IBV_SEND_SIGNALED;
        list[i].wr.rdma = {b->address(65536), b->mr->rkey};
    }
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(a->qp, list.data(), &bad), EINVAL);
    EXPECT_EQ(bad, &list[1]);
    EXPECT_EQ(a->wait().wr_id, 0U);
    expect_silence();
}

TEST_F(RcOperation, AFenceWaitsForTheReadBeforeIt) {
    // The WRITE takes from where the READ lands: without the fence it would send what was there.
    std::memset(a->at(65536), 0, kLong);
    ASSERT_EQ(Request(IBV_WR_RDMA_READ)
                  .id(1)
                  .into(a->range(65536, kLong))
                  .to(b->address(0), b->mr->rkey)
                  .post(*a),
              0);
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .id(2)
                  .with(IBV_SEND_FENCE)
                  .from(a->range(65536, kLong))
                  .to(b->address(131072), b->mr->rkey)
                  .post(*a),
              0);
    EXPECT_EQ(a->wait().wr_id, 1U);
    EXPECT_EQ(a->wait().wr_id, 2U);
    EXPECT_EQ(std::memcmp(b->at(0), b->at(131072), kLong), 0);
}

TEST_F(RcOperation, MoreReadsThanTheInitiatorDepthWaitTheirTurn) {
    a.reset();
    b.reset();
    connect({.reads = 1});
    for (std::uint64_t i = 0; i < 8; ++i) {
        b->word(8 * i) = i + 50;
        ASSERT_EQ(Request(IBV_WR_RDMA_READ)
                      .id(i)
                      .into(a->range(8 * i, 8))
                      .to(b->address(8 * i), b->mr->rkey)
                      .post(*a),
                  0);
    }
    for (std::uint64_t i = 0; i < 8; ++i) {
        const ibv_wc wc = a->wait();
        EXPECT_EQ(wc.wr_id, i);
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(a->word(8 * i), i + 50);
    }
}

TEST_F(RcOperation, BothDirectionsAtOnce) {
    ASSERT_EQ(a->receive(1, {a->range(32768, kLong)}), 0);
    ASSERT_EQ(b->receive(2, {b->range(32768, kLong)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(3).from(a->range(0, kLong)).post(*a), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(4).from(b->range(0, kLong)).post(*b), 0);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
        EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
    }
    EXPECT_TRUE(equal(0, 32768, kLong));
    EXPECT_TRUE(equal(32768, 0, kLong));
}

TEST_F(RcOperation, AQueuePairMayTalkToItself) {
    b.reset();
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    ibv_qp_attr attr = init_attr({});
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kInitMask), 0);
    attr = rtr_attr(*a, {});
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kRtrMask), 0);
    attr = rts_attr({});
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kRtsMask), 0);
    ASSERT_EQ(a->receive(1, {a->range(32768, kLong)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, kLong)).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(a->at(0), a->at(32768), kLong), 0);
}

TEST_F(RcOperation, TheFirstPacketInRtrSaysCommunicationEstablished) {
    a.reset();
    b.reset();
    const Connection with;
    a = std::make_unique<End>(0, with);
    b = std::make_unique<End>(1, with);
    bring_up(with);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    ibv_qp_attr attr = init_attr(with);
    ASSERT_EQ(ibv_modify_qp(b->qp, &attr, kInitMask), 0);
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    attr = rtr_attr(*a, with);
    ASSERT_EQ(ibv_modify_qp(b->qp, &attr, kRtrMask), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 64)).post(*a), 0);
    EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_COMM_EST});
}

}  // namespace
}  // namespace verbs_test
