// Extended completion queues: the iterator and its fields, flags, moderation, the device's clock.
#include <cerrno>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

constexpr std::uint64_t kEveryField = std::uint64_t{IBV_WC_STANDARD_FLAGS} |
                                      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

// Both queues of `b` complete to an extended queue.
class ExtendedCq : public TwoHosts {
  protected:
    void TearDown() override {
        if (ex != nullptr) {
            EXPECT_EQ(ibv_destroy_qp(b->qp), 0);
            b->qp = nullptr;
            EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
        }
        TwoHosts::TearDown();
    }
    void connect_with(ibv_cq_init_attr_ex wanted, const Connection& with = {}) {
        connect(with);
        ex = ibv_create_cq_ex(b->context, &wanted);
        ASSERT_NE(ex, nullptr);
        ASSERT_EQ(ibv_destroy_qp(b->qp), 0);
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(ex);
        init.cap = with.cap;
        init.qp_type = IBV_QPT_RC;
        b->qp = ibv_create_qp(b->pd, &init);
        ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
        bring_up(with);
    }
    static ibv_cq_init_attr_ex with_fields(std::uint64_t fields) {
        ibv_cq_init_attr_ex wanted{};
        wanted.cqe = 16;
        wanted.wc_flags = fields;
        return wanted;
    }
    int refusal(ibv_cq_init_attr_ex wanted) {
        errno = 0;
        ibv_cq_ex* made = ibv_create_cq_ex(b->context, &wanted);
        const int error = errno;
        if (made == nullptr) {
            return error;
        }
        EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(made)), 0);
        return 0;
    }
    int refusal_of_field(std::uint64_t field) { return refusal(with_fields(field)); }
    void message(std::uint64_t id, std::uint32_t length) {
        ASSERT_EQ(b->receive(id, {b->range(0, 4096)}), 0);
        ASSERT_EQ(Request(IBV_WR_SEND).unsignaled().from(a->range(0, length)).post(*a), 0);
    }
    int start() {
        ibv_poll_cq_attr attr{};
        return ibv_start_poll(ex, &attr);
    }
    // Polls until something is there.
    int start_patiently() {
        int error = ENOENT;
        for (int i = 0; i < 1000 && error == ENOENT; ++i) {
            error = start();
        }
        return error;
    }

    ibv_cq_ex* ex = nullptr;
};

TEST_F(ExtendedCq, AnEmptyQueueIsEnoentAndStaysUsable) {
    connect_with(with_fields(kEveryField));
    EXPECT_EQ(start(), ENOENT);
    EXPECT_EQ(start(), ENOENT);
    message(1, 8);
    ASSERT_EQ(start_patiently(), 0);
    EXPECT_EQ(ex->wr_id, 1U);
    ibv_end_poll(ex);
}

TEST_F(ExtendedCq, AnEmptyPollLetsTimeMove) {
    connect_with(with_fields(kEveryField));
    message(1, 8);
    const std::int64_t before = now_us();
    ASSERT_EQ(start_patiently(), 0);
    ibv_end_poll(ex);
    EXPECT_GT(now_us(), before);
}

TEST_F(ExtendedCq, ABatchIsReadInOrderAndConsumedOnce) {
    connect_with(with_fields(kEveryField));
    for (std::uint64_t i = 0; i < 3; ++i) {
        message(i, static_cast<std::uint32_t>(8 + i));
    }
    pass(1);
    ASSERT_EQ(start(), 0);
    for (std::uint64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(ex->wr_id, i);
        EXPECT_EQ(ex->status, IBV_WC_SUCCESS);
        EXPECT_EQ(ibv_wc_read_byte_len(ex), 8 + i);
        EXPECT_EQ(ibv_next_poll(ex), i < 2 ? 0 : ENOENT);
    }
    ibv_end_poll(ex);  // due, and harmless, after ENOENT
    EXPECT_EQ(start(), ENOENT);
    ibv_wc wc{};
    EXPECT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(ex), 1, &wc), 0);
}

