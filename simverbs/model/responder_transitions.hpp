// The states of a responder that acknowledges, as rows: what it has told the requester about the
// packet that it expects. Without acknowledgments a responder is in order whenever it runs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "simverbs/model/transition_table.hpp"

namespace simverbs {

enum class ResponderState : std::uint8_t {
    kStopped,      // not started, failed or reset
    kInOrder,      // a gap is reported when it is seen
    kGapReported,  // a sequence NAK went back; silent until the missing packet comes
    kNotReady,     // an RNR NAK went back; what follows its packet is no gap
    kRefusing,     // a request was refused; the NAK waits behind the READ responses before it
};
inline constexpr auto kResponderStateNames = std::to_array<std::string_view>(
    {"STOPPED", "IN_ORDER", "GAP_REPORTED", "NOT_READY", "REFUSING"});
static_assert(kResponderStateNames.size() ==
              static_cast<std::size_t>(ResponderState::kRefusing) + 1);
constexpr std::string_view to_string(ResponderState state) {
    return kResponderStateNames[static_cast<std::size_t>(state)];
}

enum class ResponderEvent : std::uint8_t {
    kStart,      // the queue pair enters RTR
    kGap,        // a packet came whose PSN is ahead of the expected one
    kNoReceive,  // the expected packet needs a receive, and none is posted
    kExecuted,   // the expected packet was carried out
    kRefuse,     // a request is refused while answers to earlier ones wait
    kStop,       // the refusal was sent, or the queue pair leaves the states in which it receives
};
inline constexpr auto kResponderEventNames =
    std::to_array<std::string_view>({"start", "gap", "no receive", "executed", "refuse", "stop"});
static_assert(kResponderEventNames.size() == static_cast<std::size_t>(ResponderEvent::kStop) + 1);
constexpr std::string_view to_string(ResponderEvent event) {
    return kResponderEventNames[static_cast<std::size_t>(event)];
}

using ResponderTransition = Transition<ResponderState, ResponderEvent>;

// clang-format off
inline constexpr auto kResponderTransitions = [] {
    using enum ResponderState;
    using enum ResponderEvent;
    return std::to_array<ResponderTransition>({
        // from        event       to             source
        {kStopped,     kStart,     kInOrder,      "IBA 10.3.1"},

        // The NAK goes back once: where the state changes.
        {kInOrder,     kGap,       kGapReported,  "IBA 9.7.5"},
        {kGapReported, kGap,       kGapReported,  "IBA 9.7.5"},
        {kNotReady,    kGap,       kNotReady,     "IBA 9.7.5.2.8"},

        // An RNR NAK goes back each time.
        {kInOrder,     kNoReceive, kNotReady,     "IBA 9.7.5.2.8"},
        {kGapReported, kNoReceive, kNotReady,     "IBA 9.7.5.2.8"},
        {kNotReady,    kNoReceive, kNotReady,     "IBA 9.7.5.2.8"},

        {kInOrder,     kExecuted,  kInOrder,      "IBA 9.7.4"},
        {kGapReported, kExecuted,  kInOrder,      "IBA 9.7.4"},
        {kNotReady,    kExecuted,  kInOrder,      "IBA 9.7.4"},

        // Nothing at or behind the refused packet is looked at any more.
        {kInOrder,     kRefuse,    kRefusing,     "IBA 9.9.3"},
        {kGapReported, kRefuse,    kRefusing,     "IBA 9.9.3"},
        {kNotReady,    kRefuse,    kRefusing,     "IBA 9.9.3"},

        {kStopped,     kStop,      kStopped,      "IBA 10.3.1"},
        {kInOrder,     kStop,      kStopped,      "IBA 10.3.1"},
        {kGapReported, kStop,      kStopped,      "IBA 10.3.1"},
        {kNotReady,    kStop,      kStopped,      "IBA 10.3.1"},
        {kRefusing,    kStop,      kStopped,      "IBA 10.3.1"},
    });
}();
// clang-format on

static_assert(rows_are_unambiguous(std::span<const ResponderTransition>(kResponderTransitions)),
              "two rows claim the same event of a responder");

inline constexpr TransitionTable<ResponderState, ResponderEvent, kResponderStateNames.size(),
                                 kResponderEventNames.size()>
    kResponderTable{kResponderTransitions};

// Nothing where the event cannot happen.
constexpr std::optional<ResponderState> next_state(ResponderState from, ResponderEvent event) {
    return kResponderTable.next(from, event);
}

}  // namespace simverbs
