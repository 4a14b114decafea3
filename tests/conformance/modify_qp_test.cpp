// ibv_modify_qp() over every (personality, service, from, to): each attribute that is missing, too
// much or of a bad value is refused, and ibv_query_qp() shows that nothing changed; what is needed
// is enough, and what is allowed is taken. The oracle is that of tests/model.
#include <cerrno>
#include <cstring>

#include "simverbs/model/qp_transitions.hpp"

#include "tests/conformance/every_service.hpp"
#include "tests/model/attr_words.hpp"
#include "tests/model/qp_oracle.hpp"

namespace conformance {
namespace {

using simverbs::QpAttr;
using simverbs::QpAttrName;
using simverbs::QpAttrs;
using simverbs::QpState;
using simverbs::oracle::attrs_named;
using simverbs::oracle::kStates;
using simverbs::oracle::state_named;

constexpr unsigned kUnknownBit = 1U << 30;
// Resizing and pacing have tests of their own; refused where no device has them.
constexpr QpAttrs kOfOtherTests = QpAttrs(QpAttr::kCap) | QpAttr::kRateLimit;
// Attributes that an XRC queue pair takes and ignores (Linux uverbs modify_qp_mask).
constexpr QpAttrs kIgnoredByInitiator = QpAttrs(QpAttr::kMaxDestRdAtomic) | QpAttr::kMinRnrTimer;
constexpr QpAttrs kIgnoredByTarget =
    QpAttrs(QpAttr::kMaxRdAtomic) | QpAttr::kRetryCnt | QpAttr::kRnrRetry;

struct Move {
    QpState from;
    QpState to;
    QpAttrs required;
    QpAttrs optional;
};

bool may_move(Service service, QpState from, QpState to) {
    for (const auto& matrix : simverbs::oracle::kModifyMatrices) {
        if (matrix.service == service) {
            return matrix.rows[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] == 'x';
        }
    }
    return false;
}

Move move_of(Service service, QpState from, QpState to) {
    if (from == QpState::kSqe && to == QpState::kRts) {
        for (const auto& row : simverbs::oracle::kSqeToRts) {
            if (row.service == service) {
                return {from, to, {}, attrs_named(row.optional)};
            }
        }
    }
    for (const auto& of_service : simverbs::oracle::kServiceAttrs) {
        for (const auto& move : of_service.moves) {
            if (of_service.service == service && state_named(move.from) == from &&
                state_named(move.to) == to) {
                return {from, to, attrs_named(move.required), attrs_named(move.optional)};
            }
        }
    }
    return {from, to, {}, {}};
}

struct Snapshot {
    ibv_qp_attr attr;
    ibv_qp_init_attr init;

