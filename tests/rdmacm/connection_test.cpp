// The distribution's librdmacm and the world in one process, both ends in one thread.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
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
