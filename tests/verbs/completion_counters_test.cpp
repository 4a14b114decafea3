// Completion counters: what they count of each operation, of what completes and of what fails, and
// what they refuse (ibv_create_comp_cntr(3), ibv_qp_attach_comp_cntr(3) of rdma-core 65).
#include <cerrno>

#include "newer_verbs.h"
#include "two_hosts.hpp"

namespace verbs_test {
namespace {

constexpr std::uint32_t kEverything = 0x3F;

// A counter, and what it says. Reading lets time pass as polling does.
class Counter {
  public:
    explicit Counter(const End& end) {
        newer_comp_cntr_init_attr attr{};
        handle_ = newer_create_comp_cntr(end.context, &attr);
        EXPECT_NE(handle_, nullptr);
    }
    ~Counter() { EXPECT_EQ(newer_destroy_comp_cntr(handle_), 0); }
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;

    [[nodiscard]] newer_comp_cntr* handle() const { return handle_; }
    int attach(const End& end, std::uint32_t operations, std::uint32_t comp_mask = 0) {
        newer_qp_attach_comp_cntr_attr attr{comp_mask, operations};
        return newer_qp_attach_comp_cntr(end.qp, handle_, &attr);
    }
    std::uint64_t completed() {
        std::uint64_t value = 99;
        EXPECT_EQ(newer_read_comp_cntr(handle_, &value), 0);
        return value;
    }
    std::uint64_t failed() {
        std::uint64_t value = 99;
        EXPECT_EQ(newer_read_err_comp_cntr(handle_, &value), 0);
        return value;
    }
    // Reads it until it says so, as a program does that waits by it alone.
    bool reaches(std::uint64_t value) {
        constexpr int kReads = 100'000;
        for (int i = 0; i < kReads; ++i) {
            if (completed() == value) {
                return true;
            }
        }
        return false;
    }

