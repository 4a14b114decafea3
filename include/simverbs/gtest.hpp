// Matchers for tests of verbs code with GoogleMock, in virtual time:
//
//     EXPECT_THAT(cq, simverbs::CompletesWith(IBV_WC_RETRY_EXC_ERR));
//     EXPECT_THAT(cq, simverbs::NothingWithin(std::chrono::seconds(1)));
//
// Both are about an ibv_cq* of the embedded world, whose empty poll moves time on. And a fixture,
// two hosts with a reliable connection between them:
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
#include <cstddef>
#include <cstdint>
#include <ostream>

#include <gmock/gmock.h>

#include <infiniband/verbs.h>

#include <simverbs/simverbs.hpp>

namespace simverbs {

// Empty polls after which nothing is expected any more.
inline constexpr int kPatience = 200'000;

class CompletesWithMatcher {
  public:
    using is_gtest_matcher = void;

    explicit CompletesWithMatcher(ibv_wc_status status) : status_(status) {}

    // Takes the next completion.
    bool MatchAndExplain(ibv_cq* cq, testing::MatchResultListener* listener) const {
        ibv_wc wc{};
        for (int i = 0; i < kPatience; ++i) {
            const int found = ibv_poll_cq(cq, 1, &wc);
            if (found < 0) {
                *listener << "which cannot be polled";
                return false;
            }
            if (found == 1) {
                *listener << "which completes wr_id " << wc.wr_id << " with '"
                          << ibv_wc_status_str(wc.status) << "', vendor_err " << wc.vendor_err;
                return wc.status == status_;
            }
        }
        *listener << "which completes nothing";
        return false;
    }
    void DescribeTo(std::ostream* out) const {
        *out << "completes with '" << ibv_wc_status_str(status_) << "'";
    }
    void DescribeNegationTo(std::ostream* out) const {
        *out << "does not complete with '" << ibv_wc_status_str(status_) << "'";
    }

  private:
    ibv_wc_status status_;
};

// The next completion of a queue, whenever it comes, has this status.
inline testing::Matcher<ibv_cq*> CompletesWith(ibv_wc_status status) {
    return CompletesWithMatcher(status);
}

class NothingWithinMatcher {
  public:
    using is_gtest_matcher = void;

    explicit NothingWithinMatcher(Picoseconds duration) : duration_(duration) {}

    bool MatchAndExplain(ibv_cq* cq, testing::MatchResultListener* listener) const {
        if (simverbs_advance_ps(duration_.count()) != 0) {
            *listener << "but time does not pass: " << simverbs_last_error();
            return false;
        }
        ibv_wc wc{};
        if (ibv_poll_cq(cq, 1, &wc) == 0) {
            return true;
        }
        *listener << "which completes wr_id " << wc.wr_id << " with '"
                  << ibv_wc_status_str(wc.status) << "'";
        return false;
    }
    void DescribeTo(std::ostream* out) const {
        *out << "completes nothing within " << duration_.count() << " ps";
    }
    void DescribeNegationTo(std::ostream* out) const {
        *out << "completes something within " << duration_.count() << " ps";
    }

  private:
    Picoseconds duration_;
};

// So much virtual time passes, and the queue is empty then.
inline testing::Matcher<ibv_cq*> NothingWithin(Picoseconds duration) {
    return NothingWithinMatcher(duration);
}

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

    // Of the first `length` bytes; the id comes back in the completion.
    void receive(std::uint32_t length, std::uint64_t id = 0) {
        ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), length, mr->lkey};
        ibv_recv_wr request{};
        request.wr_id = id;
        request.sg_list = &piece;
        request.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_recv(qp, &request, &bad), 0);
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
        ASSERT_EQ(ibv_post_send(qp, &request, &bad), 0);
    }
};

// A world of its own for each test. A class derived from it may give other options: the first two
// devices are connected, on InfiniBand.
class TwoHosts : public testing::Test {
  protected:
    explicit TwoHosts(const WorldOptions& options = {}) : world_(options) {}

    void SetUp() override {
        int count = 0;
        ibv_device** const devices = ibv_get_device_list(&count);
        if (count >= 2) {
            make(h0, devices[0]);
            make(h1, devices[1]);
        }
        ibv_free_device_list(devices);
        ASSERT_GE(count, 2) << simverbs_last_error();
        ASSERT_NO_FATAL_FAILURE(connect(h0, h1));
        ASSERT_NO_FATAL_FAILURE(connect(h1, h0));
    }
    void TearDown() override {
        for (TwoHostsEnd* end : {&h0, &h1}) {
            if (end->context == nullptr) {
                continue;
            }
            EXPECT_EQ(end->qp == nullptr ? 0 : ibv_destroy_qp(end->qp), 0);
            EXPECT_EQ(end->mr == nullptr ? 0 : ibv_dereg_mr(end->mr), 0);
            EXPECT_EQ(end->cq == nullptr ? 0 : ibv_destroy_cq(end->cq), 0);
            EXPECT_EQ(end->pd == nullptr ? 0 : ibv_dealloc_pd(end->pd), 0);
            EXPECT_EQ(ibv_close_device(end->context), 0);
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
        ASSERT_NE(end.context, nullptr);
        end.pd = ibv_alloc_pd(end.context);
        end.cq = ibv_create_cq(end.context, kEntries, nullptr, nullptr, 0);
        end.mr = ibv_reg_mr(end.pd, end.bytes.data(), end.bytes.size(), kAllRights);
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_RC;
        init.send_cq = init.recv_cq = end.cq;
        init.sq_sig_all = 1;
        init.cap.max_send_wr = init.cap.max_recv_wr = kRequests;
        init.cap.max_send_sge = init.cap.max_recv_sge = 1;
        end.qp = ibv_create_qp(end.pd, &init);
        ASSERT_NE(end.qp, nullptr);
        ASSERT_EQ(ibv_query_port(end.context, 1, &end.port), 0);
    }
    static void connect(const TwoHostsEnd& own, const TwoHostsEnd& peer) {
        constexpr std::uint8_t kTimeout = 14;  // 67 ms
        constexpr std::uint8_t kRetries = 7;
        constexpr std::uint8_t kReads = 4;
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = 1;
        attr.qp_access_flags = kAllRights;
        ASSERT_EQ(
            ibv_modify_qp(own.qp, &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
        attr.qp_state = IBV_QPS_RTR;
        attr.path_mtu = IBV_MTU_1024;
        attr.dest_qp_num = peer.qp->qp_num;
        attr.ah_attr.dlid = peer.port.lid;
        attr.ah_attr.port_num = 1;
        attr.max_dest_rd_atomic = kReads;
        attr.min_rnr_timer = 1;
        ASSERT_EQ(
            ibv_modify_qp(own.qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            0);
        attr.qp_state = IBV_QPS_RTS;
        attr.timeout = kTimeout;
        attr.retry_cnt = attr.rnr_retry = kRetries;
        attr.max_rd_atomic = kReads;
        ASSERT_EQ(ibv_modify_qp(own.qp, &attr,
                                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                  0);
    }

    World world_;
};

}  // namespace simverbs

#endif
