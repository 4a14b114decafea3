// Packets that are lost, peers that are not there, receives that come late: what is retried, for
// how long in virtual time, and with which status it ends.
#include <cstring>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

// IBA 9.7.6.1.3: one wait is 4.096 us x 2^timeout.
constexpr std::int64_t wait_us(int timeout) {
    return (std::int64_t{4096} << timeout) / 1000;
}

class RcRetry : public TwoHosts {
  protected:
    static constexpr const char* kLinkOfA = "h0-s0";

    int write(std::uint64_t id, std::uint32_t length = 8) {
        return Request(IBV_WR_RDMA_WRITE)
            .id(id)
            .from(a->range(0, length))
            .to(b->address(65536), b->mr->rkey)
            .post(*a);
    }
    std::uint32_t drop(const char* link, const char* from, std::uint64_t nth) {
        std::uint32_t fault = 0;
        EXPECT_EQ(simverbs_drop_nth(link, from, nth, &fault), 0) << simverbs_last_error();
        return fault;
    }
    void expect_gives_up(ibv_wc_status status) {
        const ibv_wc wc = a->wait();
        EXPECT_EQ(wc.status, status) << ibv_wc_status_str(wc.status);
        EXPECT_EQ(a->state(), IBV_QPS_ERR);
    }
};

struct Lost {
    const char* name;
    const char* from;  // who transmits what is lost, on its link to the switch
    std::uint64_t nth;
};
std::ostream& operator<<(std::ostream& out, const Lost& lost) {
    return out << lost.name;
}

class LostPacket : public RcRetry, public testing::WithParamInterface<Lost> {
  protected:
    void SetUp() override {
        RcRetry::SetUp();
        connect();
        drop(std::strcmp(GetParam().from, "h0") == 0 ? "h0-s0" : "h1-s0", GetParam().from,
             GetParam().nth);
    }
};