    explicit Snapshot(ibv_qp* qp) {
        std::memset(this, 0, sizeof *this);
        EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
    }
    bool operator==(const Snapshot& other) const {
        // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): padding was zeroed, too
        return std::memcmp(this, &other, sizeof *this) == 0;
    }
};

// A value that is out of range, and what each personality answers: 0 where it cuts it
// (tests/conformance/probes_spec.md; ConnectX cuts retry counts to three bits).
struct BadValue {
    const char* name;
    QpAttr attr;
    void (*spoil)(ibv_qp_attr& attr);
    int spec = EINVAL;
    int connectx6 = EINVAL;
    int rxe = EINVAL;
    bool on_infiniband = true;
    bool on_ethernet = true;
};

const std::vector<BadValue>& bad_values() {
    using enum QpAttr;
    using A = ibv_qp_attr;
    static const std::vector<BadValue> kBad = {
        {"port 0", kPort, [](A& a) { a.port_num = 0; }},
        {"port 2", kPort, [](A& a) { a.port_num = 2; }},
        {"port 255", kPort, [](A& a) { a.port_num = 255; }},
        {"pkey index", kPkeyIndex, [](A& a) { a.pkey_index = 65535; }, EINVAL, EINVAL, 0},
        {"access", kAccessFlags, [](A& a) { a.qp_access_flags = 1U << 30; }, EINVAL, EINVAL, 0},
        {"mtu 0", kPathMtu, [](A& a) { a.path_mtu = ibv_mtu{}; }, EINVAL, EINVAL, 0},
        {"mtu 6", kPathMtu, [](A& a) { a.path_mtu = static_cast<ibv_mtu>(6); }},
        {"dest qpn", kDestQpn, [](A& a) { a.dest_qp_num = 1U << 24; }, EINVAL, EINVAL, 0},
        {"rq psn", kRqPsn, [](A& a) { a.rq_psn = 1U << 24; }, EINVAL, EINVAL, 0},
        {"sq psn", kSqPsn, [](A& a) { a.sq_psn = 1U << 24; }, EINVAL, EINVAL, 0},
        {"timeout", kTimeout, [](A& a) { a.timeout = 32; }},
        {"retry count", kRetryCnt, [](A& a) { a.retry_cnt = 8; }, EINVAL, 0, 0},
        {"rnr retry", kRnrRetry, [](A& a) { a.rnr_retry = 8; }, EINVAL, 0, 0},
        {"rnr timer", kMinRnrTimer, [](A& a) { a.min_rnr_timer = 32; }, EINVAL, EINVAL, 0},
        {"reads", kMaxRdAtomic, [](A& a) { a.max_rd_atomic = 255; }},
        {"dest reads", kMaxDestRdAtomic, [](A& a) { a.max_dest_rd_atomic = 255; }, EINVAL, EINVAL,
         0},
        {"path port 0", kAv, [](A& a) { a.ah_attr.port_num = 0; }},
        {"path port 2", kAv, [](A& a) { a.ah_attr.port_num = 2; }},
        {"service level", kAv, [](A& a) { a.ah_attr.sl = 16; }, EINVAL, EINVAL, 0},
        {"static rate", kAv, [](A& a) { a.ah_attr.static_rate = 255; }, EINVAL, EINVAL, 0},
        {"path bits", kAv, [](A& a) { a.ah_attr.src_path_bits = 128; }, EINVAL, EINVAL, EINVAL,
         true, false},
        {"flow label", kAv,
         [](A& a) {
             a.ah_attr.is_global = 1;
             a.ah_attr.grh.flow_label = 1U << 20;
         },
         0, 0, 0},
        {"empty gid entry", kAv,
         [](A& a) {
             a.ah_attr.is_global = 1;
             a.ah_attr.grh.sgid_index = 200;
         },
         ENODATA, ENODATA, ENODATA},
        {"no grh", kAv, [](A& a) { a.ah_attr.is_global = 0; }, EINVAL, EINVAL, EINVAL, false},
        {"no gid", kAv, [](A& a) { a.ah_attr.grh.dgid = {}; }, EINVAL, EINVAL, EINVAL, false},
        {"nobody's address", kAv, [](A& a) { a.ah_attr.grh.dgid.raw[15] = 99; }, ETIMEDOUT,
         ETIMEDOUT, ETIMEDOUT, false},
        {"alternate port", kAltPath, [](A& a) { a.alt_port_num = 0; }},
        {"alternate pkey", kAltPath, [](A& a) { a.alt_pkey_index = 65535; }},
        {"alternate timeout", kAltPath, [](A& a) { a.alt_timeout = 32; }},
        {"migration 3", kPathMigState,
         [](A& a) { a.path_mig_state = static_cast<ibv_mig_state>(3); }, EINVAL, EINVAL, 0},
        {"armed by itself", kPathMigState, [](A& a) { a.path_mig_state = IBV_MIG_ARMED; }, EINVAL,
         EINVAL, 0},
        {"current state", kCurState, [](A& a) { a.cur_qp_state = IBV_QPS_ERR; }},
        {"current state 7", kCurState, [](A& a) { a.cur_qp_state = static_cast<ibv_qp_state>(7); }},
    };
    return kBad;
}

class ModifyQp : public verbs_test::TwoHosts, public testing::WithParamInterface<Subject> {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        ASSERT_EQ(simverbs_set_personality(GetParam().personality), 0);
        ASSERT_EQ(simverbs_set_topology(ethernet() ? "eth-star:2" : "star:2"), 0);
        a = std::make_unique<End>(0, Connection{});
        b = std::make_unique<End>(1, Connection{});
        if (service() == Service::kXrcIni || service() == Service::kXrcTgt) {
            xrc_ = std::make_unique<XrcDomain>(*a);
        }
    }
    void TearDown() override {
        xrc_.reset();
        TwoHosts::TearDown();
    }

