// simverbs_inject() on completions: polls that leave some out, completions and events that come
// late.
#include <array>

#include <fcntl.h>

#include "injection.hpp"

namespace verbs_test {
namespace {

constexpr std::int64_t kLateMs = 3;

class InjectedCompletion : public Injection {
  protected:
    // All of b's completions are there, and those of a polled.
    void send_three() {
        for (std::uint64_t id = 1; id <= 3; ++id) {
            ASSERT_EQ(b->receive(id, {b->range(id * 64, 64)}), 0);
        }
        for (std::uint64_t id = 11; id <= 13; ++id) {
            ASSERT_EQ(Request(IBV_WR_SEND).id(id).from(a->range(0, 16)).post(*a), 0);
        }
        for (std::uint64_t id = 11; id <= 13; ++id) {
            expect(*a, id, IBV_WC_SUCCESS);
        }
    }
    // The ids that one poll returns.
    static std::vector<std::uint64_t> poll(End& end) {
        std::array<ibv_wc, 8> completions{};
        const int found = ibv_poll_cq(end.cq, completions.size(), completions.data());
        std::vector<std::uint64_t> ids;
        for (int i = 0; i < found; ++i) {
            EXPECT_EQ(completions[static_cast<std::size_t>(i)].status, IBV_WC_SUCCESS);
            ids.push_back(completions[static_cast<std::size_t>(i)].wr_id);
        }
        return ids;
    }
    static simverbs_fault short_poll(std::uint64_t fewer) {
        simverbs_fault fault = fault_of(SIMVERBS_FAULT_SHORT_POLL);
        fault.match.node = "h1";
        fault.with.times = fewer;
        return fault;
    }
    static simverbs_fault late(simverbs_fault_action action, const char* node) {
        simverbs_fault fault = fault_of(action);
        fault.match.node = node;
        fault.with.duration_ps = kLateMs * kMillisecond;
        return fault;
    }
    using Ids = std::vector<std::uint64_t>;
};

TEST_F(InjectedCompletion, ThatAPollLeavesOutIsReturnedByTheNext) {
    connect();
    const std::uint32_t id = inject(short_poll(1));
    send_three();
    EXPECT_EQ(poll(*b), (Ids{1, 2}));
    EXPECT_EQ(poll(*b), (Ids{3}));
    EXPECT_EQ(fired(id), 1U);
}

TEST_F(InjectedCompletion, IsLeftOutWithAllOthersByAPollThatReturnsNothing) {
    connect();
    inject(short_poll(9));
    send_three();
    EXPECT_EQ(poll(*b), (Ids{}));
    EXPECT_EQ(poll(*b), (Ids{1, 2, 3}));
}

// How often a program polls in vain does not matter.
TEST_F(InjectedCompletion, IsCountedByPollsThatWouldReturnOne) {
    connect();
    simverbs_fault fault = short_poll(1);
    fault.nth = 2;
    inject(fault);
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(poll(*b), (Ids{}));
    }
    send_three();
    EXPECT_EQ(poll(*b), (Ids{1, 2, 3}));
    send_three();
    EXPECT_EQ(poll(*b), (Ids{1, 2}));
    EXPECT_EQ(poll(*b), (Ids{3}));
}

TEST_F(InjectedCompletion, IsLeftOutOfAnExtendedPollThatEndsEarly) {
    connect();
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 16;
    ibv_cq_ex* const extended = ibv_create_cq_ex(b->context, &wanted);
    ASSERT_NE(extended, nullptr);
    ASSERT_EQ(ibv_destroy_qp(b->qp), 0);
    ibv_cq* const plain = std::exchange(b->cq, ibv_cq_ex_to_cq(extended));
    ibv_qp_init_attr attr{
        .send_cq = b->cq, .recv_cq = b->cq, .cap = Connection{}.cap, .qp_type = IBV_QPT_RC};
    b->qp = ibv_create_qp(b->pd, &attr);
    ASSERT_NE(b->qp, nullptr);
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    bring_up({});
    inject(short_poll(1));
    send_three();
    ibv_poll_cq_attr how{};
    ASSERT_EQ(ibv_start_poll(extended, &how), 0);
    EXPECT_EQ(extended->wr_id, 1U);
    ASSERT_EQ(ibv_next_poll(extended), 0);
    EXPECT_EQ(extended->wr_id, 2U);
    EXPECT_EQ(ibv_next_poll(extended), ENOENT);
    ibv_end_poll(extended);
    ASSERT_EQ(ibv_start_poll(extended, &how), 0);
    EXPECT_EQ(extended->wr_id, 3U);
    EXPECT_EQ(ibv_next_poll(extended), ENOENT);
    ibv_end_poll(extended);
    ASSERT_EQ(ibv_destroy_qp(b->qp), 0);
    b->qp = nullptr;
    ASSERT_EQ(ibv_destroy_cq(b->cq), 0);
    b->cq = plain;
}

TEST_F(InjectedCompletion, ThatComesLateHoldsUpThoseBehindItInItsQueueAlone) {
    connect();
    const std::uint32_t id = inject(late(SIMVERBS_FAULT_COMPLETE_LATE, "h0"));
    for (std::uint64_t request = 1; request <= 2; ++request) {
        ASSERT_EQ(b->receive(request, {b->range(0, 64)}), 0);
        ASSERT_EQ(Request(IBV_WR_SEND).id(request).from(a->range(0, 16)).post(*a), 0);
    }
    expect(*b, 1, IBV_WC_SUCCESS);
    expect(*b, 2, IBV_WC_SUCCESS);
    EXPECT_LT(now_us(), 1000);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_GE(now_us(), kLateMs * 1000);
    EXPECT_LT(now_us(), kLateMs * 1000 + 100);
    const std::int64_t first = now_us();
    expect(*a, 2, IBV_WC_SUCCESS);
    EXPECT_EQ(now_us(), first);
    EXPECT_EQ(fired(id), 1U);
    expect_both_live();
}

TEST_F(InjectedCompletion, ThatComesLateIsThatOfTheQueueThatTheFaultNames) {
    connect();
    simverbs_fault fault = late(SIMVERBS_FAULT_COMPLETE_LATE, "h1");
    fault.match.queue = SIMVERBS_RECEIVE_QUEUE;
    fault.nth = 2;
    inject(fault);
    send_three();
    EXPECT_EQ(poll(*b), (Ids{1}));
    const ibv_wc wc = b->wait();
    EXPECT_EQ(wc.wr_id, 2U);
    EXPECT_GE(now_us(), kLateMs * 1000);
    EXPECT_EQ(poll(*b), (Ids{3}));
}

// Late completions go with their queue pair, as those that nobody has polled do.
TEST_F(InjectedCompletion, ThatIsLateIsGoneWithItsQueuePair) {
    connect();
    inject(late(SIMVERBS_FAULT_COMPLETE_LATE, "h0"));
    write(1, 1);
    pass(1);
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    bring_up({});
    expect_works();
    inject(late(SIMVERBS_FAULT_COMPLETE_LATE, "h0"));
    write(2, 1);
    pass(1);
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = nullptr;
    pass(2 * kLateMs);
    EXPECT_EQ(poll(*a), (Ids{}));
}

class InjectedEvent : public InjectedCompletion {
  protected:
    // b's completions come to a queue with a channel.
    void connect_with_channel() {
        connect();
        channel = ibv_create_comp_channel(b->context);
        ASSERT_NE(channel, nullptr);
        ASSERT_EQ(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
        ASSERT_EQ(ibv_destroy_qp(b->qp), 0);
        ASSERT_EQ(ibv_destroy_cq(b->cq), 0);
        b->cq = ibv_create_cq(b->context, 16, nullptr, channel, 0);
        ASSERT_NE(b->cq, nullptr);
        ibv_qp_init_attr attr{
            .send_cq = b->cq, .recv_cq = b->cq, .cap = Connection{}.cap, .qp_type = IBV_QPT_RC};
        b->qp = ibv_create_qp(b->pd, &attr);
        ASSERT_NE(b->qp, nullptr);
        ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
        bring_up({});
        ASSERT_EQ(ibv_req_notify_cq(b->cq, 0), 0);
    }
    [[nodiscard]] bool take_event() const {
        ibv_cq* cq = nullptr;
        void* context = nullptr;
        if (ibv_get_cq_event(channel, &cq, &context) != 0) {
            return false;
        }
        ibv_ack_cq_events(cq, 1);
        return true;
    }
    void TearDown() override {
        EXPECT_EQ(ibv_destroy_qp(b->qp), 0);
        b->qp = nullptr;
        EXPECT_EQ(ibv_destroy_cq(b->cq), 0);
        b->cq = ibv_create_cq(b->context, 16, nullptr, nullptr, 0);  // which its end destroys
        EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
        Injection::TearDown();
    }

    ibv_comp_channel* channel = nullptr;
};

TEST_F(InjectedEvent, ThatComesLateTellsOfAllThatCameMeanwhile) {
    connect_with_channel();
    inject(late(SIMVERBS_FAULT_EVENT_LATE, "h1"));
    send_three();
    EXPECT_LT(now_us(), 1000);
    EXPECT_TRUE(take_event());
    EXPECT_GE(now_us(), kLateMs * 1000);
    EXPECT_FALSE(take_event());
    EXPECT_EQ(poll(*b), (Ids{1, 2, 3}));
}

// The others seem to come after the poll, and the program has asked for an event of such.
TEST_F(InjectedEvent, TellsOfWhatAPollHasLeftOut) {
    connect_with_channel();
    send_three();
    EXPECT_TRUE(take_event());
    inject(short_poll(1));
    ASSERT_EQ(ibv_req_notify_cq(b->cq, 0), 0);
    EXPECT_EQ(poll(*b), (Ids{1, 2}));
    EXPECT_TRUE(take_event());
    EXPECT_EQ(poll(*b), (Ids{3}));
}

TEST_F(InjectedCompletion, RepeatsItself) {
    expect_repeats([this] {
        connect();
        inject(short_poll(1));
        inject(late(SIMVERBS_FAULT_COMPLETE_LATE, "h0"));
        send_three();
        EXPECT_EQ(poll(*b), (Ids{1, 2}));
    });
}

TEST_F(InjectedCompletion, IsNothingThatOtherCallsHave) {
    connect();
    simverbs_fault fault = short_poll(1);
    fault.match.call = "ibv_reg_mr";
    expect_refused(fault, EINVAL, "short_poll is of ibv_poll_cq alone");
    fault = fault_of(SIMVERBS_FAULT_CALL);
    fault.on = SIMVERBS_ON_CALL;
    fault.match.call = "ibv_poll_cq";
    fault.with.value = ENOMEM;
    expect_refused(fault, EINVAL, "never fails");
    expect_refused(fault_of(SIMVERBS_FAULT_COMPLETE_LATE), EINVAL, "duration");
    expect_refused(fault_of(SIMVERBS_FAULT_EVENT_LATE), EINVAL, "duration");
}

}  // namespace
}  // namespace verbs_test
