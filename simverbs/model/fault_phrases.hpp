// Phrases of the messages about faults that programs in C, scenario files and programs in Python
// say in different words. Whoever checks a fault writes the words of <simverbs/fault.h>; scenarios
// and the Python package translate them by these rows and by kFaultMembers, which has the names of
// members.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace simverbs {

enum class FaultPhrase : std::uint8_t {
    kTriggers,
    kTriggersThatMatch,
    kDirections,
    kQueues,
    kSendQueue,
    kOn,
    kDelay,
    kChance,
    kHostKill,
    kQueuePairMissing,
    kQueuePairNumber,
    kFields,
    kFrom,
    kUntil,
    kNaks,
    kStatuses,
};

struct FaultPhraseRow {
    FaultPhrase phrase;
    std::string_view api;       // of <simverbs/fault.h>
    std::string_view scenario;  // of a file
    std::string_view python;    // of the Python package
};
// clang-format off
inline constexpr auto kFaultPhrases = std::to_array<FaultPhraseRow>({
    {FaultPhrase::kTriggers,
     "SIMVERBS_ON_TIME (1), _PACKET (2), _WORK_REQUEST (3) or _CALL (4), or 0",
     "time, packet, work_request or call",
     "OnTime, OnPacket, OnWorkRequest or OnCall"},
    {FaultPhrase::kTriggersThatMatch,
     "on is SIMVERBS_ON_PACKET, _WORK_REQUEST or _CALL",
     "`when` has on: packet, on: work_request or on: call",
     "`when` is OnPacket, OnWorkRequest or OnCall"},
    {FaultPhrase::kDirections,
     "SIMVERBS_REQUESTS (1) or SIMVERBS_RESPONSES (2), or 0", "requests, responses or either",
     "requests, responses or either"},
    {FaultPhrase::kQueues,
     "SIMVERBS_SEND_QUEUE (0) or SIMVERBS_RECEIVE_QUEUE (1)", "send or receive",
     "send or receive"},
    {FaultPhrase::kSendQueue,
     "match.queue is to be 0", "when: queue is to be send", "queue is to be send"},
    {FaultPhrase::kOn,               "leave on 0", "leave out when: on", "leave out `when`"},
    {FaultPhrase::kDelay,
     "leave delay_ps 0", "leave out when: delay", "leave out `delay`"},
    {FaultPhrase::kChance,
     "chance is at most chance_of", "a chance is at most 1/1", "a chance is at most 1/1"},
    {FaultPhrase::kHostKill,         "SIMVERBS_FAULT_HOST_KILL", "host_kill", "host_kill"},
    {FaultPhrase::kQueuePairMissing,
     "target.qp (the n-th of its device) or target.qp_num is missing", "qp is missing",
     "qp (the n-th of its device) or qp_num is missing"},
    {FaultPhrase::kQueuePairNumber,
     "; ibv_qp.qp_num is the number to give", "", "; qp_num is the number to give"},
    {FaultPhrase::kFields,
     "SIMVERBS_HEADER_OPCODE (1) to SIMVERBS_HEADER_SOLICITED (13)", "opcode to solicited",
     "opcode to solicited"},
    {FaultPhrase::kFrom,             "from_ps", "when: at", "at"},
    {FaultPhrase::kUntil,            "until_ps", "when: until", "until"},
    {FaultPhrase::kNaks,
     "an enum simverbs_nak, 0 to 3", "the name of a NAK", "the name of a NAK"},
    {FaultPhrase::kStatuses,
     "a failure of enum ibv_wc_status, from 1 on", "a status other than SUCCESS",
     "a status other than SUCCESS"},
});
// clang-format on
static_assert([] {
    for (std::size_t i = 0; i < kFaultPhrases.size(); ++i) {
        if (kFaultPhrases[i].phrase != static_cast<FaultPhrase>(i)) {
            return false;
        }
    }
    return kFaultPhrases.back().phrase == FaultPhrase::kStatuses;
}());
constexpr std::string_view api_words(FaultPhrase phrase) {
    return kFaultPhrases[static_cast<std::size_t>(phrase)].api;
}

}  // namespace simverbs
