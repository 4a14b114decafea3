#include <gmock/gmock.h>

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kFlushError = WcStatus::kWrFlushErr;

TEST(Flush, ByModifyCompletesBothQueuesInOrder) {
    Pair pair;
    pair.drop_all(pair.a);
    std::vector<Send> sends;
    for (std::uint64_t i = 1; i <= 5; ++i) {
        sends.push_back(write_of(pair.a, pair.b, i, 0, 3000));
        sends.back().flags = i % 2 == 0 ? SendFlags() : SendFlag::kSignaled;
        pair.a.qp.post_receive(10 + i, {pair.a.segment(0, 8)});
    }
    pair.a.qp.post(sends);
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kErr), 0);
    const std::vector<Cqe> sent = pair.a.send_cq.poll();
    EXPECT_THAT(ids(sent), ElementsAre(1, 2, 3, 4, 5)) << "unsignaled ones too";
    EXPECT_THAT(statuses(sent), Each(kFlushError));
    EXPECT_EQ(sent.back().freed_to, 5U);
    const std::vector<Cqe> received = pair.a.receive_cq.poll();
    EXPECT_THAT(ids(received), ElementsAre(11, 12, 13, 14, 15));
    EXPECT_THAT(statuses(received), Each(kFlushError));
    EXPECT_EQ(received[0].vendor_error, static_cast<std::uint32_t>(FaultCause::kFlushed));
    EXPECT_THAT(pair.a.take_events(), IsEmpty());
}

TEST(Flush, WhatIsPostedInErrCompletesAtOnce) {
    Pair pair;
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kErr), 0);
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 8));
    pair.a.qp.post_receive(2, {pair.a.segment(0, 8)});
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(kFlushError));
    EXPECT_THAT(statuses(pair.a.receive_cq.poll()), ElementsAre(kFlushError));
}

TEST(Flush, WhatWasWrittenWithoutADoorbellIsFlushedToo) {
    Pair pair;
    pair.a.qp.write_send_producer(2);
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kErr), 0);
    EXPECT_EQ(pair.a.send_cq.poll().size(), 2U);
}

TEST(Flush, ReceivesPostedInInitAreFlushedFromThere) {
    Pair pair;
    QueuePairHandle qp = pair.a.make_qp();
    EXPECT_EQ(qp.modify_to(QpState::kInit, kInitAttrs, init_values(pair.options())), 0);
    qp.post_receive(7, {pair.a.segment(0, 8)});
    EXPECT_EQ(qp.modify_to(QpState::kErr), 0);
    EXPECT_THAT(ids(pair.a.receive_cq.poll()), ElementsAre(7));
}

// The buffer is the program's again when it sees the completion: what still travels is as it was.
TEST(Flush, PacketsOnTheirWayCarryWhatTheyWereSentWith) {
    Pair pair;
    pair.a.fill(0, 9 * 1024UL, 1);
    const std::vector<std::byte> sent = pair.a.bytes(0, 9 * 1024UL);
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 9 * 1024UL));
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kErr), 0);
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(kFlushError));
    pair.a.fill(0, 9 * 1024UL, 99);
    pair.drive();
    EXPECT_EQ(pair.b.bytes(0, 9 * 1024UL), sent);
}

TEST(Flush, AReceiveInUseIsTheFirstToBeFlushed) {
    Pair pair;
    pair.b.qp.post_receive(1, {pair.b.segment(0, 9 * 1024UL)});
    pair.b.qp.post_receive(2, {pair.b.segment(0, 9 * 1024UL)});
    pair.drop_nth(pair.a, 9);
    pair.a.qp.post(send_of(pair.a, 1, 0, 9 * 1024UL));
    using namespace std::chrono_literals;
    pair.advance(10us);
    EXPECT_EQ(pair.b.qp.modify_to(QpState::kErr), 0);
    EXPECT_THAT(ids(pair.b.receive_cq.poll()), ElementsAre(1, 2));
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kRetryExcErr));
}

TEST(Flush, ARefusalReachesTheRequesterBehindTheReadBeforeIt) {
    Pair pair;
    pair.b.fill(0, 64 * 1024UL, 5);
    Send bad = write_of(pair.a, pair.b, 2, 131072, 8);
    bad.rkey = 0xBAD;
    const std::vector<Send> sends = {read_of(pair.a, pair.b, 1, 0, 64 * 1024UL), bad,
                                     write_of(pair.a, pair.b, 3, 131072, 8)};
    pair.a.qp.post(sends);
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()),
                ElementsAre(WcStatus::kSuccess, WcStatus::kRemAccessErr, kFlushError));
    EXPECT_EQ(pair.a.bytes(0, 64 * 1024UL), pair.b.bytes(0, 64 * 1024UL));
    EXPECT_THAT(pair.b.take_events(), ElementsAre(AsyncEvent::kQpAccessErr));
}

}  // namespace
}  // namespace simverbs::test