    [[nodiscard]] Service service() const { return GetParam().service; }
    [[nodiscard]] bool ethernet() const { return GetParam().ethernet; }
    [[nodiscard]] bool as(const char* personality) const {
        return std::string_view(GetParam().personality) == personality;
    }
    [[nodiscard]] bool exists(QpState from, QpState to) const {
        // RESET to ERR is the IBA's; the Linux core refuses it.
        return may_move(service(), from, to) &&
               (as("spec") || from != QpState::kReset || to != QpState::kErr);
    }
    // Services that never enter SQE; rxe enters ERR instead with all of them.
    [[nodiscard]] bool is_reachable(QpState state) const {
        const bool has_sqe = service() == Service::kUc || service() == Service::kUd ||
                             service() == Service::kRawPacket;
        return state != QpState::kSqe || (has_sqe && !as("rxe"));
    }
    [[nodiscard]] Move move(QpState from, QpState to) const {
        Move found = move_of(service(), from, to);
        if (ethernet()) {
            found.optional = found.optional.without(QpAttr::kAltPath);  // migration is InfiniBand's
        }
        const bool port_fixed = service() == Service::kUc && from == QpState::kSqd && from == to;
        if (port_fixed && !as("spec")) {
            found.optional = found.optional.without(QpAttr::kAv);  // Linux adds PORT to it
        }
        return found;
    }
    [[nodiscard]] QpAttrs ignored() const {
        return service() == Service::kXrcIni   ? kIgnoredByInitiator
               : service() == Service::kXrcTgt ? kIgnoredByTarget
                                               : QpAttrs();
    }