TEST_F(ExtendedCq, EndConsumesTheEntryThatIsLookedAt) {
    connect_with(with_fields(kEveryField));
    message(1, 8);
    message(2, 8);
    pass(1);
    ASSERT_EQ(start(), 0);
    EXPECT_EQ(ex->wr_id, 1U);
    ibv_end_poll(ex);
    ibv_wc wc{};
    ASSERT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(ex), 1, &wc), 1);
    EXPECT_EQ(wc.wr_id, 2U);
}

TEST_F(ExtendedCq, WhatIsPolledFreesItsSlot) {
    Connection with;
    with.cap.max_recv_wr = 2;
    connect_with(with_fields(0), with);
    message(1, 8);
    message(2, 8);
    pass(1);
    EXPECT_EQ(b->receive(3, {b->range(0, 8)}), ENOMEM);
    ASSERT_EQ(start(), 0);
    ibv_end_poll(ex);
    EXPECT_EQ(b->receive(3, {b->range(0, 8)}), 0);
    EXPECT_EQ(b->receive(4, {b->range(0, 8)}), ENOMEM);
}

TEST_F(ExtendedCq, EveryFieldOfAReceive) {
    connect_with(with_fields(kEveryField));
    ASSERT_EQ(b->receive(7, {b->range(0, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND_WITH_IMM).immediate(0x1234ABCD).from(a->range(0, 20)).post(*a),
              0);
    ASSERT_EQ(start_patiently(), 0);
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(a->context, 1, &port), 0);
    EXPECT_EQ(ex->wr_id, 7U);
    EXPECT_EQ(ex->status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_wc_read_opcode(ex), IBV_WC_RECV);
    EXPECT_EQ(ibv_wc_read_vendor_err(ex), 0U);
    EXPECT_EQ(ibv_wc_read_wc_flags(ex), static_cast<unsigned>(IBV_WC_WITH_IMM));
    EXPECT_EQ(ibv_wc_read_imm_data(ex), htonl(0x1234ABCD));
    EXPECT_EQ(ibv_wc_read_byte_len(ex), 20U);
    EXPECT_EQ(ibv_wc_read_qp_num(ex), b->qp->qp_num);
    EXPECT_EQ(ibv_wc_read_src_qp(ex), a->qp->qp_num);
    EXPECT_EQ(ibv_wc_read_slid(ex), port.lid);
    EXPECT_EQ(ibv_wc_read_sl(ex), 0);
    EXPECT_EQ(ibv_wc_read_dlid_path_bits(ex), 0);
    ibv_end_poll(ex);
}

TEST_F(ExtendedCq, AFailureShowsStatusAndVendorError) {
    connect_with(with_fields(kEveryField));
    ASSERT_EQ(b->receive(7, {b->range(0, 8)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).from(a->range(0, 64)).post(*a), 0);
    ASSERT_EQ(start_patiently(), 0);
    EXPECT_EQ(ex->wr_id, 7U);
    EXPECT_EQ(ex->status, IBV_WC_LOC_LEN_ERR);
    EXPECT_NE(ibv_wc_read_vendor_err(ex), 0U);
    EXPECT_EQ(ibv_wc_read_qp_num(ex), b->qp->qp_num);
    ibv_end_poll(ex);
}

TEST_F(ExtendedCq, FieldsThatWereNotAskedForHaveNoFunction) {
    connect_with(with_fields(IBV_WC_EX_WITH_BYTE_LEN));
    EXPECT_NE(ex->read_byte_len, nullptr);
    EXPECT_NE(ex->read_opcode, nullptr);
    EXPECT_NE(ex->read_wc_flags, nullptr);
    EXPECT_EQ(ex->read_imm_data, nullptr);
    EXPECT_EQ(ex->read_completion_ts, nullptr);
    EXPECT_EQ(ex->read_tm_info, nullptr);
}

// ---- what may be asked for

// VLAN and flow tags are those of Ethernet frames, and this device has InfiniBand ports.
TEST_F(ExtendedCq, FieldsThatTheDeviceLacksAreEopnotsupp) {
    connect_with(with_fields(0));
    EXPECT_EQ(refusal_of_field(kEveryField), 0);
    for (const std::uint64_t field :
         {std::uint64_t{IBV_WC_EX_WITH_CVLAN}, std::uint64_t{IBV_WC_EX_WITH_FLOW_TAG},
          std::uint64_t{1} << 20}) {
        EXPECT_EQ(refusal_of_field(field), EOPNOTSUPP) << field;
    }
}

TEST_F(ExtendedCq, SizesVectorsAndMasksThatMakeNoSenseAreEinval) {
    connect_with(with_fields(0));
    ibv_cq_init_attr_ex wanted = with_fields(0);
    wanted.cqe = 0;
    EXPECT_EQ(refusal(wanted), EINVAL);
    wanted.cqe = 1U << 30;
    EXPECT_EQ(refusal(wanted), EINVAL);
    wanted = with_fields(0);
    wanted.comp_vector = static_cast<std::uint32_t>(b->context->num_comp_vectors);
    EXPECT_EQ(refusal(wanted), EINVAL);
    wanted = with_fields(0);
    wanted.comp_mask = 0x80;
    EXPECT_EQ(refusal(wanted), EINVAL);
    wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    wanted.flags = 0x80;
    EXPECT_EQ(refusal(wanted), EINVAL);
    wanted.comp_mask = 0;  // flags that the mask does not name are not looked at
    EXPECT_EQ(refusal(wanted), 0);
    wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
    wanted.parent_domain = b->pd;  // a protection domain, not a parent domain
    EXPECT_EQ(refusal(wanted), EINVAL);
}

TEST_F(ExtendedCq, AnUnknownMaskOfAPollIsEinval) {
    connect_with(with_fields(0));
    message(1, 8);
    pass(1);
    ibv_poll_cq_attr attr{};
    attr.comp_mask = 0x10;
    EXPECT_EQ(ibv_start_poll(ex, &attr), EINVAL);
    ASSERT_EQ(start(), 0);
    ibv_end_poll(ex);
}

TEST_F(ExtendedCq, RxeHasNoClockNorQueuesThatIgnoreOverrunsAndAcceptsUnknownBits) {
    ASSERT_EQ(simverbs_set_personality("rxe"), 0);
    connect_with(with_fields(IBV_WC_STANDARD_FLAGS));
    EXPECT_EQ(refusal_of_field(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP), EOPNOTSUPP);
    EXPECT_EQ(refusal_of_field(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK), EOPNOTSUPP);
    EXPECT_EQ(refusal_of_field(IBV_WC_EX_WITH_CVLAN), EOPNOTSUPP);
    EXPECT_EQ(refusal_of_field(IBV_WC_EX_WITH_FLOW_TAG), EOPNOTSUPP);
    ibv_cq_init_attr_ex wanted = with_fields(0);
    wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    wanted.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    EXPECT_EQ(refusal(wanted), EOPNOTSUPP);
    wanted.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    EXPECT_EQ(refusal(wanted), 0);
    wanted.flags = 0x80;
    EXPECT_EQ(refusal(wanted), 0);
    ibv_poll_cq_attr attr{};
    attr.comp_mask = 0x10;
    EXPECT_EQ(ibv_start_poll(ex, &attr), ENOENT);
    ibv_values_ex values{};
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    EXPECT_EQ(ibv_query_rt_values_ex(a->context, &values), EOPNOTSUPP);
    EXPECT_EQ(values.comp_mask, static_cast<std::uint32_t>(IBV_VALUES_MASK_RAW_CLOCK));
    ibv_modify_cq_attr moderation{IBV_CQ_ATTR_MODERATE, {2, 10}};
    EXPECT_EQ(ibv_modify_cq(ibv_cq_ex_to_cq(ex), &moderation), EOPNOTSUPP);
}

// ---- flags

TEST_F(ExtendedCq, ASingleThreadedQueueWorksAsAnyOther) {
    ibv_cq_init_attr_ex wanted = with_fields(0);
    wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    wanted.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    connect_with(wanted);
    message(1, 8);
    ASSERT_EQ(start_patiently(), 0);
    // Without a lock: another call on the queue between start and end does not wait for ever.
    EXPECT_EQ(ibv_req_notify_cq(ibv_cq_ex_to_cq(ex), 0), 0);
    EXPECT_EQ(ex->wr_id, 1U);
    ibv_end_poll(ex);
}

TEST_F(ExtendedCq, AQueueThatIgnoresOverrunsKeepsTheNewestEntries) {
    ibv_cq_init_attr_ex wanted = with_fields(0);
    wanted.cqe = 3;
    wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    wanted.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    connect_with(wanted);
    const auto kept = static_cast<std::uint64_t>(ex->cqe);
    for (std::uint64_t i = 0; i < kept + 2; ++i) {
        message(i, 8);
    }
    pass(1000);
    EXPECT_TRUE(b->events().empty());
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
    ASSERT_EQ(start(), 0);
    for (std::uint64_t i = 2; i < kept + 2; ++i) {
        EXPECT_EQ(ex->wr_id, i);
        EXPECT_EQ(ibv_next_poll(ex), i + 1 < kept + 2 ? 0 : ENOENT);
    }
    ibv_end_poll(ex);
    message(99, 8);
    ASSERT_EQ(start_patiently(), 0);
    EXPECT_EQ(ex->wr_id, 99U);
    ibv_end_poll(ex);
}

// ---- clocks

TEST_F(ExtendedCq, TimestampsAreVirtualTimeInTicksOfTheDevicesClock) {
    for (const char* personality : {"spec", "connectx6"}) {
        SCOPED_TRACE(personality);
        ASSERT_EQ(simverbs_set_personality(personality), 0);
        connect_with(with_fields(kEveryField));
        ibv_device_attr_ex device{};
        ASSERT_EQ(ibv_query_device_ex(b->context, nullptr, &device), 0);
        ASSERT_NE(device.hca_core_clock, 0U);
        ASSERT_NE(device.completion_timestamp_mask, 0U);
        pass(5);
        message(1, 8);
        ASSERT_EQ(start_patiently(), 0);
        const std::uint64_t stamp = ibv_wc_read_completion_ts(ex);
        const std::uint64_t wallclock = ibv_wc_read_completion_wallclock_ns(ex);
        ibv_end_poll(ex);
        EXPECT_GE(wallclock, 5'000'000U);
        EXPECT_LT(wallclock, 6'000'000U);
        EXPECT_EQ(stamp / 1000, wallclock * device.hca_core_clock / 1'000'000 / 1000);
        ibv_values_ex values{};
        values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
        ASSERT_EQ(ibv_query_rt_values_ex(b->context, &values), 0);
        EXPECT_EQ(values.comp_mask, static_cast<std::uint32_t>(IBV_VALUES_MASK_RAW_CLOCK));
        const auto ticks = static_cast<std::uint64_t>(values.raw_clock.tv_nsec);
        EXPECT_GE(ticks, stamp);
        EXPECT_LT(ticks - stamp, device.hca_core_clock);  // within a millisecond
        TearDown();
        ex = nullptr;
        SetUp();
    }
}

TEST_F(ExtendedCq, TheClockStandsWhileTheProgramRuns) {
    connect_with(with_fields(0));
    ibv_values_ex first{};
    ibv_values_ex second{};
    first.comp_mask = second.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | IBV_VALUES_MASK_RESERVED;
    ASSERT_EQ(ibv_query_rt_values_ex(a->context, &first), 0);
    ASSERT_EQ(ibv_query_rt_values_ex(a->context, &second), 0);
    EXPECT_EQ(first.comp_mask, static_cast<std::uint32_t>(IBV_VALUES_MASK_RAW_CLOCK));
    EXPECT_EQ(first.raw_clock.tv_nsec, second.raw_clock.tv_nsec);
    ibv_values_ex nothing{};
    EXPECT_EQ(ibv_query_rt_values_ex(a->context, &nothing), 0);
    EXPECT_EQ(nothing.comp_mask, 0U);
}

// ---- moderation

class Moderation : public ExtendedCq {
  protected:
    void SetUp() override {
        ExtendedCq::SetUp();
        connect();
        channel = ibv_create_comp_channel(b->context);
        ASSERT_NE(channel, nullptr);
        fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
        cq = ibv_create_cq(b->context, 16, nullptr, channel, 0);
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = cq;
        init.cap = Connection{}.cap;
        init.qp_type = IBV_QPT_RC;
        ASSERT_EQ(ibv_destroy_qp(b->qp), 0);
        b->qp = ibv_create_qp(b->pd, &init);
        ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
        bring_up({});
    }
    void TearDown() override {
        EXPECT_EQ(ibv_destroy_qp(b->qp), 0);
        b->qp = nullptr;
        EXPECT_EQ(ibv_destroy_cq(cq), 0);
        EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
        ExtendedCq::TearDown();
    }
    int moderate(std::uint16_t count, std::uint16_t period_us,
                 std::uint32_t mask = IBV_CQ_ATTR_MODERATE) {
        ibv_modify_cq_attr attr{mask, {count, period_us}};
        return ibv_modify_cq(cq, &attr);
    }
    // Returns true if one is there now: asking the library for it would let time move.
    bool event() {
        pollfd look{channel->fd, POLLIN, 0};
        return poll(&look, 1, 0) == 1 && take_event();
    }
    bool take_event() {
        ibv_cq* which = nullptr;
        void* context = nullptr;
        if (ibv_get_cq_event(channel, &which, &context) != 0) {
            return false;
        }
        ibv_ack_cq_events(which, 1);
        return true;
    }
    static void pass_us(std::int64_t microseconds) {
        ASSERT_EQ(simverbs_advance_ps(microseconds * 1'000'000), 0);
    }

    ibv_comp_channel* channel = nullptr;
    ibv_cq* cq = nullptr;
};

TEST_F(Moderation, AnEventWaitsForTheCount) {
    ASSERT_EQ(moderate(3, 4000), 0);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    message(1, 8);
    message(2, 8);
    pass_us(100);
    EXPECT_FALSE(event());
    message(3, 8);
    pass_us(100);
    EXPECT_TRUE(event());
    EXPECT_FALSE(event());
}

TEST_F(Moderation, OrForThePeriodAfterTheFirstCompletion) {
    ASSERT_EQ(moderate(3, 500), 0);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    pass_us(1000);
    message(1, 8);
    pass_us(400);
    message(2, 8);
    EXPECT_FALSE(event());
    pass_us(200);
    EXPECT_TRUE(event());
    pass_us(4000);
    EXPECT_FALSE(event());
}

TEST_F(Moderation, CountsAnewOnceArmedAgain) {
    ASSERT_EQ(moderate(2, 4000), 0);
    for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
        message(1, 8);
        pass_us(100);
        EXPECT_FALSE(event());
        message(2, 8);
        pass_us(100);
        EXPECT_TRUE(event());
    }
}

TEST_F(Moderation, BlockingForAnEventLetsThePeriodPass) {
    ASSERT_EQ(moderate(100, 700), 0);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) & ~O_NONBLOCK);
    message(1, 8);
    const std::int64_t before = now_us();
    EXPECT_TRUE(take_event());
    EXPECT_GE(now_us() - before, 700);
    EXPECT_LT(now_us() - before, 800);
}

