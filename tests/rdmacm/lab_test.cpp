// Hosts as fibers of one thread that connect by rdma_cm.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include <simverbs/lab.hpp>
#include <simverbs/rdmacm_gtest.hpp>

namespace rdmacm_test {
namespace {

using namespace std::chrono_literals;
using simverbs::ConnectedEnd;
using simverbs::expect_event;
using simverbs::host_address;

constexpr std::uint16_t kPort = 7471;
constexpr std::uint8_t kGreeting = 0x42;

void await_completion(ibv_cq* cq) {
    ibv_wc wc{};
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
    }
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

rdma_conn_param parameters() {
    rdma_conn_param given{};
    given.responder_resources = given.initiator_depth = 1;
    given.retry_count = given.rnr_retry_count = 7;
    return given;
}

// Listens for every address of its host, and takes one message.
void serve(boost::fibers::barrier& listening) {
    rdma_event_channel* const channel = rdma_create_event_channel();
    ASSERT_NE(channel, nullptr) << std::strerror(errno);
    rdma_cm_id* listener = nullptr;
    ASSERT_EQ(rdma_create_id(channel, &listener, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(kPort);
    ASSERT_EQ(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&any)), 0);
    ASSERT_EQ(rdma_listen(listener, 1), 0);
    listening.wait();
    ConnectedEnd end;
    end.id = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(end.id, nullptr);
    end.make_queue_pair();
    end.receive(8);
    rdma_conn_param given = parameters();
    ASSERT_EQ(rdma_accept(end.id, &given), 0);
    expect_event(channel, RDMA_CM_EVENT_ESTABLISHED);
    await_completion(end.cq());
    EXPECT_EQ(end.bytes[7], kGreeting);
    expect_event(channel, RDMA_CM_EVENT_DISCONNECTED);
    end.destroy();
    EXPECT_EQ(rdma_destroy_id(listener), 0);
    rdma_destroy_event_channel(channel);
}

// Connects to a host, sends it a message and goes. `own` is the host that it runs on.
void greet(unsigned host, const std::string& own) {
    ConnectedEnd end;
    end.channel = rdma_create_event_channel();
    ASSERT_NE(end.channel, nullptr) << std::strerror(errno);
    ASSERT_EQ(rdma_create_id(end.channel, &end.id, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in to = host_address(host, kPort);
    ASSERT_EQ(rdma_resolve_addr(end.id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000), 0);
    expect_event(end.channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(simverbs_device_host(end.id->verbs->device), own);
    ASSERT_EQ(rdma_resolve_route(end.id, 1000), 0);
    expect_event(end.channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    end.make_queue_pair();
    rdma_conn_param given = parameters();
    ASSERT_EQ(rdma_connect(end.id, &given), 0);
    expect_event(end.channel, RDMA_CM_EVENT_ESTABLISHED);
    end.bytes.fill(kGreeting);
    end.send(8);
    await_completion(end.cq());
    ASSERT_EQ(rdma_disconnect(end.id), 0);
    expect_event(end.channel, RDMA_CM_EVENT_DISCONNECTED);
    end.destroy();
}

// Two servers at one port, each on its host, and two clients on others; the digest of the run.
std::uint64_t greet_both() {
    simverbs::Lab lab({.topology = "star:4", .seed = 3});
    boost::fibers::barrier listening(4);
    std::uint64_t digest = 0;
    for (const char* host : {"h0", "h1"}) {
        lab.host(host, [&](ibv_context*) { serve(listening); });
    }
    lab.host("h2", [&](ibv_context*) {
        listening.wait();
        greet(0, "h2");
    });
    lab.host("h3", [&](ibv_context*) {
        listening.wait();
        greet(1, "h3");
        digest = simverbs::run_digest();
    });
    lab.run();
    return digest;
}

TEST(Lab, HostsConnectEachFromItsOwn) {
    greet_both();  // librdmacm opens each device once
    EXPECT_EQ(greet_both(), greet_both());
}

TEST(Lab, WhoWaitsForNoConnectionIsNamed) {
    simverbs::Lab lab;
    boost::fibers::barrier listening(1);
    lab.host("h1", [&](ibv_context*) { serve(listening); });
    try {
        lab.run();
        FAIL() << "it ended";
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(),
                     "simverbs::Lab: nothing is left to happen, and h1 waited\n"
                     "no queue pair has left RESET\n");
    }
}

}  // namespace
}  // namespace rdmacm_test
