// Faults that a device shows when asked to: each fault, its completions and events, and what
// follows on both sides.
#include <cerrno>
#include <cstring>
#include <sstream>
#include <string>

#include "simverbs/matchers.hpp"

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

using Queue = simverbs_queue;

class DeviceFault : public TwoHosts {
  protected:
    static bool error_names(const char* word) {
        return std::strstr(simverbs_last_error(), word) != nullptr;
    }
    // Receives 1 and 2 at the peer, sends 10 and 11 here.
    void exchange() {
        ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
        ASSERT_EQ(b->receive(2, {b->range(64, 64)}), 0);
        ASSERT_EQ(Request(IBV_WR_SEND).id(10).from(a->range(0, 16)).post(*a), 0);
        ASSERT_EQ(Request(IBV_WR_SEND).id(11).from(a->range(0, 16)).post(*a), 0);
    }
    static void expect(End& end, std::uint64_t id, ibv_wc_status status) {
        const ibv_wc wc = end.wait();
        EXPECT_EQ(wc.wr_id, id);
        EXPECT_EQ(wc.status, status) << ibv_wc_status_str(wc.status);
    }
    // The send fails before anything has left; the peer notices nothing.
    void expect_send_fails(ibv_wc_status status) {
        std::fill_n(a->at(0), 16, std::uint8_t{7});
        exchange();
        expect(*a, 10, status);
        expect(*a, 11, IBV_WC_WR_FLUSH_ERR);
        EXPECT_EQ(a->state(), IBV_QPS_ERR);
        EXPECT_TRUE(a->events().empty());
        expect_silence();
        EXPECT_EQ(b->state(), IBV_QPS_RTS);
        EXPECT_TRUE(b->events().empty());
        EXPECT_EQ(*b->at(0), 0) << "landed";
        again();
    }
    void again() {
        ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
        ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
        bring_up({});
        expect_works();
    }
};

TEST_F(DeviceFault, WhileExecutingARequestIsFatalErr) {
    connect();
    std::uint32_t fault = 0;
    ASSERT_EQ(simverbs_fault_execution("h0", a->qp->qp_num, &fault), 0);
    EXPECT_EQ(fault, 1U);
    expect_send_fails(IBV_WC_FATAL_ERR);
}

TEST_F(DeviceFault, WithAnUnknownSyndromeIsGeneralErr) {
    connect();
    ASSERT_EQ(simverbs_fault_syndrome("h0", a->qp->qp_num, nullptr), 0);
    expect_send_fails(IBV_WC_GENERAL_ERR);
}

// The request before it is not touched, and the one that fails is the next after the call.
TEST_F(DeviceFault, HappensToTheNextRequestAlone) {
    connect();
    expect_works();
    ASSERT_EQ(simverbs_fault_execution("h0", a->qp->qp_num, nullptr), 0);
    EXPECT_EQ(simverbs_fault_syndrome("h0", a->qp->qp_num, nullptr), EBUSY);
    EXPECT_TRUE(error_names("simverbs_clear_fault"));
    expect_send_fails(IBV_WC_FATAL_ERR);
    EXPECT_EQ(simverbs_fault_syndrome("h0", a->qp->qp_num, nullptr), 0) << "free again";
}

TEST_F(DeviceFault, ThatIsTakenBackDoesNotHappen) {
    connect();
    std::uint32_t fault = 0;
    ASSERT_EQ(simverbs_fault_execution("h0", a->qp->qp_num, &fault), 0);
    ASSERT_EQ(simverbs_clear_fault(fault), 0);
    EXPECT_EQ(simverbs_clear_fault(fault), ENOENT);
    expect_works();
    EXPECT_EQ(simverbs_fault_execution("h0", a->qp->qp_num, nullptr), 0);
}

TEST_F(DeviceFault, OutlivesItsQueuePairWithoutHarm) {
    connect();
    std::uint32_t fault = 0;
    ASSERT_EQ(simverbs_fault_execution("h0", a->qp->qp_num, &fault), 0);
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = nullptr;
    EXPECT_EQ(simverbs_clear_fault(fault), 0);
}

