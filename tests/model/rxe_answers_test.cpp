// Personality rxe against what the real device answered.
#include "tests/model/rxe_answers.hpp"

#include <optional>

#include <gtest/gtest.h>

#include "simverbs/model/personalities.hpp"

#include "tests/model/attr_words.hpp"

namespace simverbs {
namespace {

const oracle::RxeAnswer* answer(Service service, QpState from, QpState to) {
    for (const oracle::RxeAnswer& row : oracle::kRxeAnswers) {
        if (row.service == service && oracle::state_named(row.from) == from &&
            oracle::state_named(row.to) == to) {
            return &row;
        }
    }
    return nullptr;
}

// The device was an Ethernet port and its library does not pass RATE_LIMIT on: neither says
// anything of the table.
constexpr QpAttrs kNotAsked = QpAttr::kAltPath | QpAttr::kRateLimit;

TEST(RxeAnswers, PersonalityRxeAllowsTheMovesThatTheDeviceAllowed) {
    for (const Service service : {Service::kRc, Service::kUc, Service::kUd}) {
        for (const QpState from : oracle::kStates) {
            if (from == QpState::kSqe) {
                continue;
            }
            for (const QpState to : oracle::kStates) {
                EXPECT_EQ(find_modify(kRxe, from, to, service) != nullptr,
                          answer(service, from, to) != nullptr)
                    << oracle::edge(service, from, to);
            }
        }
    }
}

TEST(RxeAnswers, PersonalityRxeTakesTheAttributesThatTheDeviceTook) {
    for (const oracle::RxeAnswer& row : oracle::kRxeAnswers) {
        const QpState from = oracle::state_named(row.from);
        const QpState to = oracle::state_named(row.to);
        const QpTransition* ours = find_modify(kRxe, from, to, row.service);
        ASSERT_NE(ours, nullptr) << oracle::edge(row.service, from, to);
        EXPECT_EQ(ours->required, oracle::attrs_named(row.required))
            << oracle::edge(row.service, from, to);
        for (const QpAttrName& attr : kQpAttrNames) {
            if (kNotAsked.contains(attr.attr) || attr.attr == QpAttr::kState) {
                continue;
            }
            const QpAttrs given = ours->required | attr.attr;
            EXPECT_EQ(check_modify(kRxe, *ours, row.service, given).ok(),
                      oracle::attrs_named(row.required).contains(attr.attr) ||
                          oracle::attrs_named(row.optional).contains(attr.attr))
                << oracle::edge(row.service, from, to) << ' ' << attr.name;
        }
    }
}

}  // namespace
}  // namespace simverbs
