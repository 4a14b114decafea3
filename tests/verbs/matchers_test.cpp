// <simverbs/gtest.hpp>: what its matchers take, and what they say of what they do not.
#include <gtest/gtest-spi.h>

#include "simverbs/gtest.hpp"

#include "injection.hpp"

namespace verbs_test {
namespace {

using simverbs::CompletesWith;
using simverbs::NothingWithin;
using namespace std::chrono_literals;

class Matchers : public Injection {
  protected:
    template <class M>
    static std::string explained(const M& matcher, ibv_cq* cq) {
        testing::StringMatchResultListener listener;
        EXPECT_FALSE(testing::ExplainMatchResult(matcher, cq, &listener));
        return listener.str();
    }
};

TEST_F(Matchers, WaitForTheNextCompletion) {
    connect({.timeout = 10, .retries = 1});
    write(1, 3);
    EXPECT_THAT(a->cq, CompletesWith(IBV_WC_SUCCESS));
    const simverbs::Fault lost = simverbs::drop().from("h0").every_time().inject();
    write(2, 3);
    EXPECT_THAT(a->cq, CompletesWith(IBV_WC_RETRY_EXC_ERR));
    EXPECT_THAT(b->cq, NothingWithin(1s));
}

TEST_F(Matchers, SayWhatCameInstead) {
    connect();
    write(7, 1);
    EXPECT_THAT(explained(CompletesWith(IBV_WC_REM_ACCESS_ERR), a->cq),
                testing::AllOf(testing::HasSubstr("wr_id 7"), testing::HasSubstr("success")));
    EXPECT_THAT(explained(CompletesWith(IBV_WC_SUCCESS), a->cq), testing::HasSubstr("nothing"));
    write(8, 1);
    EXPECT_THAT(explained(NothingWithin(1s), a->cq), testing::HasSubstr("wr_id 8"));
}

TEST_F(Matchers, LetTimePass) {
    connect();
    const auto before = simverbs::now();
    EXPECT_THAT(a->cq, NothingWithin(3ms));
    EXPECT_EQ(simverbs::now() - before, 3ms);
}

// GoogleMock matches once more for its message: what came the first time is what it speaks of.
TEST_F(Matchers, TellOfWhatWasTakenTheFirstTime) {
    connect();
    write(7, 1);
    write(8, 1);
    ibv_cq* const cq = a->cq;
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(cq, CompletesWith(IBV_WC_REM_ACCESS_ERR)),
                            "which completes wr_id 7 with 'success'");
    EXPECT_THAT(cq, CompletesWith(IBV_WC_SUCCESS));  // 8 is still there
    write(9, 1);
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(cq, testing::Not(CompletesWith(IBV_WC_SUCCESS))),
                            "which completes wr_id 9 with 'success'");
    write(10, 1);
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(cq, NothingWithin(1s)),
                            "which completes wr_id 10 with 'success'");
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(cq, CompletesWith(IBV_WC_SUCCESS)),
                            "which completes nothing within ");
}

TEST_F(Matchers, TellOfEachOfSeveralQueues) {
    connect();
    write(7, 1);
    simverbs::advance(1ms);
    const std::vector<ibv_cq*> queues = {b->cq, a->cq};
    const auto nothing = NothingWithin(1ms);
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(queues, testing::ElementsAre(nothing, nothing)),
                            "element #1 doesn't match, which completes wr_id 7");
    write(8, 1);
    simverbs::advance(1ms);
    const auto either = testing::AnyOf(CompletesWith(IBV_WC_WR_FLUSH_ERR), NothingWithin(1ns));
    EXPECT_THAT(a->cq, either);
}

TEST_F(Matchers, SayTimesInUnitsOfTheirSize) {
    connect();
    write(7, 1);
    ibv_cq* const cq = a->cq;
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(cq, NothingWithin(1500us)),
                            "completes nothing within 1.5 ms");
    using simverbs::Picoseconds;
    EXPECT_EQ(simverbs::to_string(Picoseconds(1s)), "1 s");
    EXPECT_EQ(simverbs::to_string(Picoseconds(67'108'864'000)), "67.108864 ms");
    EXPECT_EQ(simverbs::to_string(Picoseconds(1'000'000'000'001)), "1.000000000001 s");
    EXPECT_EQ(simverbs::to_string(Picoseconds(10us)), "10 us");
    EXPECT_EQ(simverbs::to_string(Picoseconds(-1'050)), "-1.05 ns");
    EXPECT_EQ(simverbs::to_string(Picoseconds(999)), "999 ps");
    EXPECT_EQ(simverbs::to_string(Picoseconds(0)), "0 ps");
}

using Connected = simverbs::TwoHosts;

TEST_F(Connected, FixtureSaysWhyARequestFailed) {
    const simverbs::Fault lost = simverbs::drop().from("h0").every_time().inject();
    h0.send(64, 5);
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_SUCCESS)),
                            "which completes wr_id 5 with 'transport retry counter exceeded' "
                            "(vendor_err 48)\n"
                            "    536.870ms: request 0 of h0 QP 0x");
    EXPECT_THAT(simverbs::explain("h0", h0.qp->qp_num),
                testing::HasSubstr("Root: the injected fault 1 (drop)"));
    EXPECT_EQ(simverbs::explain("h1", h1.qp->qp_num), "");
    EXPECT_EQ(simverbs::explain("h0", h0.qp->qp_num + 1), "");
    EXPECT_EQ(simverbs::explain(), simverbs::explain("h0"));
}

// Who waits for nothing is told what failed elsewhere.
TEST_F(Connected, FixtureSaysWhatFailedOnTheOtherHost) {
    const simverbs::Fault lost = simverbs::drop().from("h0").every_time().inject();
    h1.receive(64);
    h0.send(64, 5);
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(h1.cq, simverbs::CompletesWith(IBV_WC_SUCCESS)),
                            "of h0 QP 0x10001 completed with RETRY_EXC_ERR");
}

class WithoutRecords : public simverbs::TwoHosts {
  protected:
    WithoutRecords() : TwoHosts({.kept_records = 0}) {}
};

TEST_F(WithoutRecords, TheReasonIsNotKnown) {
    h0.send(64, 5);
    ASSERT_EQ(h1.qp->state, IBV_QPS_RTS);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(h0.qp, &attr, IBV_QP_STATE), 0);
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_SUCCESS)),
                            "(simverbs_explain: no records are kept");
}

