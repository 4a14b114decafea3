// The life of a completion queue as its consumer sees it, as rows: when it will send an event to
// its channel, and its end by an overrun. That of a personality which loses the entry alone
// (cq_overrun_kills_cq) does not end.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace simverbs {

enum class CqState : std::uint8_t {
    kQuiet,           // completions are added, nobody is told
    kArmedSolicited,  // ibv_req_notify_cq(cq, 1)
    kArmed,           // ibv_req_notify_cq(cq, 0)
    kDead,            // nothing is added any more
};
inline constexpr auto kCqStateNames =
    std::to_array<std::string_view>({"QUIET", "ARMED_SOLICITED", "ARMED", "DEAD"});
constexpr std::string_view to_string(CqState state) {
    return kCqStateNames[static_cast<std::size_t>(state)];
}

enum class CqTrigger : std::uint8_t {
    kRequestSolicited,  // ibv_req_notify_cq(cq, 1)
    kRequestNext,       // ibv_req_notify_cq(cq, 0)
    kCompletion,        // any
    kUrgentCompletion,  // solicited, or in error
    kOverrun,           // an entry for which there is no room
};
inline constexpr auto kCqTriggerNames =
    std::to_array<std::string_view>({"req_notify solicited", "req_notify", "completion",
                                     "solicited or failed completion", "overrun"});
constexpr std::string_view to_string(CqTrigger trigger) {
    return kCqTriggerNames[static_cast<std::size_t>(trigger)];
}

struct CqTransition {
    CqState from;
    CqState to;
    CqTrigger trigger;
    std::string_view effect;
    std::string_view source;
};

inline constexpr auto kCqTransitions = std::to_array<CqTransition>({
    {CqState::kQuiet, CqState::kArmedSolicited, CqTrigger::kRequestSolicited, "", "IBA 11.4.2.2"},
    {CqState::kQuiet, CqState::kArmed, CqTrigger::kRequestNext, "", "IBA 11.4.2.2"},
    {CqState::kArmedSolicited, CqState::kArmed, CqTrigger::kRequestNext, "", "IBA 11.4.2.2"},
    {CqState::kArmed, CqState::kQuiet, CqTrigger::kCompletion, "to the channel", "IBA 11.4.2.2"},
    {CqState::kArmedSolicited, CqState::kQuiet, CqTrigger::kUrgentCompletion, "to the channel",
     "IBA 11.4.2.2"},
    {CqState::kQuiet, CqState::kDead, CqTrigger::kOverrun, "CQ_ERR", "IBA 11.6.3.2"},
    {CqState::kArmedSolicited, CqState::kDead, CqTrigger::kOverrun, "CQ_ERR", "IBA 11.6.3.2"},
    {CqState::kArmed, CqState::kDead, CqTrigger::kOverrun, "CQ_ERR", "IBA 11.6.3.2"},
});

constexpr const CqTransition* find_transition(CqState from, CqTrigger trigger) {
    for (const CqTransition& row : kCqTransitions) {
        if (row.from == from && row.trigger == trigger) {
            return &row;
        }
    }
    return nullptr;
}

}  // namespace simverbs