TEST_F(Moderation, WithoutCountOrPeriodEventsDoNotWaitAndWhatWasHeldBackGoesOut) {
    ASSERT_EQ(moderate(3, 4000), 0);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    message(1, 8);
    pass_us(100);
    EXPECT_FALSE(event());
    ASSERT_EQ(moderate(3, 0), 0);
    EXPECT_TRUE(event());
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    message(2, 8);
    pass_us(100);
    EXPECT_TRUE(event());
}

TEST_F(Moderation, AQueueThatIsNotArmedRaisesNothingWhateverThePeriod) {
    ASSERT_EQ(moderate(2, 500), 0);
    message(1, 8);
    message(2, 8);
    pass_us(4000);
    EXPECT_FALSE(event());
}

TEST_F(Moderation, WhatIsBeyondTheCapabilitiesIsRefused) {
    ibv_device_attr_ex device{};
    ASSERT_EQ(ibv_query_device_ex(b->context, nullptr, &device), 0);
    ASSERT_EQ(device.cq_mod_caps.max_cq_count, 65'535);
    ASSERT_EQ(device.cq_mod_caps.max_cq_period, 4'095);
    EXPECT_EQ(moderate(65'535, 4'095), 0);
    EXPECT_EQ(moderate(1, 4'096), EINVAL);
    EXPECT_EQ(moderate(1, 1, 0), EINVAL);
    EXPECT_EQ(moderate(1, 1, IBV_CQ_ATTR_RESERVED), EOPNOTSUPP);
}

}  // namespace
}  // namespace verbs_test
