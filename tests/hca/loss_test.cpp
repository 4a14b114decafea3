#include <functional>

#include <gmock/gmock.h>

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

using testing::ElementsAre;

constexpr std::size_t kLength = 9 * 1024UL;  // nine packets

// Requests or answers: which host's n-th frame is lost.
struct Loss {
    bool of_requester;
    std::uint64_t nth;
};

std::vector<Loss> every_loss(std::uint64_t frames) {
    std::vector<Loss> losses;
    for (std::uint64_t nth = 1; nth <= frames; ++nth) {
        losses.push_back({true, nth});
        losses.push_back({false, nth});
    }
    return losses;
}

// Runs `request` and two FETCH_ADDs behind it with one frame lost; everything has to happen once.
void expect_exactly_once(const std::function<Send(Pair&)>& request, const Loss& loss,
                         const std::function<void(Pair&)>& check) {
    SCOPED_TRACE(testing::Message() << (loss.of_requester ? "request " : "answer ") << loss.nth);
    Pair pair;
    pair.a.fill(0, kLength, 1);
    pair.b.fill(0, kLength, 2);
    pair.b.set_word(65536, 100);
    pair.b.qp.post_receive(11, {pair.b.segment(32768, kLength)});
    pair.drop_nth(loss.of_requester ? pair.a : pair.b, loss.nth);
    const std::vector<Send> sends = {request(pair), fetch_add_of(pair.a, pair.b, 2, 65536, 1),
                                     fetch_add_of(pair.a, pair.b, 3, 65536, 1)};
    pair.a.qp.post(sends);
    pair.drive();
    const std::vector<Cqe> sent = pair.a.send_cq.poll();
    EXPECT_THAT(ids(sent), ElementsAre(1, 2, 3));
    EXPECT_THAT(statuses(sent), testing::Each(WcStatus::kSuccess));
    EXPECT_EQ(pair.b.word(65536), 102U);
    EXPECT_EQ(pair.a.word(65536), 101U) << "what the second atomic found";
    EXPECT_EQ(pair.a.qp.state(), QpState::kRts);
    EXPECT_EQ(pair.b.qp.state(), QpState::kRts);
    check(pair);
}

TEST(Loss, OfAnyFrameAWriteArrivesOnce) {
    for (const Loss& loss : every_loss(12)) {
        expect_exactly_once([](Pair& pair) { return write_of(pair.a, pair.b, 1, 0, kLength); },
                            loss,
                            [](Pair& pair) {
                                EXPECT_EQ(pair.b.bytes(0, kLength), pair.a.bytes(0, kLength));
                                EXPECT_EQ(pair.b.receive_cq.waiting(), 0U);
                            });
    }
}

TEST(Loss, OfAnyFrameAWriteWithImmediateTakesOneReceive) {
    for (const Loss& loss : every_loss(12)) {
        expect_exactly_once(
            [](Pair& pair) {
                Send send = write_of(pair.a, pair.b, 1, 0, kLength);
                send.opcode = WrOpcode::kRdmaWriteWithImm;
                send.immediate = 0x11223344;
                return send;
            },
            loss,
            [](Pair& pair) {
                EXPECT_EQ(pair.b.bytes(0, kLength), pair.a.bytes(0, kLength));
                const std::vector<Cqe> received = pair.b.receive_cq.poll();
                ASSERT_THAT(ids(received), ElementsAre(11));
                EXPECT_EQ(received[0].immediate, 0x11223344U);
                EXPECT_EQ(received[0].byte_length, kLength);
            });
    }
}

TEST(Loss, OfAnyFrameASendTakesOneReceive) {
    for (const Loss& loss : every_loss(12)) {
        expect_exactly_once([](Pair& pair) { return send_of(pair.a, 1, 0, kLength); }, loss,
                            [](Pair& pair) {
                                EXPECT_EQ(pair.b.bytes(32768, kLength), pair.a.bytes(0, kLength));
                                EXPECT_THAT(ids(pair.b.receive_cq.poll()), ElementsAre(11));
                            });
    }
}

TEST(Loss, OfAnyFrameAReadBringsEveryByte) {
    for (const Loss& loss : every_loss(12)) {
        expect_exactly_once(
            [](Pair& pair) { return read_of(pair.a, pair.b, 1, 0, kLength); }, loss,
            [](Pair& pair) { EXPECT_EQ(pair.a.bytes(0, kLength), pair.b.bytes(0, kLength)); });
    }
}

TEST(Loss, OfAnyFrameAtomicsHappenOnce) {
    for (const Loss& loss : every_loss(4)) {
        expect_exactly_once(
            [](Pair& pair) { return compare_swap_of(pair.a, pair.b, 1, 131072, 0, 7); }, loss,
            [](Pair& pair) { EXPECT_EQ(pair.b.word(131072), 7U); });
    }
}

TEST(Loss, AGapIsMendedByTheNakLongBeforeTheTimer) {
    Pair pair;
    pair.watch_packets();
    pair.drop_nth(pair.a, 3);
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, kLength));
    using namespace std::chrono_literals;
    EXPECT_LT(pair.drive(), 1ms);
    EXPECT_EQ(pair.retransmissions(pair.a), 7U) << "from the one that was lost";
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kSuccess));
}

TEST(Loss, OfEverythingEndsAfterTheFirstTryAndRetryCntMore) {
    PairOptions options;
    options.timeout = 14;
    options.retry_count = 7;
    Pair pair(options);
    pair.drop_all(pair.a);
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 8));
    EXPECT_EQ(pair.drive(), 8 * ack_timeout(14).value());
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kRetryExcErr));
}

TEST(Loss, ALinkThatComesBackInTimeCostsRetriesOnly) {
    using namespace std::chrono_literals;
    Pair pair;
    pair.set_link(fabric::LinkState::kDown);
    pair.a.fill(0, kLength, 1);
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, kLength));
    pair.advance(100ms);
    pair.set_link(fabric::LinkState::kUp);
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kSuccess));
    EXPECT_EQ(pair.b.bytes(0, kLength), pair.a.bytes(0, kLength));
    EXPECT_THAT(
        pair.a.take_events(),
        ElementsAre(AsyncEvent::kPortErr, AsyncEvent::kClientReregister, AsyncEvent::kPortActive));
}

TEST(Loss, WaitingForAReceiverEndsWhenOneIsPosted) {
    using namespace std::chrono_literals;
    Pair pair;
    pair.a.qp.post(send_of(pair.a, 1, 0, 64));
    pair.advance(100ms);
    EXPECT_EQ(pair.a.send_cq.waiting(), 0U);
    pair.b.qp.post_receive(11, {pair.b.segment(0, 64)});
    EXPECT_LT(pair.drive(), 1ms);
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kSuccess));
}

}  // namespace
}  // namespace simverbs::test
