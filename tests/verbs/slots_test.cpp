// Signaled and unsignaled requests, and when the slot of a request is free again (IBA 10.8.5.1).
#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class SendSlots : public TwoHosts {
  protected:
    static constexpr std::uint32_t kSlots = 4;

    void SetUp() override {
        TwoHosts::SetUp();
        Connection with;
        with.cap.max_send_wr = kSlots;
        with.cap.max_recv_wr = kSlots;
        connect(with);
    }
    int write(std::uint64_t id, bool signaled) {
        Request request(IBV_WR_RDMA_WRITE);
        request.id(id).from(a->range(0, 8)).to(b->address(0), b->mr->rkey);
        return (signaled ? request : request.unsignaled()).post(*a);
    }
};

TEST_F(SendSlots, AsManyAsWereAskedForThenEnomem) {
    for (std::uint64_t i = 0; i < kSlots; ++i) {
        EXPECT_EQ(write(i, true), 0);
    }
    EXPECT_EQ(write(99, true), ENOMEM);
    EXPECT_EQ(a->state(), IBV_QPS_RTS);
}

TEST_F(SendSlots, ACompletionFreesItsSlotOnlyOnceItIsPolled) {
    for (std::uint64_t i = 0; i < kSlots; ++i) {
        ASSERT_EQ(write(i, true), 0);
    }
    pass(1000);  // all are done, none is polled
    EXPECT_EQ(write(99, true), ENOMEM);
    EXPECT_EQ(a->wait().wr_id, 0U);
    EXPECT_EQ(write(4, true), 0);
    EXPECT_EQ(write(99, true), ENOMEM);
}

TEST_F(SendSlots, UnsignaledRequestsHoldTheirSlotsUntilALaterSignaledOneIsPolled) {
    for (std::uint64_t i = 0; i < kSlots - 1; ++i) {
        ASSERT_EQ(write(i, false), 0);
    }
    pass(1000);
    ASSERT_EQ(write(3, true), 0);
    EXPECT_EQ(write(99, true), ENOMEM);
    EXPECT_EQ(a->wait().wr_id, 3U);
    for (std::uint64_t i = 0; i < kSlots; ++i) {
        EXPECT_EQ(write(i, false), 0);
    }
}

// The full queue that a program runs into which never signals.
TEST_F(SendSlots, OnlyUnsignaledRequestsFillTheQueueForGood) {
    for (std::uint64_t i = 0; i < kSlots; ++i) {
        ASSERT_EQ(write(i, false), 0);
    }
    expect_silence();
    EXPECT_EQ(write(99, true), ENOMEM);
}

TEST_F(SendSlots, AFailedUnsignaledRequestCompletesAnyway) {
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .id(5)
                  .unsignaled()
                  .from(a->range(0, 8))
                  .to(b->address(0), b->mr->rkey ^ 0xFF00)
                  .post(*a),
              0);
    const ibv_wc wc = a->wait();
    EXPECT_EQ(wc.wr_id, 5U);
    EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(SendSlots, ReceivesHaveSlotsToo) {
    for (std::uint64_t i = 0; i < kSlots; ++i) {
        EXPECT_EQ(b->receive(i, {b->range(0, 8)}), 0);
    }
    EXPECT_EQ(b->receive(99, {b->range(0, 8)}), ENOMEM);
    ASSERT_EQ(Request(IBV_WR_SEND).from(a->range(0, 8)).post(*a), 0);
    pass(1);
    EXPECT_EQ(b->receive(99, {b->range(0, 8)}), ENOMEM);
    EXPECT_EQ(b->wait().wr_id, 0U);
    EXPECT_EQ(b->receive(4, {b->range(0, 8)}), 0);
}

TEST_F(SendSlots, ManyRoundsGoThroughAShortQueue) {
    for (std::uint64_t i = 0; i < 1000; ++i) {
        ASSERT_EQ(b->receive(i, {b->range(0, 8)}), 0);
        ASSERT_EQ(Request(IBV_WR_SEND).id(i).from(a->range(0, 8)).post(*a), 0);
        ASSERT_EQ(b->wait().wr_id, i);
        ASSERT_EQ(a->wait().wr_id, i);
    }
}

// A slot is free as soon as its request is done, whether a completion of it was polled or not.
TEST_F(SendSlots, OfRxeAreFreeOnceTheRequestIsDone) {
    a.reset();
    b.reset();
    ASSERT_EQ(simverbs_restart(), 0);
    ASSERT_EQ(simverbs_set_personality("rxe"), 0);
    Connection with;
    with.cap.max_send_wr = 7;  // as many as rxe has slots
    connect(with);
    for (int round = 0; round < 3; ++round) {
        for (std::uint64_t i = 0; i < 7; ++i) {
            ASSERT_EQ(write(i, i == 6), 0);
        }
        EXPECT_EQ(write(99, false), ENOMEM);
        pass(1000);
    }
    for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(a->wait().wr_id, 6U);
    }
    EXPECT_EQ(write(7, true), 0);
    EXPECT_EQ(a->wait().wr_id, 7U);
}

using SignalAll = TwoHosts;

TEST_F(SignalAll, ACompletionForEachRequestWhateverItsFlags) {
    connect({.signal_all = 1});
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .id(5)
                  .unsignaled()
                  .from(a->range(0, 8))
                  .to(b->address(0), b->mr->rkey)
                  .post(*a),
              0);
    EXPECT_EQ(a->wait().wr_id, 5U);
}

}  // namespace
}  // namespace verbs_test
