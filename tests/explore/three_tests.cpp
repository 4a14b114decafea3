// Three tests for `simverbs explore --gtest`: one that keeps its word under every fault, one with
// a mistake that a fault shows, and one that calls no verb. A fourth is disabled.
#include <gtest/gtest.h>

#include <simverbs/gtest.hpp>

namespace {

using simverbs::CompletesWith;

using Messages = simverbs::TwoHosts;

TEST_F(Messages, AreReceived) {
    h1.receive(64);
    h0.send(64);
    EXPECT_THAT(h1.cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_THAT(h0.cq, CompletesWith(IBV_WC_SUCCESS));
}

// The mistake: a connection that never sends again.
class Impatient : public simverbs::TwoHosts {
  protected:
    Impatient() : TwoHosts({}, {.retries = 0}) {}
};

TEST_F(Impatient, IsAcknowledged) {
    h1.receive(64);
    h0.send(64);
    EXPECT_THAT(h0.cq, CompletesWith(IBV_WC_SUCCESS));
}

TEST(Numbers, Add) {
    EXPECT_EQ(1 + 1, 2);
}

TEST(Numbers, DISABLED_Divide) {
    FAIL();
}

}  // namespace
