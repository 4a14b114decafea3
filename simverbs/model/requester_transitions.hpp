// The states of a requester, as rows: whether it sends, sends again, or waits because the responder
// has no receive. Which packets it sends is no part of the state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "simverbs/model/transition_table.hpp"

namespace simverbs {

enum class RequesterState : std::uint8_t {
    kStopped,            // not started, failed or flushed: nothing is sent and no answer is read
    kSending,            // the next packet is new
    kRecovering,         // it went back to a PSN, and nothing new was acknowledged since
    kRnrWait,            // the time of an RNR NAK runs: nothing is sent
    kRnrWaitRecovering,  // the same, where it had gone back to a PSN
};
inline constexpr auto kRequesterStateNames = std::to_array<std::string_view>(
    {"STOPPED", "SENDING", "RECOVERING", "RNR_WAIT", "RNR_WAIT_RECOVERING"});
static_assert(kRequesterStateNames.size() ==
              static_cast<std::size_t>(RequesterState::kRnrWaitRecovering) + 1);
constexpr std::string_view to_string(RequesterState state) {
    return kRequesterStateNames[static_cast<std::size_t>(state)];
}

enum class RequesterEvent : std::uint8_t {
    kStart,         // the queue pair enters RTS
    kAcknowledged,  // a PSN was acknowledged that was not before
    kRewind,        // a sequence NAK, a missing response, a timeout or the end of an RNR wait
    kRnrNak,        // the responder has no receive
    kRnrExpired,    // the time of the RNR NAK is over
    kStop,          // a request failed, or the queue pair leaves the states in which it sends
};
inline constexpr auto kRequesterEventNames = std::to_array<std::string_view>(
    {"start", "acknowledged", "rewind", "RNR NAK", "RNR timer", "stop"});
static_assert(kRequesterEventNames.size() == static_cast<std::size_t>(RequesterEvent::kStop) + 1);
constexpr std::string_view to_string(RequesterEvent event) {
    return kRequesterEventNames[static_cast<std::size_t>(event)];
}

using RequesterTransition = Transition<RequesterState, RequesterEvent>;

// clang-format off
inline constexpr auto kRequesterTransitions = [] {
    using enum RequesterState;
    using enum RequesterEvent;
    return std::to_array<RequesterTransition>({
        // from              event          to                   source
        {kStopped,           kStart,        kSending,            "IBA 10.3.1"},

        // New acknowledgments end a recovery, never a wait.
        {kSending,           kAcknowledged, kSending,            "IBA 9.9.2"},
        {kRecovering,        kAcknowledged, kSending,            "IBA 9.9.2"},
        {kRnrWait,           kAcknowledged, kRnrWait,            "IBA 9.7.5.2.8"},
        {kRnrWaitRecovering, kAcknowledged, kRnrWait,            "IBA 9.7.5.2.8"},

        {kSending,           kRewind,       kRecovering,         "IBA 9.9.2"},
        {kRecovering,        kRewind,       kRecovering,         "IBA 9.9.2"},
        {kRnrWait,           kRewind,       kRnrWaitRecovering,  "IBA 9.9.2"},
        {kRnrWaitRecovering, kRewind,       kRnrWaitRecovering,  "IBA 9.9.2"},

        // A second RNR NAK does not prolong the wait.
        {kSending,           kRnrNak,       kRnrWait,            "IBA 9.7.5.2.8"},
        {kRecovering,        kRnrNak,       kRnrWaitRecovering,  "IBA 9.7.5.2.8"},
        {kRnrWait,           kRnrNak,       kRnrWait,            "IBA 9.7.5.2.8"},
        {kRnrWaitRecovering, kRnrNak,       kRnrWaitRecovering,  "IBA 9.7.5.2.8"},

        {kRnrWait,           kRnrExpired,   kSending,            "IBA 9.7.5.2.8"},
        {kRnrWaitRecovering, kRnrExpired,   kRecovering,         "IBA 9.7.5.2.8"},

        {kStopped,           kStop,         kStopped,            "IBA 10.3.1"},
        {kSending,           kStop,         kStopped,            "IBA 10.3.1"},
        {kRecovering,        kStop,         kStopped,            "IBA 10.3.1"},
        {kRnrWait,           kStop,         kStopped,            "IBA 10.3.1"},
        {kRnrWaitRecovering, kStop,         kStopped,            "IBA 10.3.1"},
    });
}();
// clang-format on

static_assert(rows_are_unambiguous(std::span<const RequesterTransition>(kRequesterTransitions)),
              "two rows claim the same event of a requester");

inline constexpr TransitionTable<RequesterState, RequesterEvent, kRequesterStateNames.size(),
                                 kRequesterEventNames.size()>
    kRequesterTable{kRequesterTransitions};

// Nothing where the event cannot happen.
constexpr std::optional<RequesterState> next_state(RequesterState from, RequesterEvent event) {
    return kRequesterTable.next(from, event);
}

// Returns true if an RNR NAK's time runs.
constexpr bool waits_for_receive(RequesterState state) {
    return state == RequesterState::kRnrWait || state == RequesterState::kRnrWaitRecovering;
}

// Returns true if what is sent was sent before, and nothing new was acknowledged since.
constexpr bool is_recovering(RequesterState state) {
    return state == RequesterState::kRecovering || state == RequesterState::kRnrWaitRecovering;
}

}  // namespace simverbs