    // Good for every attribute, towards the other host.
    ibv_qp_attr values(QpState from, QpState to) {
        const Connection with;
        ibv_qp_attr all = rtr_attr(*b, with);
        const ibv_qp_attr init = init_attr(with);
        const ibv_qp_attr rts = rts_attr(with);
        all.port_num = init.port_num;
        all.qp_access_flags = init.qp_access_flags;
        all.qkey = init.qkey;
        all.timeout = rts.timeout;
        all.retry_cnt = rts.retry_cnt;
        all.rnr_retry = rts.rnr_retry;
        all.sq_psn = rts.sq_psn;
        all.max_rd_atomic = rts.max_rd_atomic;
        all.alt_ah_attr = all.ah_attr;
        all.alt_port_num = 1;
        all.alt_timeout = 10;
        all.en_sqd_async_notify = 1;
        all.qp_state = static_cast<ibv_qp_state>(to);
        all.cur_qp_state = static_cast<ibv_qp_state>(from);
        return all;
    }
    int modify(ibv_qp* qp, const Move& move, QpAttrs given) {
        ibv_qp_attr attr = values(move.from, move.to);
        return ibv_modify_qp(qp, &attr, static_cast<int>((given | QpAttr::kState).bits));
    }
    void step(ibv_qp* qp, QpState from, QpState to) {
        const Move next = move(from, to);
        ASSERT_EQ(modify(qp, next, next.required), 0) << to_string(from) << " to " << to_string(to);
    }
    ibv_qp* qp_in(QpState state) {
        ibv_qp* qp = make_qp(*a, service(), xrc_.get());
        EXPECT_NE(qp, nullptr);
        if (state == QpState::kReset || qp == nullptr) {
            return qp;
        }
        step(qp, QpState::kReset, QpState::kInit);
        if (state == QpState::kErr) {
            step(qp, QpState::kInit, QpState::kErr);
        }
        if (state == QpState::kInit || state == QpState::kErr) {
            return qp;
        }
        step(qp, QpState::kInit, QpState::kRtr);
        if (state == QpState::kRtr) {
            return qp;
        }
        step(qp, QpState::kRtr, QpState::kRts);
        if (state == QpState::kSqd) {
            step(qp, QpState::kRts, QpState::kSqd);
        }
        if (state == QpState::kSqe) {
            fail_a_send(qp);
        }
        EXPECT_EQ(state_of(qp), state);
        return qp;
    }
    void fail_a_send(ibv_qp* qp) {
        ibv_qp_attr attr = values(QpState::kRts, QpState::kRts);
        ibv_ah* ah = service() == Service::kUd ? ibv_create_ah(a->pd, &attr.ah_attr) : nullptr;
        ibv_sge segment{a->address(0), 64, 0xBAD};
        ibv_send_wr wr{};
        wr.sg_list = &segment;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_SEND;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.wr.ud.ah = ah;
        wr.wr.ud.remote_qpn = b->qp->qp_num;
        ibv_send_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
        EXPECT_EQ(a->wait().status, IBV_WC_LOC_PROT_ERR);
        if (ah != nullptr) {
            EXPECT_EQ(ibv_destroy_ah(ah), 0);
        }
    }
    static QpState state_of(ibv_qp* qp) { return static_cast<QpState>(Snapshot(qp).attr.qp_state); }

    // One queue pair for all that is refused; another for what is not.
    void expect_refusals(const Move& move);
    void expect_bad_values_are_answered(const Move& move);
    void expect_taken(const Move& move);

