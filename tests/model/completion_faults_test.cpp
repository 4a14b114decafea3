// The causes of completions: every status has one, and each row is consistent with the wire, the
// services and the state table. An oracle says per NAK and per status what must follow.
#include "simverbs/model/completion_faults.hpp"

#include <array>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "simverbs/model/personalities.hpp"

namespace simverbs {
namespace {

bool reached(WcStatus status) {
    for (const CompletionFault& row : kCompletionFaults) {
        if (row.requester.status == status || row.responder.status == status) {
            return true;
        }
    }
    return false;
}

bool only_by_injection(WcStatus status) {
    for (const InjectionOnlyStatus& row : kInjectionOnly) {
        if (row.status == status) {
            return true;
        }
    }
    return false;
}

TEST(CompletionFaults, EveryStatusHasACauseOrAReasonWhyNot) {
    for (std::size_t i = 0; i < kWcStatuses; ++i) {
        const auto status = static_cast<WcStatus>(i);
        EXPECT_NE(reached(status), only_by_injection(status)) << to_string(status);
    }
}

TEST(CompletionFaults, EachCauseHasOneRowAndAName) {
    std::set<FaultCause> causes;
    std::set<std::string_view> names;
    for (const CompletionFault& row : kCompletionFaults) {
        EXPECT_TRUE(causes.insert(row.cause).second) << row.name;
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_FALSE(row.description.empty() || row.source.empty()) << row.name;
        EXPECT_EQ(&fault_row(row.cause), &row);
        EXPECT_FALSE(row.services.empty()) << row.name;
    }
}

// The rule for each answer that a requester gets (IBA 9.9.2): the status of the request it stops
// at.
struct AnswerRule {
    WireAnswer wire;
    WcStatus requester;
};
constexpr auto kAnswerRules = std::to_array<AnswerRule>({
    {WireAnswer::kNak0, WcStatus::kRetryExcErr},
    {WireAnswer::kNak1, WcStatus::kRemInvReqErr},
    {WireAnswer::kNak2, WcStatus::kRemAccessErr},
    {WireAnswer::kNak3, WcStatus::kRemOpErr},
    {WireAnswer::kNak4, WcStatus::kRemInvRdReqErr},
    {WireAnswer::kRnrNak, WcStatus::kRnrRetryExcErr},
});

TEST(CompletionFaults, TheRequestersStatusIsTheOneThatTheNakMeans) {
    for (const CompletionFault& row : kCompletionFaults) {
        for (const AnswerRule& rule : kAnswerRules) {
            if (row.wire == rule.wire) {
                EXPECT_EQ(row.requester.status, rule.requester) << row.name;
            }
        }
    }
}

TEST(CompletionFaults, OnlyAcknowledgedServicesAnswer) {
    for (const CompletionFault& row : kCompletionFaults) {
        if (row.wire != WireAnswer::kNothing && row.wire != WireAnswer::kAck) {
            EXPECT_TRUE(kAckedServices.contains(row.services)) << row.name;
            EXPECT_FALSE(row.services.contains(Service::kXrcTgt)) << row.name;
        }
    }
}

TEST(CompletionFaults, ANakThatIsNoRetryStopsTheResponderToo) {
    for (const CompletionFault& row : kCompletionFaults) {
        const std::optional<NakCode> code = nak_code(row.wire);
        if (code && *code != NakCode::kPsnSequenceError) {
            EXPECT_EQ(state_after(row.responder, QpState::kRts, Service::kRc), QpState::kErr)
                << row.name;
            EXPECT_EQ(state_after(row.requester, QpState::kRts, Service::kRc), QpState::kErr)
                << row.name;
        }
    }
}

// A responder that stops reports by its receive or by an event, never by both and never not.
TEST(CompletionFaults, AResponderThatStopsSaysSoOnce) {
    for (const CompletionFault& row : kCompletionFaults) {
        // An injected fault has the status that was named, which is in no row.
        if (row.responder.trigger == QpTrigger::kQpError && row.kind != FaultKind::kInjection) {
            EXPECT_NE(row.responder.status.has_value(), row.responder.event.has_value())
                << row.name;
        }
    }
}

TEST(CompletionFaults, AnErrorOnASideStopsItUnlessTheReceiveAloneFails) {
    for (const CompletionFault& row : kCompletionFaults) {
        const bool concerns_a_tag = row.responder.status == WcStatus::kTmErr ||
                                    row.responder.status == WcStatus::kTmRndvIncomplete;
        if (row.cause == FaultCause::kFlushed || concerns_a_tag) {
            continue;
        }
        if (row.requester.status && row.requester.status != WcStatus::kSuccess) {
            EXPECT_EQ(row.requester.trigger, QpTrigger::kSendError) << row.name;
        }
        if (row.responder.status && row.responder.status != WcStatus::kSuccess &&
            row.responder.status != WcStatus::kRemAbortErr) {
            EXPECT_EQ(row.responder.trigger, QpTrigger::kQpError) << row.name;
        }
    }
}

// A READ of the device's own stops its queue pair as one of the program would.
TEST(CompletionFaults, OfTagsOnlyAReadThatFailsStopsAQueuePair) {
    EXPECT_EQ(fault_row(FaultCause::kRendezvousReadFailed).responder.trigger,
              QpTrigger::kSendError);
    EXPECT_FALSE(fault_row(FaultCause::kRendezvousLeftToSoftware).responder.trigger);
    EXPECT_FALSE(fault_row(FaultCause::kTagNotInList).responder.trigger);
}

TEST(CompletionFaults, ASendErrorOfADatagramLeavesItsReceivesRunning) {
    const CompletionFault& row = fault_row(FaultCause::kDatagramAboveMtu);
    EXPECT_EQ(state_after(row.requester, QpState::kRts, Service::kUd), QpState::kSqe);
    const CompletionFault& key = fault_row(FaultCause::kGatherKey);
    EXPECT_EQ(state_after(key.requester, QpState::kRts, Service::kUc), QpState::kSqe);
    EXPECT_EQ(state_after(key.requester, QpState::kRts, Service::kRc), QpState::kErr);
    EXPECT_EQ(state_after(key.requester, QpState::kSqd, Service::kXrcIni), QpState::kErr);
}

TEST(CompletionFaults, ASenderWithoutAcknowledgementNeverLearns) {
    for (const CompletionFault& row : kCompletionFaults) {
        if (row.detector == Detector::kReceiver) {
            EXPECT_EQ(row.requester.status, WcStatus::kSuccess) << row.name;
            EXPECT_FALSE(row.services.intersects(kAckedServices)) << row.name;
        }
    }
}

// Statuses by the cause that engineers meet first, as the list of causes in IBA 11.6.2 has them.
TEST(CompletionFaults, WellKnownCausesHaveTheirWellKnownStatuses) {
    const auto sides = [](FaultCause cause) {
        const CompletionFault& row = fault_row(cause);
        return std::pair(row.requester.status, row.responder.status);
    };
    using S = std::optional<WcStatus>;
    using P = std::pair<S, S>;
    EXPECT_EQ(sides(FaultCause::kReceiveTooSmall),
              P(WcStatus::kRemInvReqErr, WcStatus::kLocLenErr));
    EXPECT_EQ(sides(FaultCause::kReceiveKey), P(WcStatus::kRemOpErr, WcStatus::kLocProtErr));
    EXPECT_EQ(sides(FaultCause::kImmediateWriteRefused),
              P(WcStatus::kRemAccessErr, WcStatus::kLocAccessErr));
    EXPECT_EQ(sides(FaultCause::kRemoteKey), P(WcStatus::kRemAccessErr, std::nullopt));
    EXPECT_EQ(sides(FaultCause::kQpLacksRight), P(WcStatus::kRemInvReqErr, std::nullopt));
    EXPECT_EQ(sides(FaultCause::kRemoteInvalidateRefused),
              P(WcStatus::kRetryExcErr, WcStatus::kMwBindErr));
    EXPECT_EQ(sides(FaultCause::kDatagramAboveSrqReceive),
              P(WcStatus::kSuccess, WcStatus::kRemAbortErr));
    EXPECT_EQ(sides(FaultCause::kXrcSrqInvalid), P(WcStatus::kRemInvRdReqErr, std::nullopt));
    EXPECT_EQ(sides(FaultCause::kRendezvousLeftToSoftware),
              P(WcStatus::kSuccess, WcStatus::kTmRndvIncomplete));
    EXPECT_EQ(sides(FaultCause::kTagNotInList), P(std::nullopt, WcStatus::kTmErr));
    EXPECT_EQ(fault_row(FaultCause::kQpLacksRight).responder.event, AsyncEvent::kQpReqErr);
    EXPECT_EQ(fault_row(FaultCause::kRemoteKey).responder.event, AsyncEvent::kQpAccessErr);
    EXPECT_EQ(fault_row(FaultCause::kCqOverrun).requester.event, AsyncEvent::kQpFatal);
}

TEST(CompletionFaults, VendorErrorsAreTheCauseOrWhatWasMeasured) {
    const CompletionFault& timeout = fault_row(FaultCause::kPacketsLost);
    EXPECT_EQ(vendor_err(kSpec, timeout.cause, timeout.requester), 0x30U);
    EXPECT_EQ(vendor_err(kConnectX6, timeout.cause, timeout.requester), 0x81U);
    EXPECT_EQ(vendor_err(kRxe, timeout.cause, timeout.requester), 0U);
    const CompletionFault& success = fault_row(FaultCause::kSuccess);
    EXPECT_EQ(vendor_err(kSpec, success.cause, success.requester), 0U);
}

TEST(CompletionFaults, SoftRoceDepartsWhereItsAnswersDo) {
    EXPECT_EQ(consequences(kRxe, FaultCause::kGatherKey).requester.status, WcStatus::kLocQpOpErr);
    EXPECT_EQ(consequences(kRxe, FaultCause::kReceiveTooSmall).requester.status,
              WcStatus::kRemOpErr);
    EXPECT_EQ(consequences(kRxe, FaultCause::kResponseMismatch).requester.status,
              WcStatus::kFatalErr);
    EXPECT_EQ(consequences(kRxe, FaultCause::kPacketsLost).requester.status,
              WcStatus::kRetryExcErr);
    EXPECT_EQ(consequences(kSpec, FaultCause::kGatherKey).requester.status, WcStatus::kLocProtErr);
}

}  // namespace
}  // namespace simverbs
