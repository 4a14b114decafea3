#include <cerrno>
#include <functional>

#include <gmock/gmock.h>

#include "simverbs/model/personalities.hpp"

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

// Values that are right for every attribute, towards the other host.
QpValues good_values(const Pair& pair) {
    QpValues values = rtr_values(pair.options(), pair.b.lid(), pair.b.qp.qpn());
    const QpValues rts = rts_values(pair.options());
    values.access = kAllRights.bits;
    values.port = 1;
    values.sq_psn = rts.sq_psn;
    values.timeout = rts.timeout;
    values.retry_count = rts.retry_count;
    values.rnr_retry = rts.rnr_retry;
    values.max_rd_atomic = rts.max_rd_atomic;
    return values;
}

// A fresh queue pair that was brought to `state` by modify alone.
QueuePairHandle qp_in(Pair& pair, QpState state) {
    QueuePairHandle qp = pair.a.make_qp();
    const QpValues values = good_values(pair);
    if (state == QpState::kReset) {
        return qp;
    }
    EXPECT_EQ(qp.modify_to(QpState::kInit, kInitAttrs, values), 0);
    if (state == QpState::kErr) {
        EXPECT_EQ(qp.modify_to(QpState::kErr), 0);
    }
    if (state == QpState::kInit || state == QpState::kErr) {
        return qp;
    }
    EXPECT_EQ(qp.modify_to(QpState::kRtr, kRtrAttrs, values), 0);
    if (state == QpState::kRtr) {
        return qp;
    }
    EXPECT_EQ(qp.modify_to(QpState::kRts, kRtsAttrs, values), 0);
    if (state == QpState::kSqd) {
        EXPECT_EQ(qp.modify_to(QpState::kSqd), 0);
    }
    return qp;
}

constexpr auto kReachable = std::to_array(
    {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kRts, QpState::kSqd, QpState::kErr});
// In the table of attributes of no row: it is a device's to take (kResizeSteps).
constexpr QpAttrs kResizes = QpAttr::kCap;

TEST(ModifyQp, EachRowOfTheTableTakesWhatItRequiresAndMayTakeTheRest) {
    Pair pair;
    for (const QpTransition& row : kQpTransitions) {
        if (row.trigger != QpTrigger::kModify || !row.services.contains(Service::kRc)) {
            continue;
        }
        SCOPED_TRACE(testing::Message() << to_string(row.from) << " to " << to_string(row.to));
        QpValues values = good_values(pair);
        values.current_state = static_cast<std::uint32_t>(row.from);
        QueuePairHandle least = qp_in(pair, row.from);
        EXPECT_EQ(least.modify_to(row.to, row.required, values), 0);
        EXPECT_EQ(least.state(), row.to);
        QueuePairHandle most = qp_in(pair, row.from);
        EXPECT_EQ(most.modify_to(row.to, row.required | row.optional, values), 0);
        EXPECT_EQ(most.query().values.state, static_cast<std::uint32_t>(row.to));
        least.destroy();
        most.destroy();
    }
}

TEST(ModifyQp, WhatNoRowSaysIsRefused) {
    Pair pair;
    const QpValues values = good_values(pair);
    for (const QpState from : kReachable) {
        for (int to = 0; to <= static_cast<int>(QpState::kErr); ++to) {
            const auto target = static_cast<QpState>(to);
            if (find_modify(kSpec, from, target, Service::kRc) != nullptr) {
                continue;
            }
            QueuePairHandle qp = qp_in(pair, from);
            EXPECT_EQ(qp.modify_to(target, {}, values), EINVAL)
                << to_string(from) << " to " << to_string(target);
            EXPECT_EQ(qp.state(), from);
            qp.destroy();
        }
    }
}

TEST(ModifyQp, EachMissingAttributeIsRefusedAndChangesNothing) {
    Pair pair;
    for (const QpTransition& row : kQpTransitions) {
        if (row.trigger != QpTrigger::kModify || !row.services.contains(Service::kRc)) {
            continue;
        }
        QueuePairHandle qp = qp_in(pair, row.from);
        const QpValues before = qp.query().values;
        for (const QpAttrName& attr : kQpAttrNames) {
            if (!row.required.contains(attr.attr)) {
                continue;
            }
            EXPECT_EQ(qp.modify_to(row.to, row.required.without(attr.attr), good_values(pair)),
                      EINVAL)
                << to_string(row.from) << " to " << to_string(row.to) << " without " << attr.name;
        }
        EXPECT_EQ(qp.state(), row.from);
        EXPECT_EQ(qp.query().values.rq_psn, before.rq_psn);
        EXPECT_EQ(qp.query().values.access, before.access);
        qp.destroy();
    }
}

