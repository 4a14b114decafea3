// Faults of a device, and overruns. A device fault is no answer of an implementation: simverbs.h
// says what it does, and with Soft-RoCE the events that it never raises are missing.
#include "tests/conformance/fault_stage.hpp"

namespace conformance {
namespace {

std::uint32_t number(const ibv_qp* qp) {
    return qp->qp_num;
}

FaultCase same_for_all(std::string name, FaultCause cause, const Outcome& outcome,
                       void (*then)(Stage&)) {
    return {.name = std::move(name),
            .cause = cause,
            .service = Service::kRc,
            .spec = outcome,
            .connectx6 = outcome,
            .rxe = outcome,
            .then = then};
}

std::vector<FaultCase> failing_requests() {
    return {
        same_for_all(
            "device_fails_in_a_request", FaultCause::kExecutionFault, {failed("FATAL"), kUntouched},
            [](Stage& stage) {
                EXPECT_EQ(simverbs_fault_execution("h0", number(stage.here().qp), nullptr), 0);
            }),
        same_for_all("syndrome_that_nobody_knows", FaultCause::kUnknownSyndrome,
                     {failed("GENERAL"), kUntouched},
                     [](Stage& stage) {
                         EXPECT_EQ(simverbs_fault_syndrome("h0", number(stage.here().qp), nullptr),
                                   0);
                     }),
        same_for_all("status_by_name", FaultCause::kInjectedStatus,
                     {failed("RESP_TIMEOUT"), kUntouched},
                     [](Stage& stage) {
                         EXPECT_EQ(simverbs_fault_completion("h0", number(stage.here().qp),
                                                             SIMVERBS_SEND_QUEUE,
                                                             IBV_WC_RESP_TIMEOUT_ERR, nullptr),
                                   0);
                     }),
        same_for_all("device_dead", FaultCause::kDeviceFatal,
                     {"-; -; Input/output error; DEVICE_FATAL", kUntouched},
                     [](Stage&) { EXPECT_EQ(simverbs_fault_device("h0"), 0); }),
    };
}

// The second completion does not fit: the queue and its queue pairs are dead, or it is just lost.
FaultCase overrun() {
    const Outcome dies{"10 OK; -; ERR; CQ_ERR, QP_FATAL", kUntouched, kMessage | kFollowing};
    return {.name = "completion_queue_overrun",
            .cause = FaultCause::kCqOverrun,
            .service = Service::kRc,
            .spec = dies,
            .connectx6 = dies,
            .rxe = {"10 OK; -; RTS; CQ_ERR", kUntouched, kMessage | kFollowing},
            .options = [](Connection& with) { with.cq_entries = 1; },
            .arrange = [](Stage& stage) { stage.become_write(); }};
}

std::vector<FaultCase> unreadable_rings() {
    const std::string all_flushed = "10 FLUSH, 11 FLUSH, 12 FLUSH; 21 FLUSH; ERR; ";
    FaultCase sends = same_for_all(
        "send_ring_unreadable", FaultCause::kSendRingUnreadable,
        {all_flushed + "QP_FATAL", kUntouched}, [](Stage& stage) {
            EXPECT_EQ(simverbs_fault_ring("h0", number(stage.here().qp), SIMVERBS_SEND_QUEUE), 0);
        });
    sends.rxe.a = all_flushed + "-";
    FaultCase receives = same_for_all(
        "receive_ring_unreadable", FaultCause::kReceiveRingUnreadable,
        {failed("RETRY_EXC"), stopped("QP_FATAL")}, [](Stage& stage) {
            EXPECT_EQ(simverbs_fault_ring("h1", number(stage.there().qp), SIMVERBS_RECEIVE_QUEUE),
                      0);
        });
    receives.rxe.b = stopped("-");
    FaultCase inside = same_for_all("queue_pair_fails_inside", FaultCause::kInternalError,
                                    {all_flushed + "QP_FATAL", kUntouched}, [](Stage& stage) {
                                        simverbs_fault fault;
                                        simverbs_fault_init(&fault);
                                        fault.action = SIMVERBS_FAULT_QP_ERROR;
                                        fault.target.node = "h0";
                                        fault.target.qp_num = number(stage.here().qp);
                                        EXPECT_EQ(simverbs_inject(&fault, nullptr), 0)
                                            << simverbs_last_error();
                                    });
    inside.rxe.a = all_flushed + "-";
    // Receives that are shared are flushed by nobody.
    const std::string gives_up = "10 RETRY_EXC, 11 FLUSH, 12 FLUSH; -; ERR; ";
    FaultCase shared = same_for_all(
        "shared_ring_unreadable", FaultCause::kSrqRingUnreadable,
        {gives_up + "LAST_WQE", "-; ERR; SRQ_ERR, LAST_WQE, QP_FATAL"}, [](Stage& stage) {
            EXPECT_EQ(simverbs_fault_srq_ring("h1", stage.there().srq->handle), 0);
        });
    shared.options = [](Connection& with) { with.shared_receives = 8; };
    shared.rxe = {gives_up + "-", "-; ERR; SRQ_ERR"};
    return {sends, receives, inside, shared};
}

}  // namespace

std::vector<FaultCase> device_cases() {
    std::vector<FaultCase> all = failing_requests();
    all.push_back(overrun());
    const std::vector<FaultCase> rings = unreadable_rings();
    all.insert(all.end(), rings.begin(), rings.end());
    return all;
}

std::vector<UnreachableCause> unreachable_causes() {
    const std::string refused =
        "ibv_post_recv and ibv_post_srq_recv answer EINVAL to what the queue has no room for; "
        "tests/hca writes such a receive into the ring";
    const std::string tagged =
        "needs a shared receive queue that matches tags; tests/verbs/tag_operations_test.cpp and "
        "tag_rendezvous_test.cpp";
    return {
        {FaultCause::kMalformedReceive, refused},
        {FaultCause::kUnackedMalformedReceive, refused},
        {FaultCause::kRendezvousLeftToSoftware, tagged},
        {FaultCause::kRendezvousReadFailed, tagged},
        {FaultCause::kTagNotInList, tagged},
    };
}

}  // namespace conformance