TEST_F(DeviceFault, IsAFiringInTheTrace) {
    connect();
    struct Seen {
        int count = 0;
        std::uint64_t id = 0;
        std::string action;
    } seen;
    ASSERT_EQ(simverbs_trace_callback(
                  [](const simverbs_record* record, void* argument) {
                      if (std::strcmp(record->name, "fault_fired") != 0) {
                          return;
                      }
                      auto& to = *static_cast<Seen*>(argument);
                      ++to.count;
                      for (std::size_t i = 0; i < record->field_count; ++i) {
                          const simverbs_field& field = record->fields[i];
                          if (std::strcmp(field.name, "fault") == 0) {
                              to.id = field.number;
                          } else if (std::strcmp(field.name, "action") == 0) {
                              to.action = field.text;
                          }
                      }
                  },
                  &seen),
              0);
    std::uint32_t fault = 0;
    ASSERT_EQ(simverbs_fault_execution("h0", a->qp->qp_num, &fault), 0);
    EXPECT_EQ(seen.count, 0) << "it only waits";
    exchange();
    expect(*a, 10, IBV_WC_FATAL_ERR);
    EXPECT_EQ(seen.count, 1);
    EXPECT_EQ(seen.id, fault);
    EXPECT_EQ(seen.action, "execution");
    ASSERT_EQ(simverbs_trace_callback(nullptr, nullptr), 0);
}

TEST_F(DeviceFault, OfADatagramStopsTheSendQueueAlone) {
    const Connection with{.type = IBV_QPT_UD};
    connect(with);
    ASSERT_EQ(simverbs_fault_execution("h0", a->qp->qp_num, nullptr), 0);
    ASSERT_EQ(Request(IBV_WR_SEND)
                  .id(10)
                  .from(a->range(0, 16))
                  .to(a->ah, b->qp->qp_num, with.qkey)
                  .post(*a),
              0);
    expect(*a, 10, IBV_WC_FATAL_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_SQE);
}

// ---- by name
// ---------------------------------------------------------------------------------

class InjectedStatus : public DeviceFault, public testing::WithParamInterface<int> {};

TEST_P(InjectedStatus, FailsASend) {
    connect();
    ASSERT_EQ(
        simverbs_fault_completion("h0", a->qp->qp_num, SIMVERBS_SEND_QUEUE, GetParam(), nullptr),
        0);
    expect_send_fails(static_cast<ibv_wc_status>(GetParam()));
}

