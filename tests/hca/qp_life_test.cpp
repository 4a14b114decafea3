#include <cerrno>

#include <gmock/gmock.h>

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

QpValues asking_for_the_event() {
    QpValues values;
    values.en_sqd_async_notify = 1;
    return values;
}

TEST(QueuePairLife, AResetOneWorksAgainFromTheStart) {
    Pair pair;
    for (unsigned round = 0; round < 3; ++round) {
        pair.a.fill(0, 4096, round);
        pair.b.qp.post_receive(11, {pair.b.segment(8192, 4096)});
        pair.a.qp.post(send_of(pair.a, round, 0, 4096));
        pair.drive();
        EXPECT_THAT(ids(pair.a.send_cq.poll()), ElementsAre(round));
        EXPECT_THAT(ids(pair.b.receive_cq.poll()), ElementsAre(11));
        EXPECT_EQ(pair.b.bytes(8192, 4096), pair.a.bytes(0, 4096));
        for (Side* side : {&pair.a, &pair.b}) {
            EXPECT_EQ(side->qp.modify_to(QpState::kReset), 0);
            EXPECT_EQ(side->qp.query().values.dest_qpn, 0U);
        }
        pair.connect(pair.a.qp, pair.b, pair.b.qp);
        pair.connect(pair.b.qp, pair.a, pair.a.qp);
    }
}

TEST(QueuePairLife, ResetForgetsWorkAndCompletesNothing) {
    Pair pair;
    pair.drop_all(pair.a);
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 9 * 1024UL));
    pair.a.qp.post_receive(2, {pair.a.segment(0, 8)});
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kReset), 0);
    pair.drive();
    EXPECT_THAT(pair.a.send_cq.poll(), IsEmpty());
    EXPECT_THAT(pair.a.receive_cq.poll(), IsEmpty());
}

TEST(QueuePairLife, AnFailedOneComesBackThroughReset) {
    Pair pair;
    Send bad = write_of(pair.a, pair.b, 1, 0, 8);
    bad.rkey = 0xBAD;
    pair.a.qp.post(bad);
    pair.drive();
    EXPECT_EQ(pair.a.qp.state(), QpState::kErr);
    EXPECT_EQ(pair.b.qp.state(), QpState::kErr);
    pair.a.send_cq.poll();
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kReset), 0);
    EXPECT_EQ(pair.b.qp.modify_to(QpState::kReset), 0);
    pair.connect(pair.a.qp, pair.b, pair.b.qp);
    pair.connect(pair.b.qp, pair.a, pair.a.qp);
    pair.a.qp.post(write_of(pair.a, pair.b, 2, 0, 8));
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kSuccess));
}

TEST(QueuePairLife, TheFirstPacketInRtrIsAnnouncedToTheOwner) {
    Pair pair;
    QueuePairHandle qp = pair.b.make_qp();
    EXPECT_EQ(qp.modify_to(QpState::kInit, kInitAttrs, init_values(pair.options())), 0);
    EXPECT_EQ(qp.modify_to(QpState::kRtr, kRtrAttrs,
                           rtr_values(pair.options(), pair.a.lid(), pair.a.qp.qpn())),
              0);
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kReset), 0);
    pair.connect(pair.a.qp, pair.b, qp);
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 8));
    pair.a.qp.post(write_of(pair.a, pair.b, 2, 0, 8));
    pair.drive();
    const std::vector<EventMessage> events = pair.b.host.take_events();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].event, static_cast<std::uint32_t>(AsyncEvent::kCommEst));
    EXPECT_EQ(events[0].subject, qp.handle());
}

TEST(QueuePairLife, ItIsSilentWhileItIsNotReadyAndTheTraceSaysWhy) {
    Pair pair({.retry_count = 0});
    pair.watch_packets();
    EXPECT_EQ(pair.b.qp.modify_to(QpState::kReset), 0);
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 8));
    pair.drive();
    EXPECT_THAT(pair.fates(), ElementsAre("queue pair not ready"));
    EXPECT_THAT(pair.packets_of(pair.b), IsEmpty());
}

TEST(SendQueueDrain, SaysSoWhenTheLastAnswerIsInAndOnlyWhenAsked) {
    for (const bool asked : {false, true}) {
        Pair pair;
        pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 9 * 1024UL));
        EXPECT_EQ(pair.a.qp.modify_to(QpState::kSqd,
                                      asked ? QpAttrs(QpAttr::kEnSqdAsyncNotify) : QpAttrs(),
                                      asking_for_the_event()),
                  0);
        EXPECT_TRUE(pair.a.qp.query().draining);
        EXPECT_EQ(pair.a.qp.modify_to(QpState::kRts), EINVAL) << "not while it drains";
        pair.drive();
        EXPECT_FALSE(pair.a.qp.query().draining);
        EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kSuccess));
        if (asked) {
            EXPECT_THAT(pair.a.take_events(), ElementsAre(AsyncEvent::kSqDrained));
        } else {
            EXPECT_THAT(pair.a.take_events(), IsEmpty());
        }
    }
}

TEST(SendQueueDrain, AnIdleQueueHasDrainedAtOnce) {
    Pair pair;
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kSqd, QpAttr::kEnSqdAsyncNotify, asking_for_the_event()),
              0);
    EXPECT_THAT(pair.a.take_events(), ElementsAre(AsyncEvent::kSqDrained));
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kRts), 0);
}

TEST(SendQueueDrain, WhatIsPostedMeanwhileStartsWithRts) {
    Pair pair;
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kSqd), 0);
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 8));
    pair.drive();
    EXPECT_THAT(pair.a.send_cq.poll(), IsEmpty());
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kRts), 0);
    pair.drive();
    EXPECT_THAT(ids(pair.a.send_cq.poll()), ElementsAre(1));
}

TEST(SendQueueDrain, TheReceiveSideGoesOn) {
    Pair pair;
    EXPECT_EQ(pair.b.qp.modify_to(QpState::kSqd), 0);
    pair.a.qp.post(read_of(pair.a, pair.b, 1, 0, 9 * 1024UL));
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kSuccess));
}

TEST(SendQueueDrain, ARetransmissionIsPartOfDraining) {
    Pair pair;
    pair.drop_nth(pair.a, 1);
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 8));
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kSqd, QpAttr::kEnSqdAsyncNotify, asking_for_the_event()),
              0);
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kSuccess));
    EXPECT_THAT(pair.a.take_events(), ElementsAre(AsyncEvent::kSqDrained));
}

}  // namespace
}  // namespace simverbs::test
