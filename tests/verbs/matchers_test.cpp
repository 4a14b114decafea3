// <simverbs/gtest.hpp>: what its matchers take, and what they say of what they do not.
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

using Connected = simverbs::TwoHosts;

TEST_F(Connected, FixtureSendsAndReceives) {
    h0.bytes[0] = 42;
    h1.receive(64, 7);
    h0.send(64);
    EXPECT_THAT(h1.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
    EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(h1.bytes[0], 42);
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