TEST_P(InjectedStatus, FailsAReceiveThatAMessageHasFilled) {
    connect();
    ASSERT_EQ(
        simverbs_fault_completion("h1", b->qp->qp_num, SIMVERBS_RECEIVE_QUEUE, GetParam(), nullptr),
        0);
    std::fill_n(a->at(0), 16, std::uint8_t{7});
    exchange();
    expect(*b, 1, static_cast<ibv_wc_status>(GetParam()));
    expect(*b, 2, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(*b->at(0), 7);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
    EXPECT_TRUE(b->events().empty());
    expect(*a, 10, IBV_WC_RETRY_EXC_ERR);
    expect(*a, 11, IBV_WC_WR_FLUSH_ERR);
    expect_silence();
    again();
}

// "RETRY_EXC_ERR" of "IBV_WC_RETRY_EXC_ERR (12)".
std::string name_of_status(const testing::TestParamInfo<int>& row) {
    std::ostringstream said;
    PrintTo(static_cast<ibv_wc_status>(row.param), &said);
    const std::string text = said.str();
    constexpr std::size_t kPrefix = sizeof "IBV_WC_" - 1;
    return text.substr(kPrefix, text.find(' ') - kPrefix);
}

INSTANTIATE_TEST_SUITE_P(Each, InjectedStatus,
                         testing::Range(static_cast<int>(IBV_WC_LOC_LEN_ERR),
                                        static_cast<int>(IBV_WC_TM_RNDV_INCOMPLETE) + 1),
                         name_of_status);

TEST_F(DeviceFault, OfAReceiveOfADatagramIsNotHeardOfByTheSender) {
    const Connection with{.type = IBV_QPT_UD};
    connect(with);
    ASSERT_EQ(simverbs_fault_completion("h1", b->qp->qp_num, SIMVERBS_RECEIVE_QUEUE,
                                        IBV_WC_LOC_PROT_ERR, nullptr),
              0);
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(b->receive(2, {b->range(64, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND)
                  .id(10)
                  .from(a->range(0, 16))
                  .to(a->ah, b->qp->qp_num, with.qkey)
                  .post(*a),
              0);
    expect(*a, 10, IBV_WC_SUCCESS);
    expect(*b, 1, IBV_WC_LOC_PROT_ERR);
    expect(*b, 2, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_RTS);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
}

TEST_F(DeviceFault, OfASharedReceiveFailsTheQueuePairThatTakesIt) {
    Connection with;
    with.shared_receives = 8;
    connect(with);
    ASSERT_EQ(simverbs_fault_completion("h1", b->qp->qp_num, SIMVERBS_RECEIVE_QUEUE,
                                        IBV_WC_LOC_PROT_ERR, nullptr),
              0);
    exchange();
    expect(*b, 1, IBV_WC_LOC_PROT_ERR);
    expect(*a, 10, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_QP_LAST_WQE_REACHED});
    EXPECT_TRUE(b->drain().empty()) << "the other receive stays";
}

TEST_F(DeviceFault, ThatMakesNoSenseIsRefused) {
    connect();
    const std::uint32_t qp = a->qp->qp_num;
    EXPECT_EQ(simverbs_fault_completion("h0", qp, SIMVERBS_SEND_QUEUE, 0, nullptr), EINVAL);
    EXPECT_EQ(simverbs_fault_completion("h0", qp, SIMVERBS_SEND_QUEUE, 24, nullptr), EINVAL);
    EXPECT_TRUE(error_names("from 1"));
    EXPECT_EQ(simverbs_fault_completion("h0", qp, static_cast<Queue>(2), 1, nullptr), EINVAL);
    EXPECT_TRUE(error_names("SIMVERBS_RECEIVE_QUEUE"));
    EXPECT_EQ(simverbs_fault_execution("h7", qp, nullptr), ENOENT);
    EXPECT_TRUE(error_names("h0 to h1"));
    EXPECT_EQ(simverbs_fault_execution(nullptr, qp, nullptr), ENOENT);
    EXPECT_EQ(simverbs_fault_execution("h0", qp + 1000, nullptr), ENOENT);
    EXPECT_TRUE(error_names("ibv_qp.qp_num"));
    EXPECT_EQ(simverbs_fault_ring("h0", qp + 1000, SIMVERBS_SEND_QUEUE), ENOENT);
    EXPECT_EQ(simverbs_fault_ring("h0", qp, static_cast<Queue>(2)), EINVAL);
    EXPECT_EQ(simverbs_fault_srq_ring("h0", 4711), ENOENT);
    EXPECT_TRUE(error_names("ibv_srq.handle"));
    EXPECT_EQ(simverbs_fault_device("s0"), ENOENT);
    expect_works();
}

// ---- a packet on its way
// ---------------------------------------------------------------------------------

TEST_F(DeviceFault, AResponseThatDoesNotFitIsBadResp) {
    connect();
    EXPECT_EQ(simverbs_rewrite_nth("h1-s0", "h1", 0, 0x10, nullptr), EINVAL);
    EXPECT_EQ(simverbs_rewrite_nth("h1-s0", "h1", 1, 0x1F, nullptr), EINVAL);
    EXPECT_TRUE(error_names("0x1f"));
    EXPECT_EQ(simverbs_rewrite_nth("h1-h0", "h1", 1, 0x10, nullptr), ENOENT);
    std::uint32_t fault = 0;
    ASSERT_EQ(simverbs_rewrite_nth("h1-s0", "h1", 1, 0x10, &fault), 0);
    EXPECT_EQ(fault, 1U);
    exchange();
    expect(*a, 10, IBV_WC_BAD_RESP_ERR);
    expect(*a, 11, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
    EXPECT_TRUE(a->events().empty());
    expect(*b, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
    EXPECT_TRUE(b->events().empty());
}

TEST_F(DeviceFault, AResponseThatDoesNotFitIsFatalErrWithRxe) {
    ASSERT_EQ(simverbs_set_personality("rxe"), 0);
    ASSERT_EQ(simverbs_set_topology("eth-pair"), 0);
    connect({});
    ASSERT_EQ(simverbs_rewrite_nth("h0-h1", "h1", 1, 0x10, nullptr), 0);
    exchange();
    expect(*a, 10, IBV_WC_FATAL_ERR);
}

TEST_F(DeviceFault, ARewritingThatIsTakenBackDoesNotHappen) {
    connect();
    std::uint32_t fault = 0;
    ASSERT_EQ(simverbs_rewrite_nth("h1-s0", "h1", 1, 0x10, &fault), 0);
    ASSERT_EQ(simverbs_clear_fault(fault), 0);
    expect_works();
}

// ---- rings
// ---------------------------------------------------------------------------------

class RingFault : public DeviceFault, public testing::WithParamInterface<Queue> {};

TEST_P(RingFault, TakesTheQueuePairDown) {
    connect();
    ASSERT_EQ(a->receive(5, {a->range(0, 8)}), 0);
    ASSERT_EQ(simverbs_fault_ring("h0", a->qp->qp_num, GetParam()), 0);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_QP_FATAL});
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
    expect(*a, 5, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(simverbs_fault_ring("h0", a->qp->qp_num, GetParam()), EINVAL);
    EXPECT_TRUE(error_names("ERR"));
    ASSERT_EQ(Request(IBV_WR_SEND).id(20).from(b->range(0, 8)).post(*b), 0);
    expect(*b, 20, IBV_WC_RETRY_EXC_ERR);
    EXPECT_TRUE(b->events().empty());
    EXPECT_TRUE(a->events().empty()) << "said once";
    again();
}

INSTANTIATE_TEST_SUITE_P(Of, RingFault,
                         testing::Values(SIMVERBS_SEND_QUEUE, SIMVERBS_RECEIVE_QUEUE),
                         [](const auto& row) {
                             return row.param == SIMVERBS_SEND_QUEUE ? "SendQueue" : "ReceiveQueue";
                         });

TEST_F(DeviceFault, OfASharedRingTakesItsQueuePairsDown) {
    Connection with;
    with.shared_receives = 8;
    connect(with);
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(simverbs_fault_srq_ring("h1", b->srq->handle), 0);
    EXPECT_EQ(b->events(),
              (std::vector{IBV_EVENT_SRQ_ERR, IBV_EVENT_QP_LAST_WQE_REACHED, IBV_EVENT_QP_FATAL}));
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
    ASSERT_EQ(Request(IBV_WR_SEND).id(10).from(a->range(0, 8)).post(*a), 0);
    expect(*a, 10, IBV_WC_RETRY_EXC_ERR);
    EXPECT_TRUE(b->drain().empty()) << "shared receives are nobody's to flush";
    EXPECT_TRUE(b->events().empty());
}

// ---- the device as a whole
// ---------------------------------------------------------------------------------

TEST_F(DeviceFault, OfTheWholeDeviceIsToldOnceToEveryContext) {
    connect();
    End second(0, {});
    ASSERT_EQ(simverbs_fault_device("h0"), 0);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_DEVICE_FATAL});
    EXPECT_EQ(second.events(), std::vector{IBV_EVENT_DEVICE_FATAL});
    EXPECT_TRUE(b->events().empty());
    EXPECT_EQ(simverbs_fault_device("h0"), EINVAL);
    EXPECT_TRUE(error_names("already"));
    ASSERT_EQ(simverbs_port_reregister("h0", 1), 0);
    EXPECT_TRUE(a->events().empty()) << "it says nothing more";
}

TEST_F(DeviceFault, OfTheWholeDeviceEndsCompletionsAndItsPeersHearNothing) {
    connect();
    ASSERT_EQ(a->receive(5, {a->range(0, 8)}), 0);
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .id(1)
                  .from(a->range(0, 8))
                  .to(b->address(0), b->mr->rkey)
                  .post(*a),
              0);
    ASSERT_EQ(simverbs_fault_device("h0"), 0);
    EXPECT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 8)).post(*a), 0) << "without effect";
    ASSERT_EQ(Request(IBV_WR_SEND).id(20).from(b->range(0, 8)).post(*b), 0);
    expect(*b, 20, IBV_WC_RETRY_EXC_ERR);
    pass(60'000);
    EXPECT_TRUE(a->drain().empty());
}

TEST_F(DeviceFault, OfTheWholeDeviceMakesVerbsAnswerEio) {
    connect();
    ASSERT_EQ(simverbs_fault_device("h0"), 0);
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(a->context, 1, &port), EIO);
    EXPECT_EQ(a->to_state(IBV_QPS_ERR), EIO);
    errno = 0;
    EXPECT_EQ(ibv_alloc_pd(a->context), nullptr);
    EXPECT_EQ(errno, EIO);
    EXPECT_EQ(ibv_reg_mr(a->pd, a->at(0), 4096, 0), nullptr);
    EXPECT_EQ(errno, EIO);
    EXPECT_EQ(ibv_create_cq(a->context, 4, nullptr, nullptr, 0), nullptr);
    EXPECT_EQ(errno, EIO);
    ibv_device** devices = ibv_get_device_list(nullptr);
    errno = 0;
    EXPECT_EQ(ibv_open_device(devices[0]), nullptr);
    EXPECT_EQ(errno, EIO);
    ibv_free_device_list(devices);
    // The end of the test destroys everything, which still works.
}

}  // namespace
}  // namespace verbs_test