    std::unique_ptr<XrcDomain> xrc_;
};

void ModifyQp::expect_refusals(const Move& move) {
    ibv_qp* qp = qp_in(move.from);
    const Snapshot before(qp);
    const QpAttrs known = move.required | move.optional | QpAttr::kState;
    for (const QpAttrName& attr : simverbs::kQpAttrNames) {
        SCOPED_TRACE(attr.name);
        if (move.required.contains(attr.attr)) {
            EXPECT_EQ(modify(qp, move, move.required.without(attr.attr)), EINVAL) << "missing";
        } else if (kOfOtherTests.contains(attr.attr)) {
            continue;
        } else if (!known.contains(attr.attr) && !ignored().contains(attr.attr)) {
            EXPECT_EQ(modify(qp, move, move.required | attr.attr), EINVAL) << "superfluous";
        }
        EXPECT_TRUE(Snapshot(qp) == before) << "changed";
    }
    EXPECT_NE(modify(qp, move, move.required | QpAttrs::from_bits(kUnknownBit)), 0);
    EXPECT_TRUE(Snapshot(qp) == before) << "changed";
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

void ModifyQp::expect_bad_values_are_answered(const Move& move) {
    const QpAttrs taken = move.required | move.optional;
    for (const BadValue& bad : bad_values()) {
        if (!taken.contains(bad.attr) || !(ethernet() ? bad.on_ethernet : bad.on_infiniband)) {
            continue;
        }
        SCOPED_TRACE(bad.name);
        const int expected = as("spec") ? bad.spec : as("connectx6") ? bad.connectx6 : bad.rxe;
        ibv_qp* qp = qp_in(move.from);
        const Snapshot before(qp);
        ibv_qp_attr attr = values(move.from, move.to);
        bad.spoil(attr);
        const auto mask = static_cast<int>((move.required | bad.attr | QpAttr::kState).bits);
        EXPECT_EQ(ibv_modify_qp(qp, &attr, mask), expected);
        if (expected != 0) {
            EXPECT_TRUE(Snapshot(qp) == before) << "changed";
            EXPECT_EQ(modify(qp, move, move.required), 0) << "nothing but the value was wrong";
        }
        EXPECT_EQ(state_of(qp), move.to);
        EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
}

void ModifyQp::expect_taken(const Move& move) {
    const QpAttrs most = move.required | move.optional | ignored();
    for (const QpAttrs given : {move.required, most.without(kOfOtherTests)}) {
        ibv_qp* qp = qp_in(move.from);
        EXPECT_EQ(modify(qp, move, given), 0);
        EXPECT_EQ(state_of(qp), move.to);
        EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
}

TEST_P(ModifyQp, FollowsTheOracleForEveryPairOfStates) {
    for (const QpState from : kStates) {
        if (!is_reachable(from)) {
            continue;
        }
        for (const QpState to : kStates) {
            SCOPED_TRACE(simverbs::oracle::edge(service(), from, to));
            if (exists(from, to)) {
                expect_refusals(move(from, to));
                expect_bad_values_are_answered(move(from, to));
                expect_taken(move(from, to));
                continue;
            }
            ibv_qp* qp = qp_in(from);
            const Snapshot before(qp);
            EXPECT_EQ(modify(qp, {from, to, {}, {}}, {}), EINVAL);
            for (const QpAttrName& attr : simverbs::kQpAttrNames) {
                if (!kOfOtherTests.contains(attr.attr)) {
                    EXPECT_EQ(modify(qp, {from, to, {}, {}}, attr.attr), EINVAL) << attr.name;
                }
            }
            EXPECT_TRUE(Snapshot(qp) == before) << "changed";
            EXPECT_EQ(ibv_destroy_qp(qp), 0);
        }
    }
}

TEST_P(ModifyQp, AStateThatDoesNotExistIsRefused) {
    for (const QpState from : kStates) {
        if (!is_reachable(from)) {
            continue;
        }
        ibv_qp* qp = qp_in(from);
        const Snapshot before(qp);
        for (const unsigned state : {7U, 100U}) {
            ibv_qp_attr attr = values(from, from);
            attr.qp_state = static_cast<ibv_qp_state>(state);
            EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL) << to_string(from);
            EXPECT_TRUE(Snapshot(qp) == before) << "changed";
        }
        EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
}

// Nobody asks for this move: the device finds a fault in the queue pair.
TEST_P(ModifyQp, AFatalErrorLeadsToErrFromEveryStateThatWorks) {
    for (const QpState from : kStates) {
        if (from == QpState::kReset || from == QpState::kErr || !is_reachable(from)) {
            continue;
        }
        SCOPED_TRACE(to_string(from));
        ibv_qp* qp = qp_in(from);
        simverbs_fault fault;
        simverbs_fault_init(&fault);
        fault.action = SIMVERBS_FAULT_QP_ERROR;
        fault.target.node = "h0";
        fault.target.qp_num = qp->qp_num;
        ASSERT_EQ(simverbs_inject(&fault, nullptr), 0) << simverbs_last_error();
        EXPECT_EQ(state_of(qp), QpState::kErr);
        EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Every, ModifyQp, testing::ValuesIn(every_subject()),
                         [](const auto& row) { return name_of(row.param); });

// An attribute that the header gains has to be looked at.
TEST(ModifyQp, TheOracleKnowsEachAttributeOfTheHeader) {
    QpAttrs all;
    for (const QpAttrName& attr : simverbs::kQpAttrNames) {
        all = all | attr.attr;
    }
    EXPECT_TRUE(all.contains(QpAttrs::from_bits((IBV_QP_DEST_QPN << 1) - 1)));
    EXPECT_TRUE(all.contains(QpAttrs::from_bits(IBV_QP_RATE_LIMIT)));
}

}  // namespace
}  // namespace conformance