TEST(ModifyQp, EachSuperfluousAttributeIsRefused) {
    Pair pair;
    for (const QpTransition& row : kQpTransitions) {
        if (row.trigger != QpTrigger::kModify || !row.services.contains(Service::kRc)) {
            continue;
        }
        QueuePairHandle qp = qp_in(pair, row.from);
        QpValues values = good_values(pair);
        values.current_state = static_cast<std::uint32_t>(row.from);
        for (const QpAttrName& attr : kQpAttrNames) {
            const QpAttrs known = row.required | row.optional | QpAttr::kState | kResizes;
            if (known.contains(attr.attr)) {
                continue;
            }
            // A device on InfiniBand paces nothing.
            EXPECT_EQ(qp.modify_to(row.to, row.required | attr.attr, values),
                      attr.attr == QpAttr::kRateLimit ? EOPNOTSUPP : EINVAL)
                << to_string(row.from) << " to " << to_string(row.to) << " with " << attr.name;
        }
        EXPECT_EQ(qp.state(), row.from);
        qp.destroy();
    }
}

TEST(ModifyQp, WhatIsNotModelledIsRefusedByName) {
    Pair pair;
    EXPECT_EQ(pair.a.qp.modify(QpAttrs::from_bits(1U << 30), {}), EOPNOTSUPP);
}

struct BadValue {
    std::string name;
    QpState from;
    QpState to;
    QpAttrs attrs;
    std::function<void(QpValues&)> spoil;
};

std::vector<BadValue> bad_values() {
    const auto init = [](std::string name, std::function<void(QpValues&)> spoil) {
        return BadValue{std::move(name), QpState::kReset, QpState::kInit, kInitAttrs,
                        std::move(spoil)};
    };
    const auto rtr = [](std::string name, std::function<void(QpValues&)> spoil) {
        return BadValue{std::move(name), QpState::kInit, QpState::kRtr, kRtrAttrs,
                        std::move(spoil)};
    };
    const auto rts = [](std::string name, std::function<void(QpValues&)> spoil) {
        return BadValue{std::move(name), QpState::kRtr, QpState::kRts, kRtsAttrs, std::move(spoil)};
    };
    return {
        init("port 0", [](QpValues& v) { v.port = 0; }),
        init("port 2", [](QpValues& v) { v.port = 2; }),
        init("pkey index 1", [](QpValues& v) { v.pkey_index = 1; }),
        init("access bit 30", [](QpValues& v) { v.access = 1U << 30; }),
        rtr("path mtu 0", [](QpValues& v) { v.path_mtu = 0; }),
        rtr("path mtu 6", [](QpValues& v) { v.path_mtu = 6; }),
        rtr("rq psn of 25 bits", [](QpValues& v) { v.rq_psn = 1U << 24; }),
        rtr("dest qpn of 25 bits", [](QpValues& v) { v.dest_qpn = 1U << 24; }),
        rtr("max dest rd atomic 17", [](QpValues& v) { v.max_dest_rd_atomic = 17; }),
        rtr("min rnr timer 32", [](QpValues& v) { v.min_rnr_timer = 32; }),
        rtr("path port 0", [](QpValues& v) { v.path.port = 0; }),
        rtr("service level 16", [](QpValues& v) { v.path.sl = 16; }),
        rtr("path bits 128", [](QpValues& v) { v.path.src_path_bits = 128; }),
        rtr("static rate 99", [](QpValues& v) { v.path.static_rate = 99; }),
        rts("sq psn of 25 bits", [](QpValues& v) { v.sq_psn = 1U << 24; }),
        rts("timeout 32", [](QpValues& v) { v.timeout = 32; }),
        rts("retry count 8", [](QpValues& v) { v.retry_count = 8; }),
        rts("rnr retry 8", [](QpValues& v) { v.rnr_retry = 8; }),
        rts("max rd atomic 17", [](QpValues& v) { v.max_rd_atomic = 17; }),
        {"path migration state 3", QpState::kRts, QpState::kRts, QpAttr::kPathMigState,
         [](QpValues& v) { v.path_mig_state = 3; }},
        {"another current state", QpState::kRts, QpState::kRts, QpAttr::kCurState,
         [](QpValues& v) { v.current_state = 4; }},
    };
}

