#include <cerrno>

#include <gmock/gmock.h>
#include <poll.h>

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Send> small_writes(const Pair& pair, std::size_t count) {
    std::vector<Send> sends;
    for (std::size_t i = 0; i < count; ++i) {
        sends.push_back(write_of(pair.a, pair.b, i, 0, 8));
    }
    return sends;
}

TEST(CqOverrun, KillsTheQueueOnceAndTakesEachOfItsQueuePairsDown) {
    Pair pair({.cq_entries = 4});
    QueuePairHandle bystander = pair.a.make_qp();
    pair.connect(bystander, pair.b, pair.b.qp);
    pair.a.qp.post(small_writes(pair, 7));
    pair.drive();
    EXPECT_EQ(pair.a.qp.state(), QpState::kErr);
    EXPECT_EQ(bystander.state(), QpState::kErr);
    EXPECT_EQ(pair.b.qp.state(), QpState::kRts);
    EXPECT_THAT(pair.a.take_events(),
                ElementsAre(AsyncEvent::kCqErr, AsyncEvent::kQpFatal, AsyncEvent::kQpFatal));
    const std::vector<Cqe> before = pair.a.send_cq.poll();
    EXPECT_THAT(ids(before), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(statuses(before), Each(WcStatus::kSuccess));
}

TEST(CqOverrun, DeliversNothingMoreEvenWhenThereIsRoomAgain) {
    Pair pair({.cq_entries = 4});
    pair.a.qp.post(small_writes(pair, 5));
    pair.drive();
    pair.a.send_cq.poll();
    pair.a.take_events();
    pair.a.qp.post(write_of(pair.a, pair.b, 9, 0, 8));
    pair.drive();
    EXPECT_THAT(pair.a.send_cq.poll(), IsEmpty());
    EXPECT_THAT(pair.a.take_events(), IsEmpty());
}

TEST(CqOverrun, OfTheReceiverLeavesTheSenderWithoutAnAnswer) {
    Pair pair({.cq_entries = 2});
    for (std::uint64_t i = 0; i < 3; ++i) {
        pair.b.qp.post_receive(i, {pair.b.segment(0, 8)});
    }
    pair.a.qp.post(send_of(pair.a, 1, 0, 8));
    pair.a.qp.post(send_of(pair.a, 2, 0, 8));
    pair.drive();
    pair.a.send_cq.poll();
    pair.a.qp.post(send_of(pair.a, 3, 0, 8));
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kRetryExcErr));
    EXPECT_EQ(pair.b.qp.state(), QpState::kErr);
    EXPECT_THAT(pair.b.take_events(), ElementsAre(AsyncEvent::kCqErr, AsyncEvent::kQpFatal));
    EXPECT_THAT(ids(pair.b.receive_cq.poll()), ElementsAre(0, 1));
}

// The completion in error of a request that failed finds the queue full.
TEST(CqOverrun, ComesBeforeTheFailureWhoseCompletionItWas) {
    Pair pair({.cq_entries = 1});
    pair.a.qp.post(small_writes(pair, 1));
    pair.drive();
    pair.drop_all(pair.a);
    pair.a.qp.post(small_writes(pair, 1));
    pair.drive();
    EXPECT_EQ(pair.a.qp.state(), QpState::kErr);
    EXPECT_THAT(pair.a.take_events(), ElementsAre(AsyncEvent::kCqErr, AsyncEvent::kQpFatal));
}

TEST(CqOverrun, AFullQueueThatIsPolledInTimeLosesNothing) {
    Pair pair({.cq_entries = 4});
    for (int round = 0; round < 10; ++round) {
        pair.a.qp.post(small_writes(pair, 4));
        pair.drive();
        EXPECT_THAT(statuses(pair.a.send_cq.poll()),
                    ElementsAre(WcStatus::kSuccess, WcStatus::kSuccess, WcStatus::kSuccess,
                                WcStatus::kSuccess));
    }
}

// A pair whose `b` has a receive CQ that reports to a channel.
class Notification : public testing::Test {
  protected:
    Notification()
        : channel_(pair_.b.host.must(CreateChannel{}).handle),
          descriptor_(pair_.b.host.last_descriptor()),
          cq_(pair_.b.host, 16, channel_),
          qp_(pair_.b.host, pair_.b.host.must(CreateQp{.pd = pair_.b.pd,
                                                       .send_cq = pair_.b.send_cq.handle(),
                                                       .receive_cq = cq_.handle(),
                                                       .capacity = pair_.options().capacity})) {
        EXPECT_EQ(pair_.a.qp.modify_to(QpState::kReset), 0);
        pair_.connect(pair_.a.qp, pair_.b, qp_);
        pair_.connect(qp_, pair_.a, pair_.a.qp);
        for (std::uint64_t i = 0; i < 8; ++i) {
            qp_.post_receive(i, {pair_.b.segment(0, 8)});
        }
    }

