// simverbs_inject() on packets: how they are addressed, each action on a packet of the
// requester's with what follows on both sides, and that runs repeat themselves.
#include "packet_fault.hpp"

namespace verbs_test {
namespace {

// ---- addressing

TEST_F(PacketFault, NamesThePacketThatItHit) {
    connect();
    const std::uint32_t id = inject(on_request(SIMVERBS_FAULT_DROP, 3));
    write(1, 5);
    expect(*a, 1, IBV_WC_SUCCESS);
    expect_written(5);
    ASSERT_EQ(firings.size(), 1U);
    EXPECT_EQ(firings[0].fault, id);
    EXPECT_EQ(firings[0].node, "h0");
    EXPECT_EQ(firings[0].action, "drop");
    EXPECT_EQ(firings[0].operation, "RDMA_WRITE_MIDDLE");
    EXPECT_EQ(firings[0].psn, 3U);
    EXPECT_EQ(firings[0].flow, a->qp->qp_num);
}

TEST_F(PacketFault, CountsAttempts) {
    connect();
    simverbs_fault fault = on_request(SIMVERBS_FAULT_DROP, 2);
    std::vector<std::uint32_t> ids;
    for (const std::uint32_t attempt : {1U, 2U, 3U, 5U}) {
        fault.match.attempt = attempt;
        ids.push_back(inject(fault));
    }
    write(1, 3);
    expect(*a, 1, IBV_WC_SUCCESS);
    expect_written(3);
    EXPECT_EQ(fired(ids[0]), 1U);
    EXPECT_EQ(fired(ids[1]), 1U);
    EXPECT_EQ(fired(ids[2]), 1U);
    EXPECT_EQ(fired(ids[3]), 0U) << "the fourth got through";
}

// Whatever the fault asks for; requests and responses.
TEST_F(PacketFault, RecordsTellWhichTransmissionItHit) {
    connect();
    simverbs_fault request = on_request(SIMVERBS_FAULT_DROP, 2);
    request.count = 3;
    inject(request);
    write(1, 3);
    expect(*a, 1, IBV_WC_SUCCESS);
    ASSERT_EQ(firings.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(firings[i].attempt, i + 1);
    }
    firings.clear();
    simverbs_fault response = fault_of(SIMVERBS_FAULT_DROP);
    response.match.from = "h1";
    response.match.qp_num = a->qp->qp_num;
    response.match.direction = SIMVERBS_RESPONSES;
    response.count = 2;
    inject(response);
    write(1, 1);
    expect(*a, 1, IBV_WC_SUCCESS);
    ASSERT_EQ(firings.size(), 2U);
    EXPECT_EQ(firings[0].attempt, 1U);
    EXPECT_EQ(firings[1].attempt, 2U);
}

TEST_F(PacketFault, TellsQueuePairsByTheirOrder) {
    connect();
    simverbs_fault fault = on_request(SIMVERBS_FAULT_DROP, 1);
    fault.match.qp = 2;
    const std::uint32_t second = inject(fault);
    fault.match.qp = 0;
    fault.match.qp_num = a->qp->qp_num;
    const std::uint32_t first = inject(fault);
    write(1, 1);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(second), 0U);
    EXPECT_EQ(fired(first), 1U);
}

// A response is of the queue pair that asked, and its PSN is of the request.
TEST_F(PacketFault, FindsAnswersByWhoAsked) {
    connect();
    simverbs_fault fault = fault_of(SIMVERBS_FAULT_DROP);
    fault.match.from = "h1";
    fault.match.to = "h0";
    fault.match.qp_num = a->qp->qp_num;
    fault.match.direction = SIMVERBS_RESPONSES;
    fault.match.opcode = "ACKNOWLEDGE";
    fault.match.psn = 1;
    const std::uint32_t id = inject(fault);
    write(1, 1);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(id), 1U);
    ASSERT_EQ(firings.size(), 1U);
    EXPECT_EQ(firings[0].node, "h1");
    EXPECT_EQ(firings[0].operation, "ACKNOWLEDGE");
    EXPECT_GT(now_us(), 60'000) << "the acknowledgment timer";
}

TEST_F(PacketFault, KnowsOperationsByTheBeginningOfTheirName) {
    connect();
    simverbs_fault fault = fault_of(SIMVERBS_FAULT_MARK);
    fault.count = SIMVERBS_EVERY;
    fault.match.opcode = "RDMA_WRITE";
    const std::uint32_t writes = inject(fault);
    fault.match.opcode = "SEND";
    const std::uint32_t sends = inject(fault);
    fault.match.opcode = "MAD";
    const std::uint32_t datagrams = inject(fault);
    fault.match.opcode = nullptr;
    fault.match.link = "s0-h1";
    fault.match.transmitter = "s0";
    const std::uint32_t on_link = inject(fault);
    write(1, 3);
    expect(*a, 1, IBV_WC_SUCCESS);
    expect_works();
    EXPECT_EQ(fired(writes), 3U);
    EXPECT_EQ(fired(sends), 1U);
    EXPECT_EQ(fired(datagrams), 0U);
    EXPECT_EQ(fired(on_link), 4U);
}

TEST_F(PacketFault, KeepsToItsWindowOfTimeAndItsPlaceInTheOrder) {
    connect();
    simverbs_fault fault = on_request(SIMVERBS_FAULT_MARK, 0);
    fault.nth = 2;
    fault.count = 2;
    const std::uint32_t counted = inject(fault);
    fault.nth = 0;
    fault.count = SIMVERBS_EVERY;
    fault.from_ps = (now_us() + 1'000) * kMicrosecond;
    fault.until_ps = fault.from_ps + kMillisecond;
    const std::uint32_t timed = inject(fault);
    write(1, 5);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(timed), 0U);
    ASSERT_EQ(firings.size(), 2U);
    EXPECT_EQ(firings[0].psn, 2U);
    EXPECT_EQ(firings[1].psn, 3U);
    EXPECT_EQ(fired(counted), 2U);
    pass(1);
    write(2, 5);
    expect(*a, 2, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(timed), 5U);
    pass(2);
    write(3, 5);
    expect(*a, 3, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(timed), 5U);
}

TEST_F(PacketFault, SleepsUntilAnotherHasFired) {
    connect();
    const std::uint32_t first = inject(on_request(SIMVERBS_FAULT_MARK, 2));
    simverbs_fault fault = on_request(SIMVERBS_FAULT_DROP, 0);
    fault.match.opcode = "SEND";
    fault.after = first;
    const std::uint32_t second = inject(fault);
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(1).from(a->range(0, 8)).post(*a), 0);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(second), 0U);
    write(2, 1);
    expect(*a, 2, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(first), 1U);
    ASSERT_EQ(b->receive(3, {b->range(0, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(3).from(a->range(0, 8)).post(*a), 0);
    expect(*a, 3, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(second), 1U);
}

// ---- chance

TEST_F(PacketFault, ByChanceIsOfTheSeed) {
    const auto lossy = [this](std::uint64_t seed) {
        a.reset();
        b.reset();
        EXPECT_EQ(simverbs_restart(), 0);
        EXPECT_EQ(simverbs_set_seed(seed), 0);
        connect();
        simverbs_fault fault = on_request(SIMVERBS_FAULT_DROP, 0);
        fault.chance = 1;
        fault.chance_of = 10;
        const std::uint32_t id = inject(fault);
        for (std::uint64_t i = 1; i <= 20; ++i) {
            write(i, 10);
            expect(*a, i, IBV_WC_SUCCESS);
        }
        expect_written(10);
        const std::uint64_t lost = fired(id);
        EXPECT_GT(lost, 5U);
        EXPECT_LT(lost, 80U);
        return run_digest();
    };
    const std::uint64_t first = lossy(1);
    EXPECT_EQ(lossy(1), first);
    EXPECT_NE(lossy(2), first);
}

// ---- what is done to them

TEST_F(PacketFault, DropIsRetransmitted) {
    expect_recovers(on_request(SIMVERBS_FAULT_DROP, 3));
}

TEST_F(PacketFault, CorruptPacketsFailTheirCrcAndAreRetransmitted) {
    simverbs_fault fault = on_request(SIMVERBS_FAULT_CORRUPT, 3);
    fault.with.offset = 40;
    fault.with.bits = 0x10;
    expect_recovers(fault);
    EXPECT_EQ(discarded("invariant CRC wrong"), 1U);
}

TEST_F(PacketFault, CorruptionOfAByteThatIsNotThereDoesNotHappen) {
    connect();
    simverbs_fault fault = on_request(SIMVERBS_FAULT_CORRUPT, 0);
    fault.with.offset = 5000;
    const std::uint32_t id = inject(fault);
    write(1, 2);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(id), 0U);
}

TEST_F(PacketFault, DelayLetsOthersPass) {
    simverbs_fault fault = on_request(SIMVERBS_FAULT_DELAY, 3);
    fault.with.duration_ps = 50 * kMicrosecond;
    expect_recovers(fault);
}

// The sender may do with its buffer what it wants once it has the completion: the delayed copy
// still carries what was sent.
TEST_F(PacketFault, DelayedPayloadIsTheOneThatWasSent) {
    connect({.type = IBV_QPT_UC});
    simverbs_fault fault = on_request(SIMVERBS_FAULT_DELAY, 1);
    fault.with.duration_ps = kMillisecond;
    inject(fault);
    write(1, 1);
    expect(*a, 1, IBV_WC_SUCCESS);
    std::memset(a->at(0), 0xEE, kPacket);
    pass(2);
    EXPECT_EQ(*b->at(0), 1);
    EXPECT_EQ(*b->at(kPacket - 1), 1);
}

TEST_F(PacketFault, ReorderSwapsNeighbours) {
    expect_recovers(on_request(SIMVERBS_FAULT_REORDER, 3));
}

TEST_F(PacketFault, ReorderedDatagramsArriveInTheOtherOrder) {
    connect({.type = IBV_QPT_UD});
    inject(on_request(SIMVERBS_FAULT_REORDER, 1));
    for (std::uint64_t i = 1; i <= 2; ++i) {
        ASSERT_EQ(b->receive(i, {b->range(i * 128, 128)}), 0);
        *a->at(i) = static_cast<std::uint8_t>(i);
        ASSERT_EQ(Request(IBV_WR_SEND)
                      .id(i)
                      .from(a->range(i, 1))
                      .to(a->ah, b->qp->qp_num, 0x11111111)
                      .post(*a),
                  0);
    }
    expect(*b, 1, IBV_WC_SUCCESS);
    expect(*b, 2, IBV_WC_SUCCESS);
    EXPECT_EQ(*b->at(128 + 40), 2);
    EXPECT_EQ(*b->at(256 + 40), 1);
}

TEST_F(PacketFault, HoldKeepsUntilItIsReleased) {
    connect({.type = IBV_QPT_UC});
    simverbs_fault fault = on_request(SIMVERBS_FAULT_HOLD, 0);
    fault.count = 2;
    const std::uint32_t held = inject(fault);
    write(1, 1);
    write(2, 1, 2UL * kPacket);
    expect(*a, 1, IBV_WC_SUCCESS);
    expect(*a, 2, IBV_WC_SUCCESS);
    pass(1'000);
    EXPECT_EQ(*b->at(0), 0);
    simverbs_fault release = fault_of(SIMVERBS_FAULT_RELEASE);
    release.target.fault = held;
    inject(release);
    pass(1);
    EXPECT_EQ(*b->at(0), 1);
    EXPECT_EQ(*b->at(2UL * kPacket), 1);
}

TEST_F(PacketFault, HoldEndsWhenItIsTakenBack) {
    connect({.type = IBV_QPT_UC});
    const std::uint32_t held = inject(on_request(SIMVERBS_FAULT_HOLD, 1));
    write(1, 1);
    pass(1);
    EXPECT_EQ(*b->at(0), 0);
    ASSERT_EQ(simverbs_clear_fault(held), 0);
    pass(1);
    EXPECT_EQ(*b->at(0), 1);
}

// The flag of the second WRITE is there before the data of the first.
TEST_F(PacketFault, LandsOutOfOrder) {
    connect();
    simverbs_fault fault = on_request(SIMVERBS_FAULT_LAND_LATE, 1);
    fault.with.duration_ps = 100 * kMicrosecond;
    const std::uint32_t id = inject(fault);
    write(1, 1);
    write(2, 1, 4UL * kPacket);
    expect(*a, 1, IBV_WC_SUCCESS);
    expect(*a, 2, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(id), 1U);
    EXPECT_EQ(*b->at(4UL * kPacket), 1) << "the flag";
    EXPECT_EQ(*b->at(0), 0) << "the data";
    std::memset(a->at(0), 0xEE, kPacket);
    pass(1);
    EXPECT_EQ(*b->at(0), 1) << "what was sent";
    expect_both_live();
}

TEST_F(PacketFault, WhatLandsLateLandsBeforeItsRegionEnds) {
    connect();
    simverbs_fault fault = on_request(SIMVERBS_FAULT_LAND_LATE, 1);
    fault.with.duration_ps = kMillisecond;
    inject(fault);
    ibv_mr* extra = ibv_reg_mr(b->pd, b->at(0), kPacket, static_cast<int>(kAllAccess));
    write(1, 1);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(*b->at(0), 0);
    ASSERT_EQ(ibv_dereg_mr(extra), 0);
    EXPECT_EQ(*b->at(0), 1);
}

TEST_F(PacketFault, RewrittenPsnIsASequenceError) {
    simverbs_fault fault = on_request(SIMVERBS_FAULT_REWRITE, 3);
    fault.with.field = SIMVERBS_HEADER_PSN;
    fault.with.value = kPsn + 9;
    expect_recovers(fault);
}

TEST_F(PacketFault, RewrittenDestinationIsLostThere) {
    simverbs_fault fault = on_request(SIMVERBS_FAULT_REWRITE, 3);
    fault.with.field = SIMVERBS_HEADER_DEST_QP;
    fault.with.value = 0x123456;
    expect_recovers(fault);
    EXPECT_EQ(discarded("no such queue pair"), 1U);
}

TEST_F(PacketFault, RewrittenPkeyIsDropped) {
    simverbs_fault fault = on_request(SIMVERBS_FAULT_REWRITE, 3);
    fault.with.field = SIMVERBS_HEADER_PKEY;
    fault.with.value = 0x8123;
    expect_recovers(fault);
    EXPECT_EQ(discarded("P_Key mismatch"), 1U);
}

TEST_F(PacketFault, RewrittenRkeyIsARemoteAccessError) {
    connect();
    simverbs_fault fault = on_request(SIMVERBS_FAULT_REWRITE, 0);
    fault.with.field = SIMVERBS_HEADER_RKEY;
    fault.with.value = 0xDEAD00;
    inject(fault);
    write(1, 2);
    expect(*a, 1, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_QP_ACCESS_ERR});
    EXPECT_EQ(*b->at(0), 0);
}

TEST_F(PacketFault, RewrittenSyndromeRefusesWhatWasDone) {
    connect();
    simverbs_fault fault = fault_of(SIMVERBS_FAULT_REWRITE);
    fault.match.opcode = "ACKNOWLEDGE";
    fault.with.field = SIMVERBS_HEADER_SYNDROME;
    fault.with.value = 0x63;  // NAK, remote operational error
    inject(fault);
    write(1, 1);
    expect(*a, 1, IBV_WC_REM_OP_ERR);
    expect_written(1);
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
}

// ---- again

TEST_F(PacketFault, RepeatsItself) {
    expect_repeats([this] {
        connect();
        for (const auto action :
             {SIMVERBS_FAULT_DROP, SIMVERBS_FAULT_CORRUPT, SIMVERBS_FAULT_DUPLICATE,
              SIMVERBS_FAULT_DELAY, SIMVERBS_FAULT_REORDER, SIMVERBS_FAULT_LAND_LATE}) {
            simverbs_fault fault = on_request(action, 0);
            fault.chance = 1;
            fault.chance_of = 12;
            const bool is_late = action != SIMVERBS_FAULT_DROP && action != SIMVERBS_FAULT_CORRUPT;
            fault.with.duration_ps = is_late ? 3 * kMicrosecond : 0;
            inject(fault);
        }
        for (std::uint64_t i = 1; i <= 10; ++i) {
            write(i, 20);
            expect(*a, i, IBV_WC_SUCCESS);
        }
        pass(1);
        expect_written(20);
    });
}

TEST_F(PacketFault, ClearedAllTogetherDoesNotHappen) {
    connect();
    const std::uint32_t first = inject(on_request(SIMVERBS_FAULT_DROP, 1));
    inject(on_request(SIMVERBS_FAULT_HOLD, 2));
    ASSERT_EQ(simverbs_clear_faults(), 0);
    std::uint64_t count = 0;
    EXPECT_EQ(simverbs_fault_fired(first, &count), ENOENT);
    write(1, 3);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_TRUE(firings.empty());
}

}  // namespace
}  // namespace verbs_test
