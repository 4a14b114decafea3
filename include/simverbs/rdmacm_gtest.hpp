// A fixture for tests of code that connects by rdma_cm, beside those of <simverbs/gtest.hpp>: two
// hosts, connected ids with queue pairs, one thread:
//
//     using Greeting = simverbs::TwoConnectedHosts;
//     TEST_F(Greeting, IsHeard) {
//         server.receive(64);
//         client.send(64);
//         EXPECT_THAT(server.cq(), simverbs::CompletesWith(IBV_WC_SUCCESS));
//     }
//
// Link simverbs::rdmacm to the executable itself, and librdmacm: it is the distribution's, and the
// library must stand before libc to have /dev/infiniband/rdma_cm for it.
#ifndef SIMVERBS_RDMACM_GTEST_HPP
#define SIMVERBS_RDMACM_GTEST_HPP

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include <infiniband/verbs.h>

#include <simverbs/gtest.hpp>

namespace simverbs {

// The address of the host with this number in the topology: 127.77.(n div 256).(n mod 256).
inline sockaddr_in host_address(unsigned host, std::uint16_t port) {
    constexpr std::uint32_t kNetwork = 127U << 24U | 77U << 16U;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(kNetwork | host);
    return address;
}

// Takes the next event of a channel, acknowledges it and returns its id; fails the test where it is
// another one. Virtual time moves until it comes.
inline rdma_cm_id* expect_event(rdma_event_channel* channel, rdma_cm_event_type wanted) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel, &event) != 0) {
        ADD_FAILURE() << "rdma_get_cm_event: " << std::strerror(errno);
        return nullptr;
    }
    EXPECT_STREQ(rdma_event_str(event->event), rdma_event_str(wanted))
        << "with status " << event->status;
    rdma_cm_id* const id = event->event == wanted ? event->id : nullptr;
    rdma_ack_cm_event(event);
    return id;
}

// One end of the connection of TwoConnectedHosts. What cannot be made or posted fails the test.
struct ConnectedEnd {
    static constexpr std::size_t kBytes = 4096;

    rdma_event_channel* channel = nullptr;
    rdma_cm_id* id = nullptr;  // with a queue pair: RC, 64 requests a queue, each send signaled
    ibv_mr* mr = nullptr;      // of `bytes`, with all rights
    alignas(64) std::array<std::uint8_t, kBytes> bytes{};

    // The completion queue of both work queues; 256 entries.
    [[nodiscard]] ibv_cq* cq() const { return cq_; }
    // Posts a receive of the first `length` bytes; `wr_id` comes back in the completion.
    void receive(std::uint32_t length, std::uint64_t wr_id = 0) {
        ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), length, mr->lkey};
        ibv_recv_wr request{};
        request.wr_id = wr_id;
        request.sg_list = &piece;
        request.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_recv(id->qp, &request, &bad), 0) << simverbs_last_error();
    }
    void send(std::uint32_t length, std::uint64_t wr_id = 0) {
        ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), length, mr->lkey};
        ibv_send_wr request{};
        request.opcode = IBV_WR_SEND;
        request.wr_id = wr_id;
        request.sg_list = &piece;
        request.num_sge = 1;
        ibv_send_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_send(id->qp, &request, &bad), 0) << simverbs_last_error();
    }

    // Gives the id a queue pair, and `bytes` a region.
    void make_queue_pair() {
        constexpr int kEntries = 256;
        constexpr std::uint32_t kRequests = 64;
        constexpr int kAllRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
        cq_ = ibv_create_cq(id->verbs, kEntries, nullptr, nullptr, 0);
        ASSERT_NE(cq_, nullptr) << "ibv_create_cq: " << std::strerror(errno);
        mr = ibv_reg_mr(id->pd, bytes.data(), bytes.size(), kAllRights);
        ASSERT_NE(mr, nullptr) << "ibv_reg_mr: " << std::strerror(errno);
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_RC;
        init.send_cq = init.recv_cq = cq_;
        init.sq_sig_all = 1;
        init.cap.max_send_wr = init.cap.max_recv_wr = kRequests;
        init.cap.max_send_sge = init.cap.max_recv_sge = 1;
        ASSERT_EQ(rdma_create_qp(id, nullptr, &init), 0) << std::strerror(errno);
    }
    void destroy() {
        if (id != nullptr && id->qp != nullptr) {
            rdma_destroy_qp(id);
        }
        EXPECT_EQ(mr == nullptr ? 0 : ibv_dereg_mr(mr), 0) << simverbs_last_error();
        EXPECT_EQ(cq_ == nullptr ? 0 : ibv_destroy_cq(cq_), 0) << simverbs_last_error();
        EXPECT_EQ(id == nullptr ? 0 : rdma_destroy_id(id), 0);
        if (channel != nullptr) {
            rdma_destroy_event_channel(channel);
        }
    }

  private:
    ibv_cq* cq_ = nullptr;
};

