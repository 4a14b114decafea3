// Which host an id is on, and what comes of addresses and ports that nobody has.
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <simverbs/rdmacm_gtest.hpp>

namespace rdmacm_test {
namespace {

using simverbs::expect_event;
using simverbs::host_address;

constexpr std::uint16_t kPort = 7471;

sockaddr* generic(sockaddr_in& address) {
    return reinterpret_cast<sockaddr*>(&address);
}

class Addresses : public testing::Test {
  protected:
    Addresses() : world({.topology = "star:3"}) {}
    void SetUp() override {
        channel = rdma_create_event_channel();
        ASSERT_NE(channel, nullptr);
        id = make();
        other = make();
    }
    void TearDown() override {
        EXPECT_EQ(rdma_destroy_id(id), 0);
        EXPECT_EQ(rdma_destroy_id(other), 0);
        rdma_destroy_event_channel(channel);
    }
    rdma_cm_id* make() {
        rdma_cm_id* made = nullptr;
        EXPECT_EQ(rdma_create_id(channel, &made, nullptr, RDMA_PS_TCP), 0);
        return made;
    }
    static std::string host_of(const rdma_cm_id* id) {
        return id->verbs == nullptr ? "none" : simverbs_device_host(id->verbs->device);
    }
    void resolve_to(unsigned host) {
        sockaddr_in to = host_address(host, kPort);
        ASSERT_EQ(rdma_resolve_addr(id, nullptr, generic(to), 1000), 0) << std::strerror(errno);
        ASSERT_EQ(expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED), id);
    }

    simverbs::World world;
    rdma_event_channel* channel = nullptr;
    rdma_cm_id* id = nullptr;
    rdma_cm_id* other = nullptr;
};

TEST_F(Addresses, ASourceIsTheFirstOtherHost) {
    resolve_to(0);
    EXPECT_EQ(host_of(id), "h1");
}

TEST_F(Addresses, ASourceIsTheFirstHost) {
    resolve_to(2);
    EXPECT_EQ(host_of(id), "h0");
}

TEST_F(Addresses, AGivenSourceIsTaken) {
    sockaddr_in from = host_address(2, 0);
    sockaddr_in to = host_address(0, kPort);
    ASSERT_EQ(rdma_resolve_addr(id, generic(from), generic(to), 1000), 0);
    expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(host_of(id), "h2");
}

TEST_F(Addresses, ABoundIdIsOnTheHostOfItsAddress) {
    sockaddr_in at = host_address(2, kPort);
    ASSERT_EQ(rdma_bind_addr(id, generic(at)), 0);
    EXPECT_EQ(host_of(id), "h2");
}

TEST_F(Addresses, OnePortMayBeOnTwoHosts) {
    sockaddr_in at = host_address(1, kPort);
    ASSERT_EQ(rdma_bind_addr(id, generic(at)), 0);
    EXPECT_EQ(rdma_bind_addr(other, generic(at)), -1);
    EXPECT_EQ(errno, EADDRINUSE);
    at = host_address(2, kPort);
    EXPECT_EQ(rdma_bind_addr(other, generic(at)), 0);
}

TEST_F(Addresses, AnAddressThatNobodyHasIsNoSource) {
    sockaddr_in at = host_address(9, kPort);
    EXPECT_EQ(rdma_bind_addr(id, generic(at)), -1);
    EXPECT_EQ(errno, EADDRNOTAVAIL);
}

TEST_F(Addresses, AnAddressThatNobodyAnswersForEndsInAnError) {
    sockaddr_in to = host_address(9, kPort);
    ASSERT_EQ(rdma_resolve_addr(id, nullptr, generic(to), 1000), 0);
    rdma_cm_event* event = nullptr;
    ASSERT_EQ(rdma_get_cm_event(channel, &event), 0);
    EXPECT_EQ(event->event, RDMA_CM_EVENT_ADDR_ERROR);
    EXPECT_EQ(event->status, -ETIMEDOUT);
    rdma_ack_cm_event(event);
    EXPECT_EQ(simverbs::now(), std::chrono::seconds(1));
}

TEST_F(Addresses, APortThatNobodyListensAtRejects) {
    resolve_to(0);
    ASSERT_EQ(rdma_resolve_route(id, 1000), 0);
    expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    rdma_conn_param parameters{};
    parameters.qp_num = 0x17;
    ASSERT_EQ(rdma_connect(id, &parameters), 0);
    rdma_cm_event* event = nullptr;
    ASSERT_EQ(rdma_get_cm_event(channel, &event), 0);
    EXPECT_EQ(event->event, RDMA_CM_EVENT_REJECTED);
    constexpr int kInvalidServiceId = 8;
    EXPECT_EQ(event->status, kInvalidServiceId);
    rdma_ack_cm_event(event);
}

// A listener for every address listens on all hosts.
TEST_F(Addresses, AListenerForEveryAddressHearsEachHost) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(kPort);
    ASSERT_EQ(rdma_bind_addr(other, generic(any)), 0);
    ASSERT_EQ(rdma_listen(other, 4), 0);
    for (const unsigned host : {0U, 1U, 2U}) {
        resolve_to(host);
        ASSERT_EQ(rdma_resolve_route(id, 1000), 0);
        expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
        rdma_conn_param parameters{};
        parameters.qp_num = 0x17;
        ASSERT_EQ(rdma_connect(id, &parameters), 0);
        rdma_cm_id* const request = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
        ASSERT_NE(request, nullptr);
        EXPECT_EQ(host_of(request), "h" + std::to_string(host));
        ASSERT_EQ(rdma_reject(request, nullptr, 0), 0);
        EXPECT_EQ(expect_event(channel, RDMA_CM_EVENT_REJECTED), id);
        EXPECT_EQ(rdma_destroy_id(request), 0);
        EXPECT_EQ(rdma_destroy_id(id), 0);
        id = make();
    }
}

}  // namespace
}  // namespace rdmacm_test
