// The states of a responder, event by event: what the engine does is what its table says.
#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using enum PacketPosition;
using enum ResponderState;
using enum ResponderEvent;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kBadKey = 0x999;

// Returns the PSN that it then expects.
std::uint32_t bring_to(ResponderState state, ResponderUnderTest& test) {
    switch (state) {
        case kStopped:
            test.responder.flush();
            break;
        case kInOrder:
            break;
        case kGapReported:
            test.write(kOnly, 105, 8);
            break;
        case kNotReady:
            test.send(kOnly, 100, 8);
            break;
        case kRefusing:
            test.read(100, 40 * kMtu);
            test.write(kOnly, 140, 8, 0, Trailer::kNone, kBadKey);
            break;
    }
    EXPECT_EQ(test.responder.state(), state);
    test.take_answers();
    return state == kRefusing ? 140 : 100;
}

void cause(ResponderEvent event, std::uint32_t psn, ResponderUnderTest& test) {
    switch (event) {
        case kStart:
            test.responder.start();
            return;
        case kGap:
            test.write(kOnly, psn + 3, 8);
            return;
        case kNoReceive:
            test.send(kOnly, psn, 8);
            return;
        case kExecuted:
            test.write(kOnly, psn, 8);
            return;
        case kRefuse:
            // Answers wait only behind a READ that was carried out: see below.
            return;
        case kStop:
            test.responder.flush();
            return;
    }
}

TEST(ResponderStates, EachEventLeadsWhereTheTableSays) {
    for (const ResponderTransition& row : kResponderTransitions) {
        if (row.event == kRefuse) {
            continue;
        }
        ResponderUnderTest test;
        cause(row.event, bring_to(row.from, test), test);
        EXPECT_EQ(test.responder.state(), row.to)
            << to_string(row.from) << " on " << to_string(row.event);
    }
}

TEST(ResponderStates, ARefusalWaitsForTheReadBeforeIt) {
    for (const ResponderState from : {kInOrder, kGapReported, kNotReady}) {
        ResponderUnderTest test;
        test.read(100, 40 * kMtu);
        if (from == kGapReported) {
            test.write(kOnly, 145, 8);
        } else if (from == kNotReady) {
            test.send(kOnly, 140, 8);
        }
        ASSERT_EQ(test.responder.state(), from);
        test.write(kOnly, 140, 8, 0, Trailer::kNone, kBadKey);
        EXPECT_EQ(test.responder.state(), kRefusing);
        EXPECT_THAT(test.effects.failures, IsEmpty());
    }
}

TEST(ResponderStates, AFlushLeavesNoAnswer) {
    ResponderUnderTest test;
    test.read(100, 40 * kMtu);
    ASSERT_TRUE(test.responder.has_answers());
    test.responder.flush();
    EXPECT_FALSE(test.responder.has_answers());
    EXPECT_TRUE(test.effects.timers.empty());
}

TEST(ResponderStates, NothingBehindARefusedRequestIsLookedAt) {
    ResponderUnderTest test;
    bring_to(kRefusing, test);
    test.write(kOnly, 140, 8);
    test.write(kOnly, 142, 8);
    EXPECT_EQ(test.responder.state(), kRefusing);
    EXPECT_THAT(test.effects.placed, IsEmpty());
    test.transmitter_free();
    test.transmitter_free();
    EXPECT_THAT(test.effects.failures, ElementsAre(FaultCause::kRemoteKey));
    EXPECT_EQ(test.responder.state(), kStopped);
}

TEST(ResponderStates, AGapIsReportedOnceAndAnRnrNakEachTime) {
    ResponderUnderTest test;
    test.write(kOnly, 101, 8);
    test.write(kOnly, 102, 8);
    EXPECT_THAT(test.take_answers(), ElementsAre("NAK 0 at 100"));
    test.send(kOnly, 100, 8);
    test.send(kOnly, 100, 8);
    EXPECT_THAT(test.take_answers(), ElementsAre("RNR NAK 12 at 100", "RNR NAK 12 at 100"));
    test.write(kOnly, 101, 8);
    EXPECT_THAT(test.take_answers(), IsEmpty()) << "what follows it is no gap";
}

}  // namespace
}  // namespace simverbs::test