TEST_P(LostPacket, ChangesNothingForASend) {
    std::memset(a->at(0), 0x3C, 9000);
    ASSERT_EQ(b->receive(1, {b->range(65536, 9000)}), 0);
    ASSERT_EQ(b->receive(2, {b->range(0, 8)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(3).from(a->range(0, 9000)).post(*a), 0);
    EXPECT_EQ(b->wait().wr_id, 1U);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(a->at(0), b->at(65536), 9000), 0);
    expect_silence();
}

TEST_P(LostPacket, ChangesNothingForARead) {
    std::memset(b->at(65536), 0x3C, 9000);
    ASSERT_EQ(Request(IBV_WR_RDMA_READ)
                  .into(a->range(0, 9000))
                  .to(b->address(65536), b->mr->rkey)
                  .post(*a),
              0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(a->at(0), b->at(65536), 9000), 0);
    expect_silence();
}

// A retried atomic must not be executed twice.
TEST_P(LostPacket, ExecutesAnAtomicOnce) {
    for (std::uint64_t i = 0; i < 12; ++i) {
        ASSERT_EQ(Request(IBV_WR_ATOMIC_FETCH_AND_ADD)
                      .id(i)
                      .into(a->range(8 * i, 8))
                      .fetch_and_add(b->address(0), b->mr->rkey, 1)
                      .post(*a),
                  0);
    }
    for (std::uint64_t i = 0; i < 12; ++i) {
        EXPECT_EQ(a->wait().wr_id, i);
        EXPECT_EQ(a->word(8 * i), i);
    }
    EXPECT_EQ(b->word(0), 12U);
}

INSTANTIATE_TEST_SUITE_P(
    Rc, LostPacket,
    testing::Values(Lost{"first_request", "h0", 1}, Lost{"second_request", "h0", 2},
                    Lost{"fifth_request", "h0", 5}, Lost{"ninth_request", "h0", 9},
                    Lost{"first_answer", "h1", 1}, Lost{"second_answer", "h1", 2},
                    Lost{"fifth_answer", "h1", 5}, Lost{"ninth_answer", "h1", 9}),
    [](const auto& row) { return row.param.name; });

TEST_F(RcRetry, LossOfEverythingUsesUpTheRetries) {
    connect({.timeout = 14, .retries = 3});
    ASSERT_EQ(simverbs_drop_all(kLinkOfA, "h0", nullptr), 0);
    const std::int64_t before = now_us();
    ASSERT_EQ(write(1), 0);
    expect_gives_up(IBV_WC_RETRY_EXC_ERR);
    // The first try and three more.
    EXPECT_NEAR(static_cast<double>(now_us() - before), static_cast<double>(4 * wait_us(14)), 100);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
    EXPECT_TRUE(b->events().empty());
}

TEST_F(RcRetry, LossOfAcknowledgementsUsesThemUpToo) {
    connect({.retries = 1});
    ASSERT_EQ(simverbs_drop_all("s0-h0", "s0", nullptr), 0);
    ASSERT_EQ(write(1), 0);
    expect_gives_up(IBV_WC_RETRY_EXC_ERR);
}

TEST_F(RcRetry, AMinuteOfRetriesTakesNoTimeOnTheWall) {
    connect({.timeout = 20, .retries = 7});
    ASSERT_EQ(simverbs_drop_all(kLinkOfA, "h0", nullptr), 0);
    ASSERT_EQ(write(1), 0);
    expect_gives_up(IBV_WC_RETRY_EXC_ERR);
    EXPECT_GT(now_us(), 30'000'000);
}

TEST_F(RcRetry, TimeoutZeroWaitsForEver) {
    connect({.timeout = 0});
    ASSERT_EQ(simverbs_drop_all(kLinkOfA, "h0", nullptr), 0);
    ASSERT_EQ(write(1), 0);
    expect_silence();
    EXPECT_EQ(a->state(), IBV_QPS_RTS);
}

TEST_F(RcRetry, ClearedFaultLetsTheRetryThrough) {
    connect();
    std::uint32_t fault = 0;
    ASSERT_EQ(simverbs_drop_all(kLinkOfA, "h0", &fault), 0);
    ASSERT_EQ(write(1), 0);
    pass(100);
    EXPECT_TRUE(a->drain().empty());
    ASSERT_EQ(simverbs_clear_fault(fault), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
}

// retry_cnt counts tries without progress: each acknowledgement gives all of them back.
TEST_F(RcRetry, ProgressGivesTheRetriesBack) {
    connect({.retries = 1});
    for (std::uint64_t i = 0; i < 4; ++i) {
        drop(kLinkOfA, "h0", 1);
        ASSERT_EQ(write(i), 0);
        EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    }
}

TEST_F(RcRetry, LinkThatComesBackInTimeIsNotNoticed) {
    connect();
    ASSERT_EQ(simverbs_set_link(kLinkOfA, 0), 0);
    ASSERT_EQ(write(1), 0);
    pass(50);
    ASSERT_EQ(simverbs_set_link("s0-h0", 1), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(a->state(), IBV_QPS_RTS);
}

TEST_F(RcRetry, LinkDownIsAPortErrorAndUpIsPortActive) {
    connect();
    ASSERT_EQ(simverbs_set_link(kLinkOfA, 0), 0);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_PORT_ERR});
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(a->context, 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_DOWN);
    EXPECT_EQ(a->state(), IBV_QPS_RTS);
    ASSERT_EQ(simverbs_set_link(kLinkOfA, 1), 0);
    pass(10);
    const auto events = a->events();
    EXPECT_EQ(events.back(), IBV_EVENT_PORT_ACTIVE);
    ASSERT_EQ(ibv_query_port(a->context, 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    expect_works();
}

TEST_F(RcRetry, LinkDownForGoodIsRetryExceeded) {
    connect({.retries = 2});
    ASSERT_EQ(write(1, 4096), 0);
    ASSERT_EQ(simverbs_set_link("h1-s0", 0), 0);
    expect_gives_up(IBV_WC_RETRY_EXC_ERR);
}

TEST_F(RcRetry, PeerThatWasDestroyedIsSilent) {
    connect({.retries = 1});
    ASSERT_EQ(ibv_destroy_qp(b->qp), 0);
    b->qp = nullptr;
    ASSERT_EQ(write(1), 0);
    expect_gives_up(IBV_WC_RETRY_EXC_ERR);
}

TEST_F(RcRetry, PeerInResetInitOrErrIsSilent) {
    for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_ERR}) {
        connect({.retries = 1});
        ASSERT_EQ(b->to_state(state == IBV_QPS_INIT ? IBV_QPS_RESET : state), 0);
        if (state == IBV_QPS_INIT) {
            ibv_qp_attr attr = init_attr({});
            ASSERT_EQ(ibv_modify_qp(b->qp, &attr, kInitMask), 0);
        }
        ASSERT_EQ(write(1), 0);
        expect_gives_up(IBV_WC_RETRY_EXC_ERR);
        a.reset();
        b.reset();
    }
}

TEST_F(RcRetry, PacketsThatAreAheadOfThePeerAreRetriedUntilItGivesUp) {
    connect({.retries = 2});
    // The peer expects an earlier packet than the first: NAK, PSN sequence error.
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    ibv_qp_attr attr = init_attr({});
    ASSERT_EQ(ibv_modify_qp(b->qp, &attr, kInitMask), 0);
    attr = rtr_attr(*a, {});
    attr.rq_psn = kPsn - 1;
    ASSERT_EQ(ibv_modify_qp(b->qp, &attr, kRtrMask), 0);
    ASSERT_EQ(write(1), 0);
    expect_gives_up(IBV_WC_RETRY_EXC_ERR);
}

TEST_F(RcRetry, SequenceNumbersWrap) {
    a = std::make_unique<End>(0, Connection{});
    b = std::make_unique<End>(1, Connection{});
    for (End* end : {a.get(), b.get()}) {
        ibv_qp_attr attr = init_attr({});
        ASSERT_EQ(ibv_modify_qp(end->qp, &attr, kInitMask), 0);
        attr = rtr_attr(end == a.get() ? *b : *a, {});
        attr.rq_psn = 0xFFFFFE;
        ASSERT_EQ(ibv_modify_qp(end->qp, &attr, kRtrMask), 0);
        attr = rts_attr({});
        attr.sq_psn = 0xFFFFFE;
        ASSERT_EQ(ibv_modify_qp(end->qp, &attr, kRtsMask), 0);
    }
    drop("h0-s0", "h0", 4);
    ASSERT_EQ(write(1, 8192), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(a->query().sq_psn, 6U);
    EXPECT_EQ(b->query().rq_psn, 6U);
}

// ---- receiver not ready
// --------------------------------------------------------------------------

class RnrRetry : public RcRetry {
  protected:
    int send(std::uint64_t id) {
        return Request(IBV_WR_SEND).id(id).from(a->range(0, 64)).post(*a);
    }
};

TEST_F(RnrRetry, NoReceiveUsesUpTheRnrRetries) {
    connect({.rnr_retries = 3, .min_rnr_timer = 20});  // 10.24 ms
    const std::int64_t before = now_us();
    ASSERT_EQ(send(1), 0);
    expect_gives_up(IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_NEAR(static_cast<double>(now_us() - before), 3 * 10'240.0, 100);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
    EXPECT_TRUE(b->events().empty());
}

TEST_F(RnrRetry, NoneAllowedFailsAtOnce) {
    connect({.rnr_retries = 0});
    ASSERT_EQ(send(1), 0);
    expect_gives_up(IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_LT(now_us(), 100);
}

TEST_F(RnrRetry, WriteWithImmediateNeedsAReceiveToo) {
    connect({.rnr_retries = 1});
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE_WITH_IMM)
                  .from(a->range(0, 64))
                  .to(b->address(0), b->mr->rkey)
                  .post(*a),
              0);
    expect_gives_up(IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_F(RnrRetry, AReceiveInTimeSavesTheSend) {
    connect({.rnr_retries = 3, .min_rnr_timer = 20});
    ASSERT_EQ(send(1), 0);
    pass(15);
    EXPECT_TRUE(a->drain().empty());
    ASSERT_EQ(b->receive(2, {b->range(0, 64)}), 0);
    EXPECT_EQ(b->wait().wr_id, 2U);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
}

// Waiting for a receive uses neither the acknowledgement timer nor retry_cnt.
TEST_F(RnrRetry, SevenWaitsForEver) {
    connect({.timeout = 8, .retries = 1, .rnr_retries = 7, .min_rnr_timer = 31});
    ASSERT_EQ(send(1), 0);
    pass(600'000);
    EXPECT_TRUE(a->drain().empty());
    ASSERT_EQ(b->receive(2, {b->range(0, 64)}), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
}

TEST_F(RnrRetry, OrderHoldsAcrossTheWait) {
    connect();
    for (std::uint64_t i = 0; i < 4; ++i) {
        a->word(64 * i) = i;
        ASSERT_EQ(Request(IBV_WR_SEND).id(i).from(a->range(64 * i, 64)).post(*a), 0);
    }
    pass(1);
    for (std::uint64_t i = 0; i < 4; ++i) {
        ASSERT_EQ(b->receive(i, {b->range(64 * i, 64)}), 0);
    }
    for (std::uint64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(b->wait().wr_id, i);
        EXPECT_EQ(b->word(64 * i), i);
        EXPECT_EQ(a->wait().wr_id, i);
    }
}

}  // namespace
}  // namespace verbs_test