class FewRecords : public simverbs::TwoHosts {
  protected:
    FewRecords() : TwoHosts({.kept_records = 10}) {}
};

TEST_F(FewRecords, AreThoseOfTheEnd) {
    const simverbs::Fault lost = simverbs::drop().from("h0").every_time().inject();
    h0.send(64, 5);
    EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_RETRY_EXC_ERR));
    EXPECT_THAT(simverbs::explain("h0"), testing::HasSubstr("were forgotten)"));
}

TEST_F(Connected, FixtureSendsAndReceives) {
    h0.bytes[0] = 42;
    h1.receive(64, 7);
    h0.send(64);
    EXPECT_THAT(h1.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
    EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(h1.bytes[0], 42);
}

TEST_F(Connected, FixtureSaysWhatIsWaitedForWhereNothingCompletes) {
    h1.send(64);  // and nothing is posted for it: RNR retries without end
    testing::StringMatchResultListener listener;
    const testing::Matcher<ibv_cq*> matcher = simverbs::CompletesWith(IBV_WC_SUCCESS);
    EXPECT_FALSE(matcher.Matches(h1.cq));
    matcher.MatchAndExplain(h1.cq, &listener);
    EXPECT_THAT(listener.str(), testing::HasSubstr("which completes nothing within "));
    EXPECT_THAT(listener.str(),
                testing::ContainsRegex("host h1\n.*1 sends outstanding.*waits .*"
                                       "its peer had no receive posted, [0-9]+ times"));
}

// RNR retries would go on for ever: it says so after 100 ms of virtual time.
TEST_F(Connected, NobodyPostsAReceive) {
    h1.send(64);
    EXPECT_FALSE(testing::Matches(simverbs::CompletesWith(IBV_WC_SUCCESS))(h1.cq));
    EXPECT_GE(simverbs::now(), simverbs::kReceivePatience);
    EXPECT_LT(simverbs::now(), 150ms);
}

// Posts a receive at h0 once that time has come, as another fiber or thread would.
struct LatePeer {
    simverbs::TwoHostsEnd* end;
    simverbs::Picoseconds at;
    bool has_posted = false;

    static void wait(void* argument) {
        auto* const self = static_cast<LatePeer*>(argument);
        int ran = 0;
        ASSERT_EQ(simverbs_step_ps(INT64_MAX, &ran), 0);
        if (!self->has_posted && simverbs::now() >= self->at) {
            self->has_posted = true;
            self->end->receive(64);
        }
    }
};

TEST_F(Connected, AReceiveThatComesLateIsWaitedFor) {
    h1.send(64);
    LatePeer peer{&h0, 95ms};
    simverbs_set_wait_hook(&LatePeer::wait, &peer);
    EXPECT_THAT(h1.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
    simverbs_set_wait_hook(nullptr, nullptr);
    EXPECT_GE(simverbs::now(), 95ms);
}

// A request that waits for an answer may still complete, however long RNR retries go on.
class Patient : public simverbs::TwoHosts {
  protected:
    Patient() : TwoHosts({}, {.timeout = 16, .min_rnr_timer = 12}) {}
};

TEST_F(Patient, RetriesOfAnotherRequestAreWaitedFor) {
    const simverbs::Fault lost = simverbs::drop().from("h0").opcode("SEND").every_time().inject();
    h1.send(64);
    h0.send(64);
    EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_RETRY_EXC_ERR));
    EXPECT_GE(simverbs::now(), 2s);
}

// The world ends with an acknowledgment in it, of which its records are told no more.
TEST_F(Connected, FixtureEndsWhileAnAnswerIsUnderWay) {
    h1.receive(64);
    h0.send(64);
    EXPECT_THAT(h1.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
}

TEST_F(Connected, FixtureWritesAndReadsUnderFaults) {
    const simverbs::Fault lost = simverbs::drop().from("h0").psn(1).attempt(1).inject();
    h0.bytes[1] = 7;
    h0.write(h1, 2);
    EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(h1.bytes[1], 7);
    EXPECT_EQ(lost.fired(), 1U);
    h1.bytes[1] = 8;
    h0.read(h1, 2);
    EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(h0.bytes[1], 8);
}

}  // namespace
}  // namespace verbs_test
