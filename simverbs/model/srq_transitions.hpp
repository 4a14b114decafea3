// The life of a shared receive queue as rows: whether it will tell that receives run low, and its
// end when the device cannot read it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace simverbs {

enum class SrqState : std::uint8_t {
    kUnlimited,   // nobody is told how many receives wait
    kLimitArmed,  // SRQ_LIMIT_REACHED when fewer than the limit wait
    kErr,         // no receive is taken any more
};
inline constexpr auto kSrqStateNames =
    std::to_array<std::string_view>({"UNLIMITED", "LIMIT_ARMED", "ERR"});
constexpr std::string_view to_string(SrqState state) {
    return kSrqStateNames[static_cast<std::size_t>(state)];
}

enum class SrqTrigger : std::uint8_t {
    kSetLimit,    // ibv_modify_srq with a limit; by personality ibv_create_srq too
    kClearLimit,  // ... with limit 0
    kBelowLimit,  // fewer receives wait than the limit says
    kUnreadable,  // of the ring
};
inline constexpr auto kSrqTriggerNames = std::to_array<std::string_view>(
    {"set limit", "clear limit", "below the limit", "ring unreadable"});
constexpr std::string_view to_string(SrqTrigger trigger) {
    return kSrqTriggerNames[static_cast<std::size_t>(trigger)];
}

struct SrqTransition {
    SrqState from;
    SrqState to;
    SrqTrigger trigger;
    std::string_view effect;
    std::string_view source;
};

inline constexpr auto kSrqTransitions = std::to_array<SrqTransition>({
    {SrqState::kUnlimited, SrqState::kLimitArmed, SrqTrigger::kSetLimit, "", "IBA 11.2.3.4"},
    {SrqState::kLimitArmed, SrqState::kLimitArmed, SrqTrigger::kSetLimit, "", "IBA 11.2.3.4"},
    {SrqState::kLimitArmed, SrqState::kUnlimited, SrqTrigger::kClearLimit, "", "IBA 11.2.3.4"},
    {SrqState::kUnlimited, SrqState::kUnlimited, SrqTrigger::kClearLimit, "", "IBA 11.2.3.4"},
    {SrqState::kLimitArmed, SrqState::kUnlimited, SrqTrigger::kBelowLimit, "SRQ_LIMIT_REACHED",
     "IBA 11.6.3.1"},
    {SrqState::kUnlimited, SrqState::kErr, SrqTrigger::kUnreadable, "SRQ_ERR", "IBA 11.6.3.2"},
    {SrqState::kLimitArmed, SrqState::kErr, SrqTrigger::kUnreadable, "SRQ_ERR", "IBA 11.6.3.2"},
});

constexpr const SrqTransition* find_transition(SrqState from, SrqTrigger trigger) {
    for (const SrqTransition& row : kSrqTransitions) {
        if (row.from == from && row.trigger == trigger) {
            return &row;
        }
    }
    return nullptr;
}

}  // namespace simverbs
