// Completion queues and channels: overflow, resizing, notification, and waiting for it in every
// way.
#include <cerrno>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class Completions : public TwoHosts {
  protected:
    int write(std::uint64_t id, unsigned flags = 0) {
        return Request(IBV_WR_RDMA_WRITE)
            .id(id)
            .with(flags)
            .from(a->range(0, 8))
            .to(b->address(0), b->mr->rkey)
            .post(*a);
    }
};

TEST_F(Completions, OverflowKillsTheQueueAndItsQueuePairs) {
    connect({.cq_entries = 2});
    for (std::uint64_t i = 0; i < 4; ++i) {
        ASSERT_EQ(write(i), 0);
    }
    pass(1000);
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
    EXPECT_EQ(a->events(), (std::vector{IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL}));
    // The entries that were there stay, and nothing follows, not even of the flush.
    EXPECT_EQ(a->wait().wr_id, 0U);
    EXPECT_EQ(a->wait().wr_id, 1U);
    ASSERT_EQ(write(5), 0);
    expect_silence();
    EXPECT_TRUE(a->events().empty());
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
}

TEST_F(Completions, PollTakesAsManyAsThereAreOrAsked) {
    connect();
    for (std::uint64_t i = 0; i < 5; ++i) {
        ASSERT_EQ(write(i), 0);
    }
    pass(1);
    ibv_wc wc[8];
    EXPECT_EQ(ibv_poll_cq(a->cq, 0, wc), 0);
    EXPECT_EQ(ibv_poll_cq(a->cq, 2, wc), 2);
    EXPECT_EQ(wc[1].wr_id, 1U);
    EXPECT_EQ(ibv_poll_cq(a->cq, 8, wc), 3);
    EXPECT_EQ(wc[2].wr_id, 4U);
    EXPECT_EQ(ibv_poll_cq(a->cq, 8, wc), 0);
}

TEST_F(Completions, ResizeKeepsWhatIsThere) {
    connect();
    for (std::uint64_t i = 0; i < 5; ++i) {
        ASSERT_EQ(write(i), 0);
    }
    pass(1);
    EXPECT_EQ(ibv_resize_cq(a->cq, 4), EINVAL);
    EXPECT_EQ(ibv_resize_cq(a->cq, 0), EINVAL);
    ASSERT_EQ(ibv_resize_cq(a->cq, 200), 0);
    EXPECT_GE(a->cq->cqe, 200);
    ASSERT_EQ(write(5), 0);
    for (std::uint64_t i = 0; i < 6; ++i) {
        EXPECT_EQ(a->wait().wr_id, i);
    }
}

TEST_F(Completions, OfADestroyedQueuePairGoWithItExceptForRxe) {
    for (const char* personality : {"spec", "connectx6", "rxe"}) {
        SCOPED_TRACE(personality);
        ASSERT_EQ(simverbs_set_personality(personality), 0);
        connect();
        ASSERT_EQ(write(7), 0);
        pass(1);
        ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
        a->qp = nullptr;
        const std::vector<ibv_wc> left = a->drain();
        ASSERT_EQ(left.size(), std::string(personality) == "rxe" ? 1U : 0U);
        EXPECT_TRUE(left.empty() || left[0].wr_id == 7);
        TearDown();
        SetUp();
    }
}

TEST_F(Completions, CreateRefusesWhatCannotBe) {
    connect();
    for (const int entries : {0, -1, 1 << 30}) {
        errno = 0;
        EXPECT_EQ(ibv_create_cq(a->context, entries, nullptr, nullptr, 0), nullptr);
        EXPECT_EQ(errno, EINVAL);
    }
    EXPECT_EQ(ibv_create_cq(a->context, 1, nullptr, nullptr, a->context->num_comp_vectors),
              nullptr);
    EXPECT_EQ(errno, EINVAL);
}

// ---- channels
// ------------------------------------------------------------------------------------

