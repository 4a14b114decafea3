// An oracle written by hand from IBA 7.2.7 and 14.2.5.6, not from the table: every state under
// every trigger.
#include "fabric/net/port_transitions.hpp"

#include <map>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

namespace fabric {
namespace {

std::optional<PortState> oracle(PortState from, PortTrigger trigger) {
    const bool has_link = from != PortState::kDown;
    switch (trigger) {
        case PortTrigger::kCarrier:
            return has_link ? std::nullopt : std::optional(PortState::kActive);
        case PortTrigger::kLinkUp:
            return has_link ? std::nullopt : std::optional(PortState::kInit);
        case PortTrigger::kLinkDown:
        case PortTrigger::kSetDown:
            return has_link ? std::optional(PortState::kDown) : std::nullopt;
        case PortTrigger::kSetArmed:
            return from == PortState::kInit ? std::optional(PortState::kArmed) : std::nullopt;
        case PortTrigger::kSetActive:
            return from == PortState::kArmed ? std::optional(PortState::kActive) : std::nullopt;
        case PortTrigger::kRemoteInit:
            return from == PortState::kArmed || from == PortState::kActive
                       ? std::optional(PortState::kInit)
                       : std::nullopt;
    }
    return std::nullopt;
}

TEST(PortTransitions, AgreeWithTheOracleInEveryStateUnderEveryTrigger) {
    for (const PortState from : kPortStates) {
        for (const PortTrigger trigger : kPortTriggers) {
            SCOPED_TRACE(std::string(to_string(from)) + " " + std::string(to_string(trigger)));
            const PortTransition* const row = find_transition(from, trigger);
            const std::optional<PortState> expected = oracle(from, trigger);
            ASSERT_EQ(row != nullptr, expected.has_value());
            if (row != nullptr) {
                EXPECT_EQ(row->to, *expected);
            }
        }
    }
}

TEST(PortTransitions, EachNameASource) {
    for (const PortTransition& row : kPortTransitions) {
        EXPECT_TRUE(row.source.starts_with("IBA "));
    }
}

}  // namespace
}  // namespace fabric