    void send(SendFlags more = {}) {
        Send send = send_of(pair_.a, 1, 0, 8);
        send.flags = send.flags | more;
        pair_.a.qp.post(send);
        pair_.drive();
    }
    std::size_t events() { return Host::read_all(descriptor_).size(); }

    Pair pair_;
    std::uint32_t channel_;
    int descriptor_;
    CompletionQueueRing cq_;
    QueuePairHandle qp_;
};

TEST_F(Notification, ComesOnlyWhenArmedAndOnceAnArming) {
    send();
    EXPECT_EQ(events(), 0U);
    cq_.arm(CqArm::kNext);
    send();
    send();
    EXPECT_EQ(events(), 1U);
    cq_.arm(CqArm::kNext);
    send();
    EXPECT_EQ(events(), 1U);
}

TEST_F(Notification, ArmingWithAnEntryAlreadyThereWaitsForTheNext) {
    send();
    cq_.arm(CqArm::kNext);
    EXPECT_EQ(events(), 0U);
    send();
    EXPECT_EQ(events(), 1U);
}

TEST_F(Notification, ArmedForSolicitedItSleepsThroughTheRest) {
    cq_.arm(CqArm::kSolicited);
    send();
    EXPECT_EQ(events(), 0U);
    send(SendFlag::kSolicited);
    EXPECT_EQ(events(), 1U);
}

TEST_F(Notification, AnErrorWakesAsIfItWereSolicited) {
    cq_.arm(CqArm::kSolicited);
    EXPECT_EQ(qp_.modify_to(QpState::kErr), 0);
    EXPECT_EQ(events(), 1U);
    EXPECT_EQ(cq_.waiting(), 8U);
}

TEST_F(Notification, TheEventNamesItsQueue) {
    cq_.arm(CqArm::kNext);
    send();
    const std::vector<EventMessage> messages = Host::read_all(descriptor_);
    ASSERT_EQ(messages.size(), 1U);
    EXPECT_EQ(messages[0].subject, cq_.handle());
}

TEST_F(Notification, AResizedQueueStaysArmed) {
    cq_.arm(CqArm::kNext);
    EXPECT_EQ(cq_.resize(32), 0);
    send();
    EXPECT_EQ(events(), 1U);
}

TEST(ResizeCq, KeepsWhatWasNotPolledInOrder) {
    Pair pair({.cq_entries = 4});
    pair.a.qp.post(small_writes(pair, 3));
    pair.drive();
    EXPECT_EQ(pair.a.send_cq.resize(2), EINVAL);
    EXPECT_EQ(pair.a.send_cq.resize(0), EINVAL);
    ASSERT_EQ(pair.a.send_cq.resize(64), 0);
    pair.a.qp.post(small_writes(pair, 20));
    pair.drive();
    const std::vector<Cqe> entries = pair.a.send_cq.poll();
    ASSERT_EQ(entries.size(), 23U);
    EXPECT_EQ(entries[2].wr_id, 2U);
    EXPECT_EQ(entries[3].wr_id, 0U);
}

TEST(Completion, OfAReceiveSaysWhatAndFromWhom) {
    Pair pair;
    pair.b.qp.post_receive(11, {pair.b.segment(0, 100)});
    Send send = send_of(pair.a, 1, 0, 64);
    send.opcode = WrOpcode::kSendWithImm;
    send.immediate = 0xAABBCCDD;
    pair.a.qp.post(send);
    pair.drive();
    const std::vector<Cqe> received = pair.b.receive_cq.poll();
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received[0].byte_length, 64U);
    EXPECT_EQ(received[0].immediate, 0xAABBCCDDU);
    EXPECT_EQ(received[0].wc_flags, static_cast<std::uint32_t>(WcFlag::kWithImm));
    EXPECT_EQ(received[0].opcode, static_cast<std::uint32_t>(WcOpcode::kRecv));
    EXPECT_EQ(received[0].qpn, pair.b.qp.qpn());
    EXPECT_EQ(received[0].queue, CompletedQueue::kReceive);
    EXPECT_EQ(received[0].freed_to, 1U);
    const std::vector<Cqe> sent = pair.a.send_cq.poll();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].opcode, static_cast<std::uint32_t>(WcOpcode::kSend));
    EXPECT_EQ(sent[0].qpn, pair.a.qp.qpn());
    EXPECT_GT(sent[0].timestamp_ps, received[0].timestamp_ps);
}

}  // namespace
}  // namespace simverbs::test