  private:
    newer_comp_cntr* handle_ = nullptr;
};

class CompletionCounters : public TwoHosts {
  protected:
    void reset() {
        ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
        ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    }
    // Queue pairs end before the counters that count them.
    static void end_queue_pair(End& end) {
        EXPECT_EQ(ibv_destroy_qp(end.qp), 0);
        end.qp = nullptr;
    }
    Request write() {
        return Request(IBV_WR_RDMA_WRITE).from(a->range(0, 8)).to(b->address(64), b->mr->rkey);
    }
};

TEST_F(CompletionCounters, AreReportedByTheDevice) {
    connect();
    newer_comp_cntr_caps caps{};
    ASSERT_EQ(newer_query_comp_cntr_caps(a->context, &caps, sizeof caps), 0);
    EXPECT_EQ(caps.max_value, ~std::uint64_t{0});
    EXPECT_EQ(caps.max_counters, 1024U);
    EXPECT_EQ(caps.supported_qp_attach_ops, kEverything);
    std::uint64_t larger[3] = {1, 1, 1};
    auto* future = reinterpret_cast<newer_comp_cntr_caps*>(larger);
    ASSERT_EQ(newer_query_comp_cntr_caps(a->context, future, sizeof larger), 0);
    EXPECT_EQ(future->max_counters, 1024U);
    EXPECT_EQ(larger[2], 0U) << "what a later release has is not reported";
    EXPECT_EQ(newer_query_comp_cntr_caps(a->context, &caps, 8), EINVAL);
}

TEST_F(CompletionCounters, CountEachOperationOnItsSide) {
    connect();
    reset();
    constexpr std::uint32_t kOf[] = {
        NEWER_COMP_CNTR_OP_SEND,       NEWER_COMP_CNTR_OP_RECV,
        NEWER_COMP_CNTR_OP_RDMA_READ,  NEWER_COMP_CNTR_OP_REMOTE_RDMA_READ,
        NEWER_COMP_CNTR_OP_RDMA_WRITE, NEWER_COMP_CNTR_OP_REMOTE_RDMA_WRITE};
    std::vector<std::unique_ptr<Counter>> of_a;
    std::vector<std::unique_ptr<Counter>> of_b;
    for (const std::uint32_t operation : kOf) {
        of_a.push_back(std::make_unique<Counter>(*a));
        ASSERT_EQ(of_a.back()->attach(*a, operation), 0);
        of_b.push_back(std::make_unique<Counter>(*b));
        ASSERT_EQ(of_b.back()->attach(*b, operation), 0);
    }
    bring_up({});
    ASSERT_EQ(b->receive(1, {b->range(128, 64)}), 0);
    ASSERT_EQ(b->receive(2, {b->range(128, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).from(a->range(0, 8)).post(*a), 0);
    ASSERT_EQ(write().post(*a), 0);
    ASSERT_EQ(write().post(*a), 0);
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE_WITH_IMM)
                  .from(a->range(0, 8))
                  .to(b->address(64), b->mr->rkey)
                  .post(*a),
              0);
    for (int i = 0; i < 4; ++i) {
        ASSERT_EQ(
            Request(IBV_WR_RDMA_READ).into(a->range(0, 8)).to(b->address(64), b->mr->rkey).post(*a),
            0);
    }
    // No counter is of atomics.
    ASSERT_EQ(Request(IBV_WR_ATOMIC_FETCH_AND_ADD)
                  .into(a->range(0, 8))
                  .fetch_and_add(b->address(64), b->mr->rkey, 1)
                  .post(*a),
              0);
    for (int i = 0; i < 9; ++i) {
        EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    }
    const auto values = [](const std::vector<std::unique_ptr<Counter>>& counters) {
        std::vector<std::uint64_t> read;
        for (const auto& counter : counters) {
            read.push_back(counter->completed());
            EXPECT_EQ(counter->failed(), 0U);
        }
        return read;
    };
    using Values = std::vector<std::uint64_t>;
    EXPECT_EQ(values(of_a), (Values{1, 0, 4, 0, 3, 0}));
    EXPECT_EQ(values(of_b), (Values{0, 2, 0, 4, 0, 3})) << "an immediate takes a receive, too";
    end_queue_pair(*a);
    end_queue_pair(*b);
}

// The view of a program that waits by a counter and never polls.
TEST_F(CompletionCounters, CountWhatLeavesNoEntryAndLetTimePass) {
    connect();
    reset();
    Counter counter(*a);
    ASSERT_EQ(counter.attach(*a, NEWER_COMP_CNTR_OP_RDMA_WRITE), 0);
    bring_up({});
    EXPECT_EQ(counter.completed(), 0U);
    for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(write().unsignaled().post(*a), 0);
    }
    EXPECT_TRUE(counter.reaches(5));
    EXPECT_EQ(counter.failed(), 0U);
    EXPECT_TRUE(a->drain().empty());
    end_queue_pair(*a);
}

TEST_F(CompletionCounters, ARequestThatFailsAndWhatIsFlushedAreErrors) {
    connect();
    reset();
    Counter sends(*a);
    Counter receives(*a);
    Counter remote(*b);
    ASSERT_EQ(sends.attach(*a, NEWER_COMP_CNTR_OP_SEND | NEWER_COMP_CNTR_OP_RDMA_WRITE), 0);
    ASSERT_EQ(receives.attach(*a, NEWER_COMP_CNTR_OP_RECV), 0);
    ASSERT_EQ(remote.attach(*b, NEWER_COMP_CNTR_OP_REMOTE_RDMA_WRITE), 0);
    bring_up({});
    ASSERT_EQ(a->receive(1, {a->range(256, 64)}), 0);
    ASSERT_EQ(write().unsignaled().post(*a), 0);
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .from(a->range(0, 8))
                  .to(b->address(64), b->mr->rkey + 1)
                  .unsignaled()
                  .post(*a),
              0);
    ASSERT_EQ(write().unsignaled().post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_REM_ACCESS_ERR);
    pass(1);
    EXPECT_EQ(sends.completed(), 1U);
    EXPECT_EQ(sends.failed(), 2U) << "the write that was refused and the one behind it";
    EXPECT_EQ(receives.completed(), 0U);
    EXPECT_EQ(receives.failed(), 1U);
    EXPECT_EQ(remote.completed(), 1U);
    EXPECT_EQ(remote.failed(), 0U) << "the peer's error";
    end_queue_pair(*a);
    end_queue_pair(*b);
}