class Channel : public Completions {
  protected:
    [[nodiscard]] virtual const char* personality() const { return "spec"; }
    void SetUp() override {
        Completions::SetUp();
        ASSERT_EQ(simverbs_set_personality(personality()), 0);
        connect();
        channel = ibv_create_comp_channel(b->context);
        ASSERT_NE(channel, nullptr);
        cq = ibv_create_cq(b->context, 16, this, channel, 0);
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
        if (b->qp != nullptr) {
            EXPECT_EQ(ibv_destroy_qp(b->qp), 0);
            b->qp = nullptr;
        }
        EXPECT_EQ(ibv_destroy_cq(cq), 0);
        EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
        Completions::TearDown();
    }
    void message(unsigned flags = 0) {
        ASSERT_EQ(b->receive(1, {b->range(0, 8)}), 0);
        ASSERT_EQ(Request(IBV_WR_SEND).unsignaled().with(flags).from(a->range(0, 8)).post(*a), 0);
    }
    int wait_for_event() {
        ibv_cq* which = nullptr;
        void* context = nullptr;
        if (ibv_get_cq_event(channel, &which, &context) != 0) {
            return errno;
        }
        EXPECT_EQ(which, cq);
        EXPECT_EQ(context, this);
        ibv_ack_cq_events(which, 1);
        return 0;
    }
    void make_nonblocking() {
        ASSERT_EQ(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
    }
    bool readable_now() {
        pollfd look{channel->fd, POLLIN, 0};
        return poll(&look, 1, 0) == 1;
    }

    ibv_comp_channel* channel = nullptr;
    ibv_cq* cq = nullptr;
};

TEST_F(Channel, BlockingWaitMovesTime) {
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    message();
    EXPECT_EQ(wait_for_event(), 0);
    ibv_wc wc{};
    EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

TEST_F(Channel, NothingWaitingIsEagainWhenNonblocking) {
    make_nonblocking();
    EXPECT_EQ(wait_for_event(), EAGAIN);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    EXPECT_EQ(wait_for_event(), EAGAIN);
    message();
    pass(1);
    EXPECT_EQ(wait_for_event(), 0);
    EXPECT_EQ(wait_for_event(), EAGAIN);
}

// No call of the library is under way while the program sleeps in poll(2) or epoll_wait(2):
// somebody else must move time.
TEST_F(Channel, PollOfTheDescriptorWakes) {
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    message();
    pollfd look{channel->fd, POLLIN, 0};
    EXPECT_EQ(poll(&look, 1, -1), 1);
    EXPECT_EQ(wait_for_event(), 0);
}

TEST_F(Channel, EpollOfTheDescriptorWakes) {
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    message();
    const int watch = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLIN;
    ASSERT_EQ(epoll_ctl(watch, EPOLL_CTL_ADD, channel->fd, &event), 0);
    EXPECT_EQ(epoll_wait(watch, &event, 1, -1), 1);
    close(watch);
    EXPECT_EQ(wait_for_event(), 0);
}

TEST_F(Channel, AnArmingGivesOneEvent) {
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    message();
    message();
    pass(1);
    make_nonblocking();
    EXPECT_EQ(wait_for_event(), 0);
    EXPECT_EQ(wait_for_event(), EAGAIN);
}

TEST_F(Channel, ArmingBehindACompletionGivesNoEventForIt) {
    message();
    pass(1);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    pass(1);
    EXPECT_FALSE(readable_now());
    message();
    pass(1);
    EXPECT_TRUE(readable_now());
    EXPECT_EQ(wait_for_event(), 0);
}

// Linux, commit ed23a72778f3, says so of HCAs of Mellanox.
class ChannelOfConnectX6 : public Channel {
  protected:
    [[nodiscard]] const char* personality() const override { return "connectx6"; }
};

TEST_F(ChannelOfConnectX6, ArmingBehindACompletionGivesAnEventForIt) {
    message();
    pass(1);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    EXPECT_EQ(wait_for_event(), 0);
    // There was an event for it: a program that arms before it polls gets no second one.
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    pass(1);
    EXPECT_FALSE(readable_now());
    message();
    EXPECT_EQ(wait_for_event(), 0);
    message();
    pass(1);
    EXPECT_FALSE(readable_now());
    ibv_wc wc{};
    EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 1);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    EXPECT_EQ(wait_for_event(), 0);
}

TEST_F(ChannelOfConnectX6, ArmingAQueueThatIsEmptyAgainGivesNoEvent) {
    message();
    pass(1);
    ibv_wc wc{};
    EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 1);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    pass(1);
    EXPECT_FALSE(readable_now());
}

TEST_F(ChannelOfConnectX6, AResizedQueueKnowsWhatItHasToldOf) {
    message();
    pass(1);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    EXPECT_EQ(wait_for_event(), 0);
    ASSERT_EQ(ibv_resize_cq(cq, 100), 0);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    pass(1);
    EXPECT_FALSE(readable_now());
}

