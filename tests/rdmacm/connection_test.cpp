// The distribution's librdmacm and the world in one process, both ends in one thread.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <simverbs/rdmacm_gtest.hpp>

namespace rdmacm_test {
namespace {

using namespace std::chrono_literals;
using simverbs::CompletesWith;
using simverbs::expect_event;
using simverbs::host_address;

using Connection = simverbs::TwoConnectedHosts;

TEST_F(Connection, CarriesAMessage) {
    server.receive(64);
    client.bytes.fill(0x5A);
    client.send(64);
    EXPECT_THAT(server.cq(), CompletesWith(IBV_WC_SUCCESS));
    EXPECT_THAT(client.cq(), CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(server.bytes[63], 0x5A);
}

TEST_F(Connection, IsBetweenTwoHosts) {
    EXPECT_STREQ(simverbs_device_host(server.id->verbs->device), "h0");
    EXPECT_STREQ(simverbs_device_host(client.id->verbs->device), "h1");
}

TEST_F(Connection, EndsAtBothEnds) {
    ASSERT_EQ(rdma_disconnect(client.id), 0);
    EXPECT_EQ(expect_event(server.channel, RDMA_CM_EVENT_DISCONNECTED), server.id);
    ASSERT_EQ(rdma_disconnect(server.id), 0);
    EXPECT_EQ(expect_event(client.channel, RDMA_CM_EVENT_DISCONNECTED), client.id);
}

// A fixture used as an object, so that a test can look at what it says of itself.
class Inner : public simverbs::TwoConnectedHosts {
  public:
    using TwoConnectedHosts::client;
    void SetUp() override { TwoConnectedHosts::SetUp(); }
    void TearDown() override { TwoConnectedHosts::TearDown(); }

  private:
    void TestBody() override {}
};

TEST(Fixture, FailsWhereARegionIsLeft) {
    EXPECT_NONFATAL_FAILURE(
        {
            Inner inner;
            inner.SetUp();
            // Static, since its memory stays allocated.
            static ibv_pd* s_domain = nullptr;
            static ibv_mr* s_region = nullptr;
            s_domain = ibv_alloc_pd(inner.client.id->verbs);
            s_region = ibv_reg_mr(s_domain, inner.client.bytes.data(), 64, 0);
            EXPECT_NE(s_region, nullptr);
            inner.TearDown();
        },
        "simverbs1 with 0 queue pairs and 0 completion queues, 1 protection domain, 1 memory "
        "region");
    Inner next;
    next.SetUp();
    next.TearDown();
}

class OnEthernet : public simverbs::TwoConnectedHosts {
  protected:
    OnEthernet() : TwoConnectedHosts({.topology = "eth-star:2"}) {}
};

TEST_F(OnEthernet, AMessageArrives) {
    server.receive(64);
    client.send(64);
    EXPECT_THAT(server.cq(), CompletesWith(IBV_WC_SUCCESS));
    EXPECT_THAT(client.cq(), CompletesWith(IBV_WC_SUCCESS));
}

}  // namespace
}  // namespace rdmacm_test