TEST_F(CompletionCounters, OneAddsUpSeveralQueuePairs) {
    connect();
    reset();
    Counter counter(*a);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = a->cq;
    init.cap = Connection{}.cap;
    init.qp_type = IBV_QPT_UC;
    ibv_qp* second = ibv_create_qp(a->pd, &init);
    ASSERT_NE(second, nullptr);
    ASSERT_EQ(counter.attach(*a, NEWER_COMP_CNTR_OP_RDMA_WRITE), 0);
    newer_qp_attach_comp_cntr_attr attr{0, NEWER_COMP_CNTR_OP_SEND | NEWER_COMP_CNTR_OP_RECV};
    ASSERT_EQ(newer_qp_attach_comp_cntr(second, counter.handle(), &attr), 0);
    bring_up({});
    ASSERT_EQ(write().post(*a), 0);
    EXPECT_TRUE(counter.reaches(1));
    ibv_qp_attr to_init = init_attr({});
    to_init.qp_state = IBV_QPS_INIT;
    ASSERT_EQ(ibv_modify_qp(second, &to_init, kInitMask), 0);
    ibv_sge range = a->range(0, 8);
    ibv_recv_wr wr{};
    wr.sg_list = &range;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(second, &wr, &bad), 0);
    ibv_qp_attr to_err{};
    to_err.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(second, &to_err, IBV_QP_STATE), 0);
    EXPECT_EQ(counter.completed(), 1U);
    EXPECT_EQ(counter.failed(), 1U) << "the receive of the other queue pair";
    EXPECT_EQ(ibv_destroy_qp(second), 0);
    end_queue_pair(*a);
}

TEST_F(CompletionCounters, StayAttachedThroughReset) {
    connect();
    reset();
    Counter counter(*a);
    ASSERT_EQ(counter.attach(*a, NEWER_COMP_CNTR_OP_RDMA_WRITE), 0);
    bring_up({});
    reset();
    bring_up({});
    ASSERT_EQ(write().post(*a), 0);
    EXPECT_TRUE(counter.reaches(1));
    end_queue_pair(*a);
}

TEST_F(CompletionCounters, AreHeldByTheirQueuePairs) {
    connect();
    reset();
    newer_comp_cntr_init_attr attr{};
    newer_comp_cntr* counter = newer_create_comp_cntr(a->context, &attr);
    ASSERT_NE(counter, nullptr);
    EXPECT_EQ(counter->context, a->context);
    newer_qp_attach_comp_cntr_attr what{0, kEverything};
    ASSERT_EQ(newer_qp_attach_comp_cntr(a->qp, counter, &what), 0);
    EXPECT_EQ(newer_destroy_comp_cntr(counter), EBUSY);
    expect_reason("is used by 1 object: QP ");
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = nullptr;
    EXPECT_EQ(newer_destroy_comp_cntr(counter), 0);
}

TEST_F(CompletionCounters, AreSetAndIncremented) {
    connect();
    Counter counter(*a);
    ASSERT_EQ(newer_set_comp_cntr(counter.handle(), 40), 0);
    ASSERT_EQ(newer_inc_comp_cntr(counter.handle(), 2), 0);
    ASSERT_EQ(newer_inc_err_comp_cntr(counter.handle(), 7), 0);
    EXPECT_EQ(counter.completed(), 42U);
    EXPECT_EQ(counter.failed(), 7U);
    ASSERT_EQ(newer_set_err_comp_cntr(counter.handle(), 1), 0);
    EXPECT_EQ(counter.failed(), 1U);
    ASSERT_EQ(newer_set_comp_cntr(counter.handle(), ~std::uint64_t{0}), 0);
    ASSERT_EQ(newer_inc_comp_cntr(counter.handle(), 1), 0);
    EXPECT_EQ(counter.completed(), 0U) << "beyond max_value";
}

