// The logical state machine of a port: the only place where a transition is written down. Links and
// the subnet manager ask for a trigger; diagrams and the exhaustive test iterate the rows.
// Not modelled: LINKACTDEFER and its error recovery, and going from ARMED to ACTIVE by the arrival
// of a data packet (frames travel only between two ports in ACTIVE).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fabric {

// PortInfo:PortState (IBA 14.2.5.6).
enum class PortState : std::uint8_t { kDown = 1, kInit = 2, kArmed = 3, kActive = 4 };
inline constexpr std::array kPortStates = {PortState::kDown, PortState::kInit, PortState::kArmed,
                                           PortState::kActive};

constexpr std::string_view to_string(PortState state) {
    switch (state) {
        case PortState::kDown:
            return "DOWN";
        case PortState::kInit:
            return "INIT";
        case PortState::kArmed:
            return "ARMED";
        case PortState::kActive:
            return "ACTIVE";
    }
    return "?";
}

// PortInfo:PortPhysicalState (IBA 14.2.5.6).
enum class PhysicalState : std::uint8_t {
    kSleep = 1,
    kPolling = 2,
    kDisabled = 3,
    kTraining = 4,
    kLinkUp = 5,
    kErrorRecovery = 6,
};

constexpr std::string_view to_string(PhysicalState state) {
    switch (state) {
        case PhysicalState::kSleep:
            return "SLEEP";
        case PhysicalState::kPolling:
            return "POLLING";
        case PhysicalState::kDisabled:
            return "DISABLED";
        case PhysicalState::kTraining:
            return "TRAINING";
        case PhysicalState::kLinkUp:
            return "LINK_UP";
        case PhysicalState::kErrorRecovery:
            return "ERROR_RECOVERY";
    }
    return "?";
}

enum class PortTrigger : std::uint8_t {
    kLinkUp,      // physical training has finished
    kLinkDown,    // the physical link was lost
    kSetDown,     // the subnet manager writes PortState = Down
    kSetArmed,    // ... Armed
    kSetActive,   // ... Active
    kRemoteInit,  // the other end went through INIT again
    kCarrier,     // an Ethernet link is up: nobody else is asked
};
inline constexpr std::array kPortTriggers = {PortTrigger::kLinkUp,    PortTrigger::kLinkDown,
                                             PortTrigger::kSetDown,   PortTrigger::kSetArmed,
                                             PortTrigger::kSetActive, PortTrigger::kRemoteInit,
                                             PortTrigger::kCarrier};

constexpr std::string_view to_string(PortTrigger trigger) {
    switch (trigger) {
        case PortTrigger::kLinkUp:
            return "link_up";
        case PortTrigger::kCarrier:
            return "carrier";
        case PortTrigger::kLinkDown:
            return "link_down";
        case PortTrigger::kSetDown:
            return "set_down";
        case PortTrigger::kSetArmed:
            return "set_armed";
        case PortTrigger::kSetActive:
            return "set_active";
        case PortTrigger::kRemoteInit:
            return "remote_init";
    }
    return "?";
}

struct PortTransition {
    PortState from;
    PortState to;
    PortTrigger trigger;
    std::string_view source;
};

// clang-format off
inline constexpr std::array kPortTransitions = std::to_array<PortTransition>({
    // from               to                  trigger                   source
    {PortState::kDown,   PortState::kInit,   PortTrigger::kLinkUp,     "IBA 7.2.7"},
    {PortState::kDown,   PortState::kActive, PortTrigger::kCarrier,    "IBA A16.3"},
    {PortState::kInit,   PortState::kDown,   PortTrigger::kLinkDown,   "IBA 7.2.7"},
    {PortState::kArmed,  PortState::kDown,   PortTrigger::kLinkDown,   "IBA 7.2.7"},
    {PortState::kActive, PortState::kDown,   PortTrigger::kLinkDown,   "IBA 7.2.7"},
    {PortState::kInit,   PortState::kDown,   PortTrigger::kSetDown,    "IBA 14.2.5.6"},
    {PortState::kArmed,  PortState::kDown,   PortTrigger::kSetDown,    "IBA 14.2.5.6"},
    {PortState::kActive, PortState::kDown,   PortTrigger::kSetDown,    "IBA 14.2.5.6"},
    {PortState::kInit,   PortState::kArmed,  PortTrigger::kSetArmed,   "IBA 14.2.5.6"},
    {PortState::kArmed,  PortState::kActive, PortTrigger::kSetActive,  "IBA 14.2.5.6"},
    {PortState::kArmed,  PortState::kInit,   PortTrigger::kRemoteInit, "IBA 7.2.7"},
    {PortState::kActive, PortState::kInit,   PortTrigger::kRemoteInit, "IBA 7.2.7"},
});
// clang-format on

consteval bool rows_are_unambiguous(std::span<const PortTransition> rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t j = i + 1; j < rows.size(); ++j) {
            if (rows[i].from == rows[j].from && rows[i].trigger == rows[j].trigger) {
                return false;
            }
        }
    }
    return true;
}
static_assert(rows_are_unambiguous(kPortTransitions), "two rows claim the same transition");

// nullptr: in this state the trigger is not legal, or changes nothing.
constexpr const PortTransition* find_transition(PortState from, PortTrigger trigger) {
    for (const PortTransition& row : kPortTransitions) {
        if (row.from == from && row.trigger == trigger) {
            return &row;
        }
    }
    return nullptr;
}

}  // namespace fabric