// An entry of the table that holds nothing, as the Linux core answers (ib_query_gid).
TEST(ModifyQp, APathFromAnEmptyGidEntryIsNoData) {
    Pair pair;
    QueuePairHandle qp = qp_in(pair, QpState::kInit);
    QpValues values = good_values(pair);
    values.path.is_global = true;
    values.path.sgid_index = 200;
    const QpTransition* row =
        find_transition(QpState::kInit, QpState::kRtr, QpTrigger::kModify, Service::kRc);
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(qp.modify_to(QpState::kRtr, row->required, values), ENODATA);
    EXPECT_EQ(qp.state(), QpState::kInit);
}

TEST(ModifyQp, EachValueOutOfRangeIsRefusedAndChangesNothing) {
    Pair pair;
    for (const BadValue& bad : bad_values()) {
        SCOPED_TRACE(bad.name);
        QueuePairHandle qp = qp_in(pair, bad.from);
        QpValues values = good_values(pair);
        bad.spoil(values);
        EXPECT_EQ(qp.modify_to(bad.to, bad.attrs, values), EINVAL);
        EXPECT_EQ(qp.state(), bad.from);
        QpValues good = good_values(pair);
        good.current_state = static_cast<std::uint32_t>(bad.from);
        EXPECT_EQ(qp.modify_to(bad.to, bad.attrs, good), 0) << "the values spoil it, nothing else";
        qp.destroy();
    }
}

TEST(ModifyQp, AStateThatDoesNotExistIsRefused) {
    Pair pair;
    QpValues values;
    values.state = 7;
    EXPECT_EQ(pair.a.qp.modify(QpAttr::kState, values), EINVAL);
}

TEST(ModifyQp, ResetToErrIsThePersonalitysChoice) {
    for (const Personality* personality : kPersonalities) {
        Pair pair({.personality = std::string(personality->name)});
        QueuePairHandle qp = pair.a.make_qp();
        EXPECT_EQ(qp.modify_to(QpState::kErr), personality->reset_to_err_by_modify ? 0 : EINVAL);
    }
}

TEST(QueryQp, ShowsTheStateItIsInAndWhatWasSet) {
    Pair pair;
    for (const QpState state : kReachable) {
        QueuePairHandle qp = qp_in(pair, state);
        const QpValues values = qp.query().values;
        EXPECT_EQ(values.state, static_cast<std::uint32_t>(state));
        EXPECT_EQ(values.current_state, values.state);
        EXPECT_EQ(qp.query().capacity.send_requests, 64U);
        if (state == QpState::kRts || state == QpState::kSqd) {
            EXPECT_EQ(values.path_mtu, 3U);
            EXPECT_EQ(values.dest_qpn, pair.b.qp.qpn());
            EXPECT_EQ(values.sq_psn, pair.options().first_psn);
            EXPECT_EQ(values.rq_psn, pair.options().first_psn);
            EXPECT_EQ(values.timeout, 14);
            EXPECT_EQ(values.retry_count, 7);
            EXPECT_EQ(values.max_rd_atomic, 4);
            EXPECT_EQ(values.max_dest_rd_atomic, 4);
            EXPECT_EQ(values.min_rnr_timer, 12);
            EXPECT_EQ(values.path.dlid, pair.b.lid());
        }
        qp.destroy();
    }
}

TEST(QueryQp, ItsPsnsMoveWithTraffic) {
    Pair pair;
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 3 * 1024UL));
    pair.drive();
    EXPECT_EQ(pair.a.qp.query().values.sq_psn, pair.options().first_psn + 3);
    EXPECT_EQ(pair.b.qp.query().values.rq_psn, pair.options().first_psn + 3);
}

}  // namespace
}  // namespace simverbs::test