// Host 0 listens for every address, and host 1 connects to it. A world of its own for each test; a
// class derived from it may give other options:
//
//     class OnEthernet : public simverbs::TwoConnectedHosts {
//       protected:
//         OnEthernet() : TwoConnectedHosts({.topology = "eth-star:2"}) {}
//     };
class TwoConnectedHosts : public testing::Test {
  protected:
    static constexpr std::uint16_t kPort = 7471;

    explicit TwoConnectedHosts(const WorldOptions& options = {}) : world_(options) {}
    // A test that leaves a device open fails, and the next one begins anew all the same.
    ~TwoConnectedHosts() override {
        if (simverbs_restart() != 0) {
            ADD_FAILURE() << simverbs_last_error();
            simverbs_close_devices();
        }
    }

    void SetUp() override {
        listen();
        if (!HasFatalFailure()) {
            begin_connection();
        }
        if (!HasFatalFailure()) {
            accept();
        }
    }
    void TearDown() override {
        // A test need not look at every completion, nor post a receive before it connects.
        simverbs_allow_misuse("completions_unread", 1);
        client.destroy();
        server.destroy();
        EXPECT_EQ(listener_ == nullptr ? 0 : rdma_destroy_id(listener_), 0);
        if (listening_ != nullptr) {
            rdma_destroy_event_channel(listening_);
        }
    }

    ConnectedEnd server;  // on host 0
    ConnectedEnd client;  // on host 1

  private:
    static constexpr int kTimeoutMs = 2000;

    static void make_channel(rdma_event_channel*& channel) {
        channel = rdma_create_event_channel();
        ASSERT_NE(channel, nullptr) << "rdma_create_event_channel: " << std::strerror(errno)
                                    << "; link simverbs::rdmacm to the executable itself";
    }
    void listen() {
        ASSERT_NO_FATAL_FAILURE(make_channel(listening_));
        ASSERT_EQ(rdma_create_id(listening_, &listener_, nullptr, RDMA_PS_TCP), 0);
        sockaddr_in any{};
        any.sin_family = AF_INET;
        any.sin_port = htons(kPort);
        ASSERT_EQ(rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&any)), 0)
            << std::strerror(errno);
        ASSERT_EQ(rdma_listen(listener_, 1), 0) << std::strerror(errno);
    }
    void begin_connection() {
        ASSERT_NO_FATAL_FAILURE(make_channel(client.channel));
        ASSERT_EQ(rdma_create_id(client.channel, &client.id, nullptr, RDMA_PS_TCP), 0);
        sockaddr_in to = host_address(0, kPort);
        ASSERT_EQ(
            rdma_resolve_addr(client.id, nullptr, reinterpret_cast<sockaddr*>(&to), kTimeoutMs), 0)
            << std::strerror(errno);
        ASSERT_NE(expect_event(client.channel, RDMA_CM_EVENT_ADDR_RESOLVED), nullptr);
        ASSERT_EQ(rdma_resolve_route(client.id, kTimeoutMs), 0) << std::strerror(errno);
        ASSERT_NE(expect_event(client.channel, RDMA_CM_EVENT_ROUTE_RESOLVED), nullptr);
        ASSERT_NO_FATAL_FAILURE(client.make_queue_pair());
        rdma_conn_param parameters{};
        parameters.responder_resources = parameters.initiator_depth = 1;
        parameters.retry_count = parameters.rnr_retry_count = 7;
        simverbs_allow_misuse("no_receive_at_rtr", 1);
        ASSERT_EQ(rdma_connect(client.id, &parameters), 0) << std::strerror(errno);
    }
    void accept() {
        ASSERT_NO_FATAL_FAILURE(make_channel(server.channel));
        server.id = expect_event(listening_, RDMA_CM_EVENT_CONNECT_REQUEST);
        ASSERT_NE(server.id, nullptr);
        ASSERT_EQ(rdma_migrate_id(server.id, server.channel), 0) << std::strerror(errno);
        ASSERT_NO_FATAL_FAILURE(server.make_queue_pair());
        rdma_conn_param parameters{};
        parameters.responder_resources = parameters.initiator_depth = 1;
        parameters.rnr_retry_count = 7;
        ASSERT_EQ(rdma_accept(server.id, &parameters), 0) << std::strerror(errno);
        ASSERT_NE(expect_event(client.channel, RDMA_CM_EVENT_ESTABLISHED), nullptr);
        ASSERT_NE(expect_event(server.channel, RDMA_CM_EVENT_ESTABLISHED), nullptr);
        simverbs_allow_misuse("no_receive_at_rtr", 0);
    }

    World world_;
    rdma_event_channel* listening_ = nullptr;
    rdma_cm_id* listener_ = nullptr;
};

}  // namespace simverbs

#endif
