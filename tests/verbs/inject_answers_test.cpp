// simverbs_inject() of packets that nobody has sent: answers in the responder's name, marks and
// notifications of congestion.
#include "packet_fault.hpp"

namespace verbs_test {
namespace {

// ---- answers in somebody else's name

struct NakCase {
    simverbs_nak nak;
    ibv_wc_status status;
};
class NakByName : public PacketFault, public testing::WithParamInterface<NakCase> {};

TEST_P(NakByName, FailsTheRequestAndLeavesTheResponderAlone) {
    connect();
    simverbs_fault fault = on_request(SIMVERBS_FAULT_NAK, 2);
    fault.with.value = GetParam().nak;
    const std::uint32_t id = inject(fault);
    ASSERT_EQ(a->receive(9, {a->range(0, 8)}), 0);
    write(1, 1);
    write(2, 1, 2UL * kPacket);
    write(3, 1, 4UL * kPacket);
    expect(*a, 1, IBV_WC_SUCCESS);
    expect(*a, 2, GetParam().status);
    expect(*a, 3, IBV_WC_WR_FLUSH_ERR);
    expect(*a, 9, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(fired(id), 1U);
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
    EXPECT_TRUE(b->events().empty());
    EXPECT_EQ(*b->at(2UL * kPacket), 0) << "it was not delivered";
    expect_silence();
}

INSTANTIATE_TEST_SUITE_P(
    Codes, NakByName,
    testing::Values(NakCase{SIMVERBS_NAK_INVALID_REQUEST, IBV_WC_REM_INV_REQ_ERR},
                    NakCase{SIMVERBS_NAK_REMOTE_ACCESS, IBV_WC_REM_ACCESS_ERR},
                    NakCase{SIMVERBS_NAK_REMOTE_OPERATIONAL, IBV_WC_REM_OP_ERR}));

TEST_F(PacketFault, NakOfTheSequenceIsRetransmitted) {
    simverbs_fault fault = on_request(SIMVERBS_FAULT_NAK, 3);
    fault.with.value = SIMVERBS_NAK_PSN_SEQUENCE;
    expect_recovers(fault);
}

TEST_F(PacketFault, RnrNakMakesTheRequesterWait) {
    connect();
    simverbs_fault fault = on_request(SIMVERBS_FAULT_RNR_NAK, 1);
    fault.with.value = 20;  // 10.24 ms
    const std::uint32_t id = inject(fault);
    const std::int64_t before = now_us();
    write(1, 1);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(id), 1U);
    EXPECT_GE(now_us() - before, 10'240);
    expect_written(1);
    expect_both_live();
}

TEST_F(PacketFault, RnrNaksUseUpTheirRetries) {
    connect({.rnr_retries = 2});
    simverbs_fault fault = on_request(SIMVERBS_FAULT_RNR_NAK, 1);
    fault.count = SIMVERBS_EVERY;
    const std::uint32_t id = inject(fault);
    write(1, 1);
    expect(*a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(fired(id), 3U);
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
}

// ---- receives that are hidden from a message

class HiddenReceive : public PacketFault {
  protected:
    void exchange(std::uint64_t id) {
        ASSERT_EQ(b->receive(id, {b->range(0, 64)}), 0);
        ASSERT_EQ(Request(IBV_WR_SEND).id(id).from(a->range(0, 16)).post(*a), 0);
    }
};

TEST_F(HiddenReceive, IsAnsweredByTheResponderItself) {
    connect({.min_rnr_timer = 20});  // 10.24 ms
    const std::uint32_t id = inject(on_request(SIMVERBS_FAULT_NO_RECEIVE, 2));
    write(7, 1);
    exchange(1);
    const std::int64_t before = now_us();
    expect(*a, 7, IBV_WC_SUCCESS);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_GE(now_us() - before, 10'240);
    expect(*b, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(id), 1U);
    EXPECT_EQ(discarded("no receive posted"), 1U);
    expect_both_live();
}

TEST_F(HiddenReceive, UsesUpTheRetriesOfTheRequester) {
    connect({.rnr_retries = 2});
    simverbs_fault fault = on_request(SIMVERBS_FAULT_NO_RECEIVE, 0);
    fault.count = SIMVERBS_EVERY;
    const std::uint32_t id = inject(fault);
    exchange(1);
    expect(*a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(fired(id), 3U);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
    EXPECT_TRUE(b->drain().empty()) << "the receive is still posted";
}

// A message without acknowledgment is lost, and the receive is for the next one.
TEST_F(HiddenReceive, LosesAMessageOfUc) {
    connect({.type = IBV_QPT_UC});
    const std::uint32_t id = inject(on_request(SIMVERBS_FAULT_NO_RECEIVE, 1));
    exchange(1);
    expect(*a, 1, IBV_WC_SUCCESS);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 32)).post(*a), 0);
    const ibv_wc wc = b->wait();
    EXPECT_EQ(wc.wr_id, 1U);
    EXPECT_EQ(wc.byte_len, 32U);
    EXPECT_EQ(fired(id), 1U);
}

// A request that needs no receive is none of its.
TEST_F(HiddenReceive, IsOfRequestsThatNeedOne) {
    connect();
    const std::uint32_t id = inject(on_request(SIMVERBS_FAULT_NO_RECEIVE, 1));
    write(1, 1);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(id), 0U);
}

// ---- congestion

class RoceFault : public PacketFault {
  protected:
    void SetUp() override {
        PacketFault::SetUp();
        ASSERT_EQ(simverbs_restart(), 0);
        ASSERT_EQ(simverbs_set_topology("eth-star:2"), 0);
        watch();
    }
    void expect_slower(simverbs_fault_action action) {
        connect();
        constexpr std::uint32_t kPackets = 1000;
        const auto transfer = [this] {
            const std::int64_t from = now_us();
            for (std::uint64_t i = 0; i < 4; ++i) {
                write(i, kPackets);
                expect(*a, i, IBV_WC_SUCCESS);
            }
            return now_us() - from;
        };
        const std::int64_t free = transfer();
        simverbs_fault fault = on_request(action, 0);
        fault.count = SIMVERBS_EVERY;
        const std::uint32_t id = inject(fault);
        EXPECT_GT(transfer(), free * 5 / 4);
        EXPECT_GT(fired(id), 10U);
        expect_written(kPackets);
        expect_both_live();
    }
};

TEST_F(RoceFault, MarksOfCongestionSlowTheSenderDown) {
    expect_slower(SIMVERBS_FAULT_MARK_CONGESTION);
}

TEST_F(RoceFault, NotificationsOfCongestionSlowTheSenderDown) {
    expect_slower(SIMVERBS_FAULT_NOTIFY_CONGESTION);
}

TEST_F(RoceFault, CorruptionIsRetransmittedOnEthernetToo) {
    expect_recovers(on_request(SIMVERBS_FAULT_CORRUPT, 2));
    EXPECT_EQ(discarded("invariant CRC wrong"), 1U);
}

TEST_F(PacketFault, OfCongestionDoNotHappenOnInfiniband) {
    connect();
    const std::uint32_t id = inject(on_request(SIMVERBS_FAULT_MARK_CONGESTION, 0));
    write(1, 3);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(id), 0U);
}

}  // namespace
}  // namespace verbs_test
