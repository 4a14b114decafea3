// The states of a work queue (ibv_modify_wq(3)), as rows.
//
// The manual names the states and no moves; these are those that Linux mlx4 and mlx5 take.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "simverbs/model/enum_set.hpp"

namespace simverbs {

// Same values as enum ibv_wq_state.
enum class WqState : std::uint8_t { kReset, kReady, kErr };
inline constexpr auto kWqStateNames = std::to_array<std::string_view>({"RESET", "RDY", "ERR"});
constexpr std::string_view to_string(WqState state) {
    return kWqStateNames[static_cast<std::size_t>(state)];
}

// Same bits as enum ibv_wq_attr_mask.
enum class WqAttr : std::uint32_t { kState = 1U << 0, kCurState = 1U << 1, kFlags = 1U << 2 };
template <>
inline constexpr bool kIsSetMember<WqAttr> = true;
using WqAttrs = EnumSet<WqAttr>;

enum class WqTrigger : std::uint8_t {
    kModify,
    kError,  // a receive failed, or its completion queue died
};
inline constexpr auto kWqTriggerNames = std::to_array<std::string_view>({"modify", "error"});
constexpr std::string_view to_string(WqTrigger trigger) {
    return kWqTriggerNames[static_cast<std::size_t>(trigger)];
}

struct WqTransition {
    WqState from;
    WqState to;
    WqTrigger trigger;
    std::string_view source;
};

inline constexpr auto kWqTransitions = std::to_array<WqTransition>({
    {WqState::kReset, WqState::kReset, WqTrigger::kModify, "Linux mlx4_ib_modify_wq"},
    {WqState::kReset, WqState::kReady, WqTrigger::kModify, "Linux mlx4_ib_modify_wq"},
    {WqState::kReady, WqState::kReset, WqTrigger::kModify, "Linux mlx4_ib_modify_wq"},
    {WqState::kReady, WqState::kReady, WqTrigger::kModify, "Linux mlx4_ib_modify_wq"},
    {WqState::kReady, WqState::kErr, WqTrigger::kModify, "Linux mlx4_ib_modify_wq"},
    {WqState::kErr, WqState::kReset, WqTrigger::kModify, "Linux mlx4_ib_modify_wq"},
    {WqState::kErr, WqState::kErr, WqTrigger::kModify, "Linux mlx4_ib_modify_wq"},
    {WqState::kReady, WqState::kErr, WqTrigger::kError, "ibv_get_async_event(3)"},
});

constexpr bool may_move(WqState from, WqState to, WqTrigger trigger) {
    for (const WqTransition& row : kWqTransitions) {
        if (row.from == from && row.to == to && row.trigger == trigger) {
            return true;
        }
    }
    return false;
}

}  // namespace simverbs
