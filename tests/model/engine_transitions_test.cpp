// The tables of requester and responder against an oracle: every state and every event.
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include <gtest/gtest.h>

#include "simverbs/model/requester_transitions.hpp"
#include "simverbs/model/responder_transitions.hpp"

namespace simverbs {
namespace {

// A row a state, a column an event; "-" where the event cannot happen.
template <std::size_t kStates, std::size_t kEvents>
using Oracle = std::array<std::array<std::string_view, kEvents>, kStates>;

// clang-format off
constexpr Oracle<5, 6> kRequesterOracle{{
    // start     acknowledged  rewind                 RNR NAK                RNR timer    stop
    {"SENDING",  "-",          "-",                   "-",                   "-",         "STOPPED"},
    {"-",        "SENDING",    "RECOVERING",          "RNR_WAIT",            "-",         "STOPPED"},
    {"-",        "SENDING",    "RECOVERING",          "RNR_WAIT_RECOVERING", "-",         "STOPPED"},
    {"-",        "RNR_WAIT",   "RNR_WAIT_RECOVERING", "RNR_WAIT",            "SENDING",   "STOPPED"},
    {"-",        "RNR_WAIT",   "RNR_WAIT_RECOVERING", "RNR_WAIT_RECOVERING", "RECOVERING","STOPPED"},
}};
constexpr Oracle<5, 6> kResponderOracle{{
    // start      gap             no receive   executed    refuse      stop
    {"IN_ORDER",  "-",            "-",         "-",        "-",        "STOPPED"},
    {"-",         "GAP_REPORTED", "NOT_READY", "IN_ORDER", "REFUSING", "STOPPED"},
    {"-",         "GAP_REPORTED", "NOT_READY", "IN_ORDER", "REFUSING", "STOPPED"},
    {"-",         "NOT_READY",    "NOT_READY", "IN_ORDER", "REFUSING", "STOPPED"},
    {"-",         "-",            "-",         "-",        "-",        "STOPPED"},
}};
// clang-format on

template <class State, class Event, std::size_t kStates, std::size_t kEvents>
void expect_moves(const Oracle<kStates, kEvents>& oracle) {
    for (std::size_t from = 0; from < kStates; ++from) {
        for (std::size_t event = 0; event < kEvents; ++event) {
            const std::optional<State> to =
                next_state(static_cast<State>(from), static_cast<Event>(event));
            EXPECT_EQ(to ? to_string(*to) : std::string_view("-"), oracle[from][event])
                << to_string(static_cast<State>(from)) << " on "
                << to_string(static_cast<Event>(event));
        }
    }
}

TEST(RequesterTransitions, EachEventInEachStateIsAsInTheOracle) {
    static_assert(kRequesterOracle.size() == kRequesterStateNames.size());
    static_assert(kRequesterOracle[0].size() == kRequesterEventNames.size());
    expect_moves<RequesterState, RequesterEvent>(kRequesterOracle);
}

TEST(ResponderTransitions, EachEventInEachStateIsAsInTheOracle) {
    static_assert(kResponderOracle.size() == kResponderStateNames.size());
    static_assert(kResponderOracle[0].size() == kResponderEventNames.size());
    expect_moves<ResponderState, ResponderEvent>(kResponderOracle);
}

}  // namespace
}  // namespace simverbs
