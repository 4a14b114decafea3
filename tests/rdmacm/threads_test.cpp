// Both ends in threads that block: in channels of their own, in one channel, and by the calls that
// wait by themselves (rdma_create_ep).
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rdma/rdma_verbs.h>

#include <simverbs/rdmacm_gtest.hpp>

namespace rdmacm_test {
namespace {

using simverbs::expect_event;
using simverbs::host_address;

constexpr std::uint16_t kPort = 7471;
constexpr int kMessages = 8;

ibv_qp_init_attr attributes() {
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    init.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1};
    return init;
}

rdma_conn_param parameters() {
    rdma_conn_param given{};
    given.responder_resources = given.initiator_depth = 1;
    given.retry_count = given.rnr_retry_count = 7;
    return given;
}

// Answers each message, a number, by the next one.
void answer(rdma_cm_id* id) {
    std::array<std::uint8_t, 8> bytes{};
    std::uint8_t* const got = bytes.data();
    std::uint8_t* const sent = bytes.data() + 4;
    ibv_mr* const mr = rdma_reg_msgs(id, bytes.data(), bytes.size());
    ibv_wc wc{};
    ASSERT_EQ(rdma_post_recv(id, nullptr, got, 4, mr), 0);
    ASSERT_EQ(rdma_accept(id, nullptr), 0) << std::strerror(errno);
    for (int i = 0; i < kMessages; ++i) {
        ASSERT_EQ(rdma_get_recv_comp(id, &wc), 1);
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        *sent = static_cast<std::uint8_t>(*got + 1);
        ASSERT_EQ(rdma_post_recv(id, nullptr, got, 4, mr), 0);
        ASSERT_EQ(rdma_post_send(id, nullptr, sent, 4, mr, 0), 0);
        ASSERT_EQ(rdma_get_send_comp(id, &wc), 1);
    }
    EXPECT_EQ(rdma_dereg_mr(mr), 0);
}

rdma_addrinfo* find(const char* node, int flags) {
    rdma_addrinfo hints{};
    hints.ai_flags = flags;
    hints.ai_port_space = RDMA_PS_TCP;
    rdma_addrinfo* found = nullptr;
    EXPECT_EQ(rdma_getaddrinfo(node, "7471", &hints, &found), 0) << std::strerror(errno);
    return found;
}

void serve_endpoint(std::promise<void>& listens) {
    rdma_addrinfo* const at = find("127.77.0.0", RAI_PASSIVE);
    ASSERT_NE(at, nullptr);
    rdma_cm_id* listener = nullptr;
    ibv_qp_init_attr init = attributes();
    ASSERT_EQ(rdma_create_ep(&listener, at, nullptr, &init), 0) << std::strerror(errno);
    ASSERT_EQ(rdma_listen(listener, 0), 0);
    listens.set_value();
    rdma_cm_id* id = nullptr;
    ASSERT_EQ(rdma_get_request(listener, &id), 0) << std::strerror(errno);
    answer(id);
    rdma_disconnect(id);
    rdma_destroy_ep(id);
    rdma_destroy_ep(listener);
    rdma_freeaddrinfo(at);
}

void ask_endpoint() {
    rdma_addrinfo* const to = find("127.77.0.0", 0);
    ASSERT_NE(to, nullptr);
    rdma_cm_id* id = nullptr;
    ibv_qp_init_attr init = attributes();
    ASSERT_EQ(rdma_create_ep(&id, to, nullptr, &init), 0) << std::strerror(errno);
    EXPECT_STREQ(simverbs_device_host(id->verbs->device), "h1");
    std::array<std::uint8_t, 8> bytes{};
    ibv_mr* const mr = rdma_reg_msgs(id, bytes.data(), bytes.size());
    rdma_conn_param given = parameters();
    ASSERT_EQ(rdma_connect(id, &given), 0) << std::strerror(errno);
    ibv_wc wc{};
    for (int i = 0; i < kMessages; ++i) {
        ASSERT_EQ(rdma_post_recv(id, nullptr, bytes.data(), 4, mr), 0);
        ASSERT_EQ(rdma_post_send(id, nullptr, bytes.data(), 4, mr, 0), 0);
        ASSERT_EQ(rdma_get_send_comp(id, &wc), 1);
        ASSERT_EQ(rdma_get_recv_comp(id, &wc), 1);
        EXPECT_EQ(bytes[0], i + 1);
    }
    rdma_disconnect(id);
    EXPECT_EQ(rdma_dereg_mr(mr), 0);
    rdma_destroy_ep(id);
    rdma_freeaddrinfo(to);
}

TEST(Threads, ConnectByEndpoints) {
    const simverbs::World world;
    std::promise<void> listens;
    std::thread server([&] { serve_endpoint(listens); });
    listens.get_future().wait();
    ask_endpoint();
    server.join();
}

// An id per thread, all in one channel: each event comes to one of the threads.
TEST(Threads, TakeEventsOfOneChannel) {
    const simverbs::World world;
    rdma_event_channel* const channel = rdma_create_event_channel();
    ASSERT_NE(channel, nullptr);
    constexpr int kThreads = 3;
    std::array<rdma_cm_id*, kThreads> ids{};
    for (rdma_cm_id*& id : ids) {
        ASSERT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
    }
    std::vector<std::thread> threads;
    threads.reserve(ids.size());
    for (rdma_cm_id* id : ids) {
        threads.emplace_back([id, channel] {
            sockaddr_in to = host_address(0, kPort);
            EXPECT_EQ(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000), 0);
            EXPECT_NE(expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED), nullptr);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (rdma_cm_id* id : ids) {
        EXPECT_EQ(rdma_destroy_id(id), 0);
    }
    rdma_destroy_event_channel(channel);
}

}  // namespace
}  // namespace rdmacm_test
