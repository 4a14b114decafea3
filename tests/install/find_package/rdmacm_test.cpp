// A test of code that connects by rdma_cm, as a user of simverbs writes one.
#include <simverbs/rdmacm_gtest.hpp>

namespace {

using Greeting = simverbs::TwoConnectedHosts;

TEST_F(Greeting, IsHeard) {
    server.receive(64);
    client.send(64);
    EXPECT_THAT(server.cq(), simverbs::CompletesWith(IBV_WC_SUCCESS));
}

}  // namespace
