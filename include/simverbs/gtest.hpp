// For tests of verbs code with GoogleTest: matchers of completion queues and faults, in virtual
// time (<simverbs/matchers.hpp>), and a fixture, two hosts with a reliable connection between them:
//
//     using Loss = simverbs::TwoHosts;
//     TEST_F(Loss, IsRepaired) {
//         const simverbs::Fault lost = simverbs::drop().from("h0").psn(1).attempt(1).inject();
//         h1.receive(64);
//         h0.send(64);
//         EXPECT_THAT(h1.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
//     }
#ifndef SIMVERBS_GTEST_HPP
#define SIMVERBS_GTEST_HPP

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

#include <infiniband/verbs.h>

#include <simverbs/connect.hpp>
#include <simverbs/matchers.hpp>
#include <simverbs/simverbs.hpp>

namespace simverbs {

// One end of the connection of TwoHosts. What cannot be made or posted fails the test.
struct TwoHostsEnd {
    static constexpr std::size_t kBytes = 4096;

    ibv_context* context = nullptr;
    ibv_pd* pd = nullptr;
    ibv_cq* cq = nullptr;  // of both queues; 256 entries
    ibv_mr* mr = nullptr;  // of `bytes`, with all rights
    ibv_qp* qp = nullptr;  // RC, in RTS; 64 requests a queue, each send signaled
    ibv_port_attr port{};
    alignas(64) std::array<std::uint8_t, kBytes> bytes{};

    // Posts a receive of the first `length` bytes; the id comes back in the completion.
    void receive(std::uint32_t length, std::uint64_t id = 0) {
        ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), length, mr->lkey};
        ibv_recv_wr request{};
        request.wr_id = id;
        request.sg_list = &piece;
        request.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_recv(qp, &request, &bad), 0) << simverbs_last_error();
    }
    void send(std::uint32_t length, std::uint64_t id = 0) {
        ibv_send_wr request{};
        request.opcode = IBV_WR_SEND;
        post(request, length, id);
    }
    // To, and from, the first bytes of the other end.
    void write(const TwoHostsEnd& peer, std::uint32_t length, std::uint64_t id = 0) {
        remote(IBV_WR_RDMA_WRITE, peer, length, id);
    }
    void read(const TwoHostsEnd& peer, std::uint32_t length, std::uint64_t id = 0) {
        remote(IBV_WR_RDMA_READ, peer, length, id);
    }

  private:
    void remote(ibv_wr_opcode opcode, const TwoHostsEnd& peer, std::uint32_t length,
                std::uint64_t id) {
        ibv_send_wr request{};
        request.opcode = opcode;
        request.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(peer.bytes.data());
        request.wr.rdma.rkey = peer.mr->rkey;
        post(request, length, id);
    }
    void post(ibv_send_wr& request, std::uint32_t length, std::uint64_t id) {
        ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), length, mr->lkey};
        request.wr_id = id;
        request.sg_list = &piece;
        request.num_sge = 1;
        ibv_send_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_send(qp, &request, &bad), 0) << simverbs_last_error();
    }
};

// A world of its own for each test. A class derived from it may give other options, of the world
// (a fabric of Ethernet, say) and of the connection of the first two devices:
//
//     class Impatient : public simverbs::TwoHosts {
//       protected:
//         Impatient() : TwoHosts({.topology = "eth-star:2"}, {.timeout = 8, .retries = 0}) {}
//     };
class TwoHosts : public testing::Test {
  protected:
    explicit TwoHosts(const WorldOptions& options = {}, const ConnectionOptions& connection = {})
        : world_(options), connection_(connection) {}
    // A test that leaves a device open fails, and the next one begins anew all the same.
    ~TwoHosts() override {
        if (simverbs_restart() != 0) {
            ADD_FAILURE() << simverbs_last_error();
            simverbs_close_devices();
        }
    }

    void SetUp() override {
        int count = 0;
        ibv_device** const devices = ibv_get_device_list(&count);
        if (count >= 2) {
            make(h0, devices[0]);
        }
        if (h0.qp != nullptr) {
            make(h1, devices[1]);
        }
        if (devices != nullptr) {
            ibv_free_device_list(devices);
        }
        ASSERT_GE(count, 2) << simverbs_last_error();
        if (h1.qp != nullptr) {
            // Receives are the test's to post, later than SIMVERBS_WARN=1 wants them.
            simverbs_allow_misuse("no_receive_at_rtr", 1);
            connect(*h0.qp, *h1.qp, connection_);
            simverbs_allow_misuse("no_receive_at_rtr", 0);
        }
    }
    void TearDown() override {
        // A test need not look at every completion.
        simverbs_allow_misuse("completions_unread", 1);
        for (TwoHostsEnd* end : {&h0, &h1}) {
            if (end->context == nullptr) {
                continue;
            }
            const auto why = simverbs_last_error;
            EXPECT_EQ(end->qp == nullptr ? 0 : ibv_destroy_qp(end->qp), 0) << why();
            EXPECT_EQ(end->mr == nullptr ? 0 : ibv_dereg_mr(end->mr), 0) << why();
            EXPECT_EQ(end->cq == nullptr ? 0 : ibv_destroy_cq(end->cq), 0) << why();
            EXPECT_EQ(end->pd == nullptr ? 0 : ibv_dealloc_pd(end->pd), 0) << why();
            EXPECT_STREQ(simverbs_objects_left(end->context), "") << "not destroyed by the test";
            EXPECT_EQ(ibv_close_device(end->context), 0) << why();
        }
    }

    TwoHostsEnd h0;
    TwoHostsEnd h1;

  private:
    static constexpr int kAllRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

    static void make(TwoHostsEnd& end, ibv_device* device) {
        constexpr int kEntries = 256;
        constexpr std::uint32_t kRequests = 64;
        end.context = ibv_open_device(device);
        ASSERT_NE(end.context, nullptr) << "ibv_open_device: " << std::strerror(errno);
        end.pd = ibv_alloc_pd(end.context);
        ASSERT_NE(end.pd, nullptr) << "ibv_alloc_pd: " << std::strerror(errno);
        end.cq = ibv_create_cq(end.context, kEntries, nullptr, nullptr, 0);
        ASSERT_NE(end.cq, nullptr) << "ibv_create_cq: " << std::strerror(errno);
        end.mr = ibv_reg_mr(end.pd, end.bytes.data(), end.bytes.size(), kAllRights);
        ASSERT_NE(end.mr, nullptr) << "ibv_reg_mr: " << std::strerror(errno);
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_RC;
        init.send_cq = init.recv_cq = end.cq;
        init.sq_sig_all = 1;
        init.cap.max_send_wr = init.cap.max_recv_wr = kRequests;
        init.cap.max_send_sge = init.cap.max_recv_sge = 1;
        end.qp = ibv_create_qp(end.pd, &init);
        ASSERT_NE(end.qp, nullptr) << "ibv_create_qp: " << std::strerror(errno);
        ASSERT_EQ(ibv_query_port(end.context, 1, &end.port), 0);
    }
    World world_;
    ConnectionOptions connection_;
};

}  // namespace simverbs

#endif
