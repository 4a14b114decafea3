// The states of a requester, event by event: what the engine does is what its table says.
#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using enum RequesterState;
using enum RequesterEvent;

// With two SENDs on the wire, PSNs 100 and 101.
void bring_to(RequesterState state, RequesterUnderTest& test) {
    test.post(WrOpcode::kSend, 8);
    test.post(WrOpcode::kSend, 8);
    if (is_recovering(state)) {
        test.nak(100, NakCode::kPsnSequenceError);
    }
    if (waits_for_receive(state)) {
        test.rnr_nak(100, 12);
    }
    if (state == kStopped) {
        test.nak(100, NakCode::kInvalidRequest);
    }
    ASSERT_EQ(test.requester.state(), state);
}

void cause(RequesterEvent event, RequesterUnderTest& test) {
    switch (event) {
        case kStart:
            test.requester.start();
            return;
        case kAcknowledged:
            test.ack(100);
            return;
        case kRewind:
            if (test.effects.timers.contains(EngineTimer::kAcknowledge)) {
                test.fire(EngineTimer::kAcknowledge);
            } else {
                test.nak(100, NakCode::kPsnSequenceError);
            }
            return;
        case kRnrNak:
            test.rnr_nak(100, 12);
            return;
        case kRnrExpired:
            test.fire(EngineTimer::kRnr);
            return;
        case kStop:
            test.requester.flush(FaultCause::kFlushed);
            return;
    }
}

TEST(RequesterStates, EachEventLeadsWhereTheTableSays) {
    for (const RequesterTransition& row : kRequesterTransitions) {
        const bool needs_timer_in_wait = row.from == kRnrWaitRecovering && row.event == kRewind;
        if (needs_timer_in_wait || row.event == kRnrExpired) {
            continue;  // the latter goes back at once: see below
        }
        RequesterUnderTest test;
        bring_to(row.from, test);
        cause(row.event, test);
        EXPECT_EQ(test.requester.state(), row.to)
            << to_string(row.from) << " on " << to_string(row.event);
    }
}

// The rest is sent again, so the state after the wait is RECOVERING at once.
TEST(RequesterStates, TheEndOfAnRnrWaitGoesBack) {
    for (const RequesterState from : {kRnrWait, kRnrWaitRecovering}) {
        RequesterUnderTest test;
        bring_to(from, test);
        test.fire(EngineTimer::kRnr);
        EXPECT_EQ(test.requester.state(), kRecovering);
    }
}

TEST(RequesterStates, AnRnrWaitThatNothingIsLeftOfEndsInSending) {
    RequesterUnderTest test;
    bring_to(kRnrWaitRecovering, test);
    test.ack(101);
    EXPECT_EQ(test.requester.state(), kRnrWait);
    test.fire(EngineTimer::kRnr);
    EXPECT_EQ(test.requester.state(), kSending);
}

TEST(RequesterStates, AFlushLeavesNoTimer) {
    for (const RequesterState from : {kSending, kRnrWait, kRnrWaitRecovering}) {
        RequesterUnderTest test;
        bring_to(from, test);
        ASSERT_FALSE(test.effects.timers.empty());
        test.requester.flush(FaultCause::kFlushed);
        EXPECT_TRUE(test.effects.timers.empty()) << to_string(from);
    }
}

TEST(RequesterStates, AStoppedRequesterReadsNoAnswer) {
    RequesterUnderTest test;
    bring_to(kStopped, test);
    test.ack(101);
    test.rnr_nak(101, 12);
    test.nak(101, NakCode::kPsnSequenceError);
    EXPECT_EQ(test.requester.state(), kStopped);
}

}  // namespace
}  // namespace simverbs::test
