// The queue pair table against its oracle: every service, every pair of states, every attribute.
#include "simverbs/model/qp_transitions.hpp"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "simverbs/model/personalities.hpp"

#include "tests/model/attr_words.hpp"
#include "tests/model/qp_oracle.hpp"

namespace simverbs {
namespace {

using oracle::edge;
using oracle::kServiceList;
using oracle::kStates;

struct Expected {
    QpAttrs required;
    QpAttrs optional;
};

// Returns what the oracle says of a move, or nothing where it forbids it.
std::optional<Expected> expected(Service service, QpState from, QpState to) {
    for (const oracle::ModifyMatrix& matrix : oracle::kModifyMatrices) {
        if (matrix.service == service &&
            matrix.rows[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] != 'x') {
            return std::nullopt;
        }
    }
    if (from == QpState::kSqe && to == QpState::kRts) {
        for (const oracle::SqeAttrs& row : oracle::kSqeToRts) {
            if (row.service == service) {
                return Expected{{}, oracle::attrs_named(row.optional)};
            }
        }
    }
    for (const oracle::ServiceAttrs& table : oracle::kServiceAttrs) {
        for (const oracle::MoveAttrs& move : table.moves) {
            if (table.service == service && oracle::state_named(move.from) == from &&
                oracle::state_named(move.to) == to) {
                return Expected{oracle::attrs_named(move.required),
                                oracle::attrs_named(move.optional)};
            }
        }
    }
    return Expected{};
}

TEST(QpTransitions, ModifyReachesExactlyTheStatesOfTheOracle) {
    for (const Service service : kServiceList) {
        for (const QpState from : kStates) {
            for (const QpState to : kStates) {
                EXPECT_EQ(find_transition(from, to, QpTrigger::kModify, service) != nullptr,
                          expected(service, from, to).has_value())
                    << edge(service, from, to);
            }
        }
    }
}

TEST(QpTransitions, EachAttributeIsRequiredOptionalOrForbiddenAsInTheOracle) {
    for (const Service service : kServiceList) {
        for (const QpState from : kStates) {
            for (const QpState to : kStates) {
                const QpTransition* row = find_transition(from, to, QpTrigger::kModify, service);
                const std::optional<Expected> want = expected(service, from, to);
                if (row == nullptr || !want) {
                    continue;
                }
                for (const QpAttrName& attr : kQpAttrNames) {
                    EXPECT_EQ(row->required.contains(attr.attr), want->required.contains(attr.attr))
                        << edge(service, from, to) << ": " << attr.name << " required";
                    EXPECT_EQ(row->optional.contains(attr.attr), want->optional.contains(attr.attr))
                        << edge(service, from, to) << ": " << attr.name << " optional";
                }
            }
        }
    }
}

TEST(QpTransitions, LeavingOutARequiredAttributeIsNamedMissing) {
    for (const QpTransition& row : kQpTransitions) {
        for (const Service service : kServiceList) {
            if (row.trigger != QpTrigger::kModify || !row.services.contains(service)) {
                continue;
            }
            const QpAttrs full = row.required | QpAttr::kState;
            EXPECT_TRUE(check_attrs(row, service, full, false).ok());
            EXPECT_TRUE(check_attrs(row, service, full | row.optional, false).ok());
            for (const QpAttrName& attr : kQpAttrNames) {
                const QpAttrCheck without =
                    check_attrs(row, service, full.without(attr.attr), false);
                EXPECT_EQ(without.missing, row.required & QpAttrs(attr.attr))
                    << edge(service, row.from, row.to) << " without " << attr.name;
                EXPECT_TRUE(without.superfluous.empty());
            }
        }
    }
}

TEST(QpTransitions, AnAttributeThatTheRowDoesNotListIsNamedSuperfluous) {
    for (const QpTransition& row : kQpTransitions) {
        for (const Service service : kServiceList) {
            if (row.trigger != QpTrigger::kModify || !row.services.contains(service)) {
                continue;
            }
            const QpAttrs allowed = row.required | row.optional | QpAttr::kState;
            for (const QpAttrName& attr : kQpAttrNames) {
                const QpAttrCheck with = check_attrs(row, service, row.required | attr.attr, false);
                EXPECT_EQ(with.superfluous, QpAttrs(attr.attr).without(allowed))
                    << edge(service, row.from, row.to) << " with " << attr.name;
            }
        }
    }
}

TEST(QpTransitions, AnUnknownAttributeBitIsSuperfluousEverywhere) {
    const QpAttrs unknown = QpAttrs::from_bits(1U << 30);
    for (const QpTransition& row : kQpTransitions) {
        EXPECT_EQ(check_attrs(row, Service::kRc, row.required | unknown, true).superfluous,
                  unknown);
    }
}

TEST(QpTransitions, AsynchronousMovesAreThoseOfTheOracle) {
    for (const oracle::AsyncMoves& want : oracle::kAsyncMoves) {
        for (const QpState from : kStates) {
            const auto state = static_cast<std::size_t>(from);
            const auto letter = [&](QpTrigger trigger) {
                const std::optional<QpState> to = next_state(from, trigger, want.service);
                if (!to) {
                    return '.';
                }
                return *to == QpState::kSqe ? 'Q' : *to == QpState::kErr ? 'E' : 'D';
            };
            EXPECT_EQ(letter(QpTrigger::kSendError), want.send_error[state])
                << to_string(want.service) << " send error in " << to_string(from);
            EXPECT_EQ(letter(QpTrigger::kQpError), want.qp_error[state])
                << to_string(want.service) << " error in " << to_string(from);
            EXPECT_EQ(letter(QpTrigger::kDrained), want.drained[state])
                << to_string(want.service) << " drained in " << to_string(from);
        }
    }
}

TEST(QpTransitions, ASendErrorStopsTheSendQueueAloneWhereTheServiceSaysSo) {
    for (const ServiceProperties& service : kServices) {
        const std::optional<QpState> to =
            next_state(QpState::kRts, QpTrigger::kSendError, service.service);
        EXPECT_EQ(to.has_value(), service.has_requester) << service.name;
        EXPECT_EQ(to == QpState::kSqe, service.send_error_stops_only_the_send_queue)
            << service.name;
    }
}

TEST(QpTransitions, OnlyModifyTakesAttributes) {
    for (const QpTransition& row : kQpTransitions) {
        if (row.trigger != QpTrigger::kModify) {
            EXPECT_TRUE(row.required.empty() && row.optional.empty());
        }
        EXPECT_FALSE(row.required.intersects(row.optional));
        EXPECT_FALSE(row.required.contains(QpAttr::kState));
        EXPECT_FALSE(row.source.empty());
    }
}

TEST(QpTransitions, EveryStateIsReachedAndLeft) {
    for (const Service service : kServiceList) {
        std::set<QpState> reached = {QpState::kReset};
        for (std::size_t round = 0; round < kStates.size(); ++round) {
            for (const QpTransition& row : kQpTransitions) {
                if (row.services.contains(service) && reached.contains(row.from)) {
                    reached.insert(row.to);
                }
            }
        }
        const bool enters_sqe = properties(service).send_error_stops_only_the_send_queue;
        EXPECT_EQ(reached.size(), enters_sqe ? 7U : 6U) << to_string(service);
        for (const QpState state : reached) {
            EXPECT_NE(find_transition(state, QpState::kReset, QpTrigger::kModify, service), nullptr)
                << to_string(service) << ' ' << to_string(state);
        }
    }
}

TEST(QpTransitions, ResizingIsForDevicesThatCanAndQueuesThatExist) {
    const QpTransition* row =
        find_transition(QpState::kRts, QpState::kRts, QpTrigger::kModify, Service::kXrcTgt);
    ASSERT_NE(row, nullptr);
    EXPECT_FALSE(check_attrs(*row, Service::kXrcTgt, QpAttr::kCap, true).ok());
    EXPECT_TRUE(check_attrs(*row, Service::kRc, QpAttr::kCap, true).ok());
    EXPECT_FALSE(check_attrs(*row, Service::kRc, QpAttr::kCap, false).ok());

    const QpTransition* init =
        find_transition(QpState::kReset, QpState::kInit, QpTrigger::kModify, Service::kRc);
    ASSERT_NE(init, nullptr);
    EXPECT_FALSE(check_attrs(*init, Service::kRc, init->required | QpAttr::kCap, true).ok());
}

TEST(QpTransitions, ResetToErrIsThePersonalitysChoice) {
    EXPECT_NE(find_modify(kSpec, QpState::kReset, QpState::kErr, Service::kRc), nullptr);
    EXPECT_EQ(find_modify(kConnectX6, QpState::kReset, QpState::kErr, Service::kRc), nullptr);
    EXPECT_EQ(find_modify(kRxe, QpState::kReset, QpState::kErr, Service::kRc), nullptr);
}

TEST(QpTransitions, SoftRoceHasNoSendQueueError) {
    EXPECT_EQ(next_state(kSpec, QpState::kRts, QpTrigger::kSendError, Service::kUd), QpState::kSqe);
    EXPECT_EQ(next_state(kRxe, QpState::kRts, QpTrigger::kSendError, Service::kUd), QpState::kErr);
}

}  // namespace
}  // namespace simverbs