TEST_F(ChannelOfConnectX6, ArmingForSolicitedOnesTellsOfNothingThatIsThere) {
    message(IBV_SEND_SOLICITED);
    pass(1);
    ASSERT_EQ(ibv_req_notify_cq(cq, 1), 0);
    pass(1);
    EXPECT_FALSE(readable_now());
}

TEST_F(Channel, SolicitedOnlyWaitsForASolicitedMessage) {
    ASSERT_EQ(ibv_req_notify_cq(cq, 1), 0);
    message();
    pass(1);
    EXPECT_FALSE(readable_now());
    message(IBV_SEND_SOLICITED);
    pass(1);
    EXPECT_TRUE(readable_now());
    EXPECT_EQ(wait_for_event(), 0);
}

TEST_F(Channel, AFailureCountsAsSolicited) {
    ASSERT_EQ(ibv_req_notify_cq(cq, 1), 0);
    ASSERT_EQ(b->receive(1, {b->range(0, 8)}), 0);
    ASSERT_EQ(b->to_state(IBV_QPS_ERR), 0);
    pass(1);
    EXPECT_EQ(wait_for_event(), 0);
}

TEST_F(Channel, NextIsNotWeakenedBySolicited) {
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    ASSERT_EQ(ibv_req_notify_cq(cq, 1), 0);
    message();
    pass(1);
    EXPECT_TRUE(readable_now());
    EXPECT_EQ(wait_for_event(), 0);
}

TEST_F(Channel, AnotherThreadMayWait) {
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    // How long join() sleeps, and so how far time jumps past it, is the kernel's affair.
    repeats = false;
    std::thread waiter([this] { EXPECT_EQ(wait_for_event(), 0); });
    message();
    waiter.join();
}

volatile std::sig_atomic_t g_signals = 0;

// As read(2): a handler without SA_RESTART ends the wait (signal(7)).
class InterruptedWait : public Channel {
  protected:
    void install(int flags) {
        g_signals = 0;
        struct sigaction counts {};
        counts.sa_handler = [](int) { g_signals = g_signals + 1; };
        counts.sa_flags = flags;
        ASSERT_EQ(sigaction(SIGUSR1, &counts, &before_), 0);
        repeats = false;  // when a signal comes is the kernel's affair
    }
    void TearDown() override {
        EXPECT_EQ(sigaction(SIGUSR1, &before_, nullptr), 0);
        Channel::TearDown();
    }
    static void give_time() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

  private:
    struct sigaction before_ {};
};

TEST_F(InterruptedWait, EndsWithEintr) {
    install(0);
    std::thread other([waits = pthread_self()] {
        give_time();
        EXPECT_EQ(pthread_kill(waits, SIGUSR1), 0);
    });
    EXPECT_EQ(wait_for_event(), EINTR);
    EXPECT_EQ(g_signals, 1);
    other.join();
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    message();
    EXPECT_EQ(wait_for_event(), 0) << "and the next one is none the worse";
}

TEST_F(InterruptedWait, GoesOnWhereTheHandlerRestartsCalls) {
    install(SA_RESTART);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    std::thread other([this, waits = pthread_self()] {
        give_time();
        EXPECT_EQ(pthread_kill(waits, SIGUSR1), 0);
        give_time();
        message();
    });
    EXPECT_EQ(wait_for_event(), 0);
    EXPECT_EQ(g_signals, 1);  // not looked at before: the thread sanitizer puts handlers off
    other.join();
}

TEST_F(Channel, AnEventThatIsNotAcknowledgedHoldsUpDestroy) {
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    message();
    ibv_cq* which = nullptr;
    void* context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel, &which, &context), 0);
    ASSERT_EQ(ibv_destroy_qp(b->qp), 0);
    b->qp = nullptr;
    std::atomic<bool> destroyed{false};
    ibv_cq* doomed = cq;
    std::thread destroyer([&destroyed, doomed] {
        EXPECT_EQ(ibv_destroy_cq(doomed), 0);
        destroyed = true;
    });
    repeats = false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(destroyed);
    ibv_ack_cq_events(cq, 1);
    destroyer.join();
    cq = ibv_create_cq(b->context, 16, this, channel, 0);
}

TEST_F(Channel, BusyWhileACompletionQueueUsesIt) {
    EXPECT_EQ(ibv_destroy_comp_channel(channel), EBUSY);
}

}  // namespace
}  // namespace verbs_test
