// Which test of verbs_test shows each completion status and each async event, in the order of their
// numbers, and which test of rdma_cm_test each cause of an event of rdma_cm; or why none does.
// atlas.cpp prints and checks them.
#pragma once

#include <array>
#include <string_view>

#include "simverbs/model/rdma_cm_events.hpp"
#include "simverbs/model/statuses.hpp"

namespace simverbs::atlas {

struct StatusTest {
    WcStatus status;
    std::string_view test;  // as --gtest_list_tests has it: suite, dot, test
};

// clang-format off
inline constexpr auto kStatusTests = std::to_array<StatusTest>({
    {WcStatus::kSuccess,          "RcOperation.SendFillsTheReceive"},
    {WcStatus::kLocLenErr,        "RcFault.ReceiveTooSmallIsLocLenThereAndRemInvReqHere"},
    {WcStatus::kLocQpOpErr,       "RcFault.ReadAndAtomicWithInitiatorDepthZeroAreLocQpOp"},
    {WcStatus::kLocEecOpErr,      "Each/InjectedStatus.FailsASend/LOC_EEC_OP_ERR"},
    {WcStatus::kLocProtErr,       "Rc/LocalFault.StopsTheRequesterAlone/unknown_lkey"},
    {WcStatus::kWrFlushErr,       "RcState.ErrByModifyFlushesInOrderOfPosting"},
    {WcStatus::kMwBindErr,        "Window.ARefusedBindingStopsTheQueuePairAndFlushesWhatFollows"},
    {WcStatus::kBadRespErr,       "DeviceFault.AResponseThatDoesNotFitIsBadResp"},
    {WcStatus::kLocAccessErr,     "RcFault.WriteWithImmediateAndABadKeyIsLocAccessThereAndRemAccessHere"},
    {WcStatus::kRemInvReqErr,     "Rc/RemoteFault.StopsBothAndRaisesAnEvent/qp_lacks_write"},
    {WcStatus::kRemAccessErr,     "Rc/RemoteFault.StopsBothAndRaisesAnEvent/write_unknown_rkey"},
    {WcStatus::kRemOpErr,         "RcFault.ReceiveWithABadKeyIsLocProtThereAndRemOpHere"},
    {WcStatus::kRetryExcErr,      "RcRetry.LossOfEverythingUsesUpTheRetries"},
    {WcStatus::kRnrRetryExcErr,   "RnrRetry.NoReceiveUsesUpTheRnrRetries"},
    {WcStatus::kLocRddViolErr,    "Each/InjectedStatus.FailsASend/LOC_RDD_VIOL_ERR"},
    {WcStatus::kRemInvRdReqErr,   "Xrc.AQueueThatIsNotThereIsAnInvalidRequest"},
    {WcStatus::kRemAbortErr,      "Datagram.OnASharedQueueTooSmallAReceiveIsAborted"},
    {WcStatus::kInvEecnErr,       "Each/InjectedStatus.FailsASend/INV_EECN_ERR"},
    {WcStatus::kInvEecStateErr,   "Each/InjectedStatus.FailsASend/INV_EEC_STATE_ERR"},
    {WcStatus::kFatalErr,         "DeviceFault.WhileExecutingARequestIsFatalErr"},
    {WcStatus::kRespTimeoutErr,   "Each/InjectedStatus.FailsASend/RESP_TIMEOUT_ERR"},
    {WcStatus::kGeneralErr,       "DeviceFault.WithAnUnknownSyndromeIsGeneralErr"},
    {WcStatus::kTmErr,            "TagMatching.RemovingATagThatAMessageHasTakenIsTmErr"},
    {WcStatus::kTmRndvIncomplete, "LeftToSoftware.WhatDoesNotFitIntoTheBuffer"},
});

struct EventTest {
    AsyncEvent event;
    std::string_view how;   // it is brought about: protocol, or the control call
    std::string_view test;  // "": there is none, because
    std::string_view not_modelled = {};
};
inline constexpr auto kEventTests = std::to_array<EventTest>({
    {AsyncEvent::kCqErr,             "protocol", "Completions.OverflowKillsTheQueueAndItsQueuePairs"},
    {AsyncEvent::kQpFatal,           "simverbs_fault_ring", "Of/RingFault.TakesTheQueuePairDown/SendQueue"},
    {AsyncEvent::kQpReqErr,          "protocol", "Rc/RemoteFault.StopsBothAndRaisesAnEvent/qp_lacks_write"},
    {AsyncEvent::kQpAccessErr,       "protocol", "Rc/RemoteFault.StopsBothAndRaisesAnEvent/write_unknown_rkey"},
    {AsyncEvent::kCommEst,           "protocol", "RcOperation.TheFirstPacketInRtrSaysCommunicationEstablished"},
    {AsyncEvent::kSqDrained,         "protocol", "RcState.DrainedIsSaidWhenItWasAskedFor"},
    {AsyncEvent::kPathMig,           "protocol", "Migration.UsedUpRetriesTakeTheOtherPathAndThePeerFollows"},
    {AsyncEvent::kPathMigErr,        "protocol", "Migration.APathThatIsNotOursIsAnErrorAndItsPacketsAreDropped"},
    {AsyncEvent::kDeviceFatal,       "simverbs_fault_device", "DeviceFault.OfTheWholeDeviceIsToldOnceToEveryContext"},
    {AsyncEvent::kPortActive,        "simverbs_set_link", "RcRetry.LinkDownIsAPortErrorAndUpIsPortActive"},
    {AsyncEvent::kPortErr,           "simverbs_set_link", "RcRetry.LinkDownIsAPortErrorAndUpIsPortActive"},
    {AsyncEvent::kLidChange,         "simverbs_port_set_lid", "PortChange.OfTheLidIsToldAndCutsThePathsThatUseTheOldOne"},
    {AsyncEvent::kPkeyChange,        "simverbs_port_set_pkeys", "PortChange.OfThePartitionsIsToldAndShutsOutWhoIsInNone"},
    {AsyncEvent::kSmChange,          "simverbs_port_set_sm_lid", "PortChange.OfTheSubnetManagerIsTold"},
    {AsyncEvent::kSrqErr,            "simverbs_fault_srq_ring", "DeviceFault.OfASharedRingTakesItsQueuePairsDown"},
    {AsyncEvent::kSrqLimitReached,   "protocol", "Shared.TheLimitIsReportedOnceAndDisarmed"},
    {AsyncEvent::kQpLastWqeReached,  "protocol", "Shared.AQueuePairThatStopsLeavesTheReceivesAndSaysSo"},
    {AsyncEvent::kClientReregister,  "simverbs_port_reregister", "PortChange.MayAskToRegisterAgain"},
    {AsyncEvent::kGidChange,         "simverbs_port_set_gid", "PortChange.OfTheGidsIsTold"},
    {AsyncEvent::kWqFatal,           "protocol", "WorkQueues.ADeadCompletionQueueIsFatalToThem"},
    {AsyncEvent::kDeviceSpeedChange, "simverbs_port_set_rate", "PortChange.OfTheRateSlowsTheLinkAndIsToldOnlyWhereAsked"},
});

// In the order of kRdmaEventCauses.
struct RdmaEventTest {
    RdmaEventType event;
    std::string_view test;      // "": there is none, because
    std::string_view scenario;  // in scenarios/library/cm; "": there is none, because
    std::string_view elsewhere = {};
};
inline constexpr std::string_view kByLibrary = "the library librdmacm makes it of the REP";
inline constexpr std::string_view kByScenario = "the scenario shows it";
inline constexpr std::string_view kByTest = "the test shows it";
inline constexpr auto kRdmaEventTests = std::to_array<RdmaEventTest>({
    {RdmaEventType::kAddrResolved,     "Refusal.ANeighbourThatDoesNotAnswerTakesTheTimeGiven", "cm_established"},
    {RdmaEventType::kAddrError,        "Refusal.ANeighbourThatDoesNotAnswerTakesTheTimeGiven", "cm_no_neighbour"},
    {RdmaEventType::kAddrError,        "Refusal.ARouteByAnInterfaceWithoutRdmaIsAnAddressError", "", kByTest},
    {RdmaEventType::kAddrError,        "DatagramRefusal.AnotherQueueKeyIsAnAddressError", "", kByTest},
    {RdmaEventType::kRouteResolved,    "Layers/Flow.ConnectsAndDisconnects/InfiniBand", "cm_established"},
    {RdmaEventType::kRouteError,       "Refusal.RouteErrors", "cm_no_route"},
    {RdmaEventType::kRouteError,       "Refusal.RouteErrors", "cm_route_timeout"},
    {RdmaEventType::kConnectRequest,   "Layers/Flow.TheRequestIsReported/InfiniBand", "cm_established"},
    {RdmaEventType::kConnectRequest,   "Layers/Datagram.ResolvesTheQueuePairOfTheServer/InfiniBand", "cm_datagram"},
    {RdmaEventType::kConnectResponse,  "Layers/Flow.TheReplyIsReported/InfiniBand", "", kByTest},
    {RdmaEventType::kConnectError,     "", "cm_connect_error", kByLibrary},
    {RdmaEventType::kUnreachable,      "Refusal.ASilentPeerIsUnreachable", "cm_req_unanswered"},
    {RdmaEventType::kUnreachable,      "Refusal.AReplyThatNobodyTakesIsUnreachable", "cm_rep_unanswered"},
    {RdmaEventType::kUnreachable,      "DatagramRefusal.ASilentPeerIsUnreachable", "cm_datagram_unanswered"},
    {RdmaEventType::kUnreachable,      "DatagramRefusal.NobodyListens", "cm_datagram_refused"},
    {RdmaEventType::kRejected,         "Refusal.NobodyListens", "cm_no_listener"},
    {RdmaEventType::kRejected,         "Refusal.TheListenerWantsAnotherServiceType", "", kByTest},
    {RdmaEventType::kRejected,         "Refusal.ARejectionBringsItsPrivateData", "cm_consumer_reject"},
    {RdmaEventType::kRejected,         "", "cm_vendor_option", kByScenario},
    {RdmaEventType::kRejected,         "", "cm_stale_connection", kByScenario},
    {RdmaEventType::kRejected,         "", "cm_client_gives_up", kByScenario},
    {RdmaEventType::kRejected,         "", "cm_request_rejected", kByScenario},
    {RdmaEventType::kEstablished,      "Layers/Flow.ConnectsAndDisconnects/InfiniBand", "cm_established"},
    {RdmaEventType::kEstablished,      "", "cm_established", kByLibrary},
    {RdmaEventType::kEstablished,      "FlowOptions.AMessageThatComesFirstEstablishes", "", kByTest},
    {RdmaEventType::kEstablished,      "Layers/Datagram.ResolvesTheQueuePairOfTheServer/InfiniBand", "cm_datagram"},
    {RdmaEventType::kDisconnected,     "Layers/Flow.ConnectsAndDisconnects/InfiniBand", "cm_established"},
    {RdmaEventType::kDisconnected,     "Refusal.ADisconnectThatNobodyAnswersEndsNevertheless", "cm_dreq_unanswered"},
    {RdmaEventType::kDeviceRemoval,    "Devices.ADeviceThatGoesTakesItsIdsAlong", "cm_device_removed"},
    {RdmaEventType::kMulticastJoin,    "Multicast.JoinsAGroupOfTheSubnet", "cm_multicast_join"},
    {RdmaEventType::kMulticastError,   "Multicast.AnErrorIsReportedAtOnceOrLater", "cm_multicast_timeout"},
    {RdmaEventType::kMulticastError,   "Multicast.AnErrorIsReportedAtOnceOrLater", "cm_multicast_port_down"},
    {RdmaEventType::kMulticastError,   "Multicast.AnErrorIsReportedAtOnceOrLater", "", kByTest},
    {RdmaEventType::kAddrChange,       "Devices.AChangedAddressIsReported", "cm_address_change"},
    {RdmaEventType::kTimewaitExit,     "Layers/Flow.ConnectsAndDisconnects/InfiniBand", "cm_timewait"},
});
// clang-format on

}  // namespace simverbs::atlas