TEST_F(CompletionCounters, AreAttachedInResetAndInitAlone) {
    connect();
    Counter counter(*a);
    EXPECT_EQ(counter.attach(*a, NEWER_COMP_CNTR_OP_SEND), EINVAL) << "in RTS";
    ASSERT_EQ(a->to_state(IBV_QPS_ERR), 0);
    EXPECT_EQ(counter.attach(*a, NEWER_COMP_CNTR_OP_SEND), EINVAL) << "in ERR";
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    EXPECT_EQ(counter.attach(*a, NEWER_COMP_CNTR_OP_SEND), 0);
    ibv_qp_attr attr = init_attr({});
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kInitMask), 0);
    EXPECT_EQ(counter.attach(*a, NEWER_COMP_CNTR_OP_RECV), 0) << "in INIT";
    end_queue_pair(*a);
}

TEST_F(CompletionCounters, OneAnOperation) {
    connect();
    reset();
    Counter first(*a);
    Counter second(*a);
    ASSERT_EQ(first.attach(*a, NEWER_COMP_CNTR_OP_SEND | NEWER_COMP_CNTR_OP_RECV), 0);
    EXPECT_EQ(second.attach(*a, NEWER_COMP_CNTR_OP_RECV | NEWER_COMP_CNTR_OP_RDMA_READ), EBUSY);
    EXPECT_EQ(first.attach(*a, NEWER_COMP_CNTR_OP_SEND), EBUSY);
    EXPECT_EQ(second.attach(*a, NEWER_COMP_CNTR_OP_RDMA_READ), 0) << "nothing of it was attached";
    end_queue_pair(*a);
}

TEST_F(CompletionCounters, WhatCannotBeIsRefused) {
    connect();
    reset();
    Counter counter(*a);
    EXPECT_EQ(counter.attach(*a, 0), EINVAL);
    EXPECT_EQ(counter.attach(*a, 1U << 6), EOPNOTSUPP);
    EXPECT_EQ(counter.attach(*a, NEWER_COMP_CNTR_OP_SEND, 1), EINVAL);
    EXPECT_EQ(counter.attach(*b, NEWER_COMP_CNTR_OP_SEND), EINVAL) << "of another context";
    const auto error_of = [this](newer_comp_cntr_init_attr attr) {
        errno = 0;
        EXPECT_EQ(newer_create_comp_cntr(a->context, &attr), nullptr);
        return errno;
    };
    EXPECT_EQ(error_of({1, NEWER_COMP_CNTR_TYPE_WRS, 0}), EOPNOTSUPP);
    EXPECT_EQ(error_of({0, NEWER_COMP_CNTR_TYPE_WRS, 1}), EOPNOTSUPP);
    EXPECT_EQ(error_of({0, NEWER_COMP_CNTR_TYPE_BYTES, 0}), EOPNOTSUPP);
}

TEST_F(CompletionCounters, AsManyAsAreReported) {
    connect();
    newer_comp_cntr_init_attr attr{};
    std::vector<newer_comp_cntr*> all;
    for (int i = 0; i < 1024; ++i) {
        all.push_back(newer_create_comp_cntr(a->context, &attr));
        ASSERT_NE(all.back(), nullptr);
    }
    errno = 0;
    EXPECT_EQ(newer_create_comp_cntr(a->context, &attr), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    for (newer_comp_cntr* counter : all) {
        EXPECT_EQ(newer_destroy_comp_cntr(counter), 0);
    }
}

// A device of this kind has none, whatever its firmware.
TEST_F(CompletionCounters, OfADeviceWithoutThemAreRefused) {
    ASSERT_EQ(simverbs_restart(), 0);
    ASSERT_EQ(simverbs_set_personality("connectx6"), 0) << simverbs_last_error();
    connect();
    newer_comp_cntr_caps caps{1, 1, 1};
    EXPECT_EQ(newer_query_comp_cntr_caps(a->context, &caps, sizeof caps), EOPNOTSUPP);
    EXPECT_EQ(caps.max_counters, 0U) << "cleared first";
    newer_comp_cntr_init_attr attr{};
    EXPECT_EQ(newer_create_comp_cntr(a->context, &attr), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

}  // namespace
}  // namespace verbs_test
