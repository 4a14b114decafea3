// The tables of the communication manager against oracles: what each handler and each command of
// Linux (drivers/infiniband/core/cm.c, as of 2025) does in each state, and the numbers of its
// ib_cm.h.
#include "simverbs/model/cm_transitions.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "simverbs/model/cm_codes.hpp"

namespace simverbs {
namespace {

// The cases of one handler: the states in which it acts, and the state that it leaves.
struct Case {
    std::string_view trigger;
    std::vector<std::string_view> from;
    std::string_view to;
};

// A state that a handler acts in without leaving it stands alone, as its own `to`.
const std::vector<Case>& connection_cases() {
    static const std::vector<Case> kCases = {
        {"send REQ", {"IDLE"}, "REQ_SENT"},
        {"send MRA", {"REQ_RCVD"}, "MRA_REQ_SENT"},
        {"send MRA", {"REP_RCVD"}, "MRA_REP_SENT"},
        {"send REP", {"REQ_RCVD", "MRA_REQ_SENT"}, "REP_SENT"},
        {"send RTU", {"REP_RCVD", "MRA_REP_SENT"}, "ESTABLISHED"},
        {"send REJ",
         {"REQ_SENT", "MRA_REQ_RCVD", "REQ_RCVD", "MRA_REQ_SENT", "REP_RCVD", "MRA_REP_SENT"},
         "IDLE"},
        {"send REJ", {"REP_SENT", "MRA_REP_RCVD"}, "TIMEWAIT"},
        {"send DREQ", {"ESTABLISHED"}, "DREQ_SENT"},
        {"send DREP", {"DREQ_RCVD"}, "TIMEWAIT"},
        {"establish", {"REP_SENT", "MRA_REP_RCVD"}, "ESTABLISHED"},
        {"REQ", {"IDLE"}, "REQ_RCVD"},
        {"REQ again", {"MRA_REQ_SENT"}, "MRA_REQ_SENT"},
        {"REQ again", {"TIMEWAIT"}, "TIMEWAIT"},
        {"MRA of REQ", {"REQ_SENT"}, "MRA_REQ_RCVD"},
        {"MRA of REP", {"REP_SENT"}, "MRA_REP_RCVD"},
        {"REP", {"REQ_SENT", "MRA_REQ_RCVD"}, "REP_RCVD"},
        {"REP", {"ESTABLISHED"}, "ESTABLISHED"},
        {"REP", {"MRA_REP_SENT"}, "MRA_REP_SENT"},
        {"RTU", {"REP_SENT", "MRA_REP_RCVD"}, "ESTABLISHED"},
        {"REJ",
         {"REQ_SENT", "MRA_REQ_RCVD", "REP_SENT", "MRA_REP_RCVD", "REQ_RCVD", "MRA_REQ_SENT"},
         "IDLE"},
        {"REJ", {"DREQ_SENT", "REP_RCVD", "MRA_REP_SENT", "ESTABLISHED"}, "TIMEWAIT"},
        {"REJ stale",
         {"REQ_SENT", "MRA_REQ_RCVD", "REP_SENT", "MRA_REP_RCVD", "REQ_RCVD", "MRA_REQ_SENT",
          "DREQ_SENT", "REP_RCVD", "MRA_REP_SENT", "ESTABLISHED"},
         "TIMEWAIT"},
        {"DREQ", {"REP_SENT", "DREQ_SENT", "MRA_REP_RCVD", "ESTABLISHED"}, "DREQ_RCVD"},
        {"DREQ", {"TIMEWAIT"}, "TIMEWAIT"},
        {"DREP", {"DREQ_SENT", "DREQ_RCVD"}, "TIMEWAIT"},
        {"timeout", {"REQ_SENT", "MRA_REQ_RCVD", "REP_SENT", "MRA_REP_RCVD"}, "IDLE"},
        {"timeout", {"DREQ_SENT"}, "TIMEWAIT"},
        {"end of timewait", {"TIMEWAIT"}, "IDLE"},
        // Listeners and resolutions.
        {"listen", {"IDLE"}, "LISTEN"},
        {"stop listening", {"LISTEN"}, "IDLE"},
        {"REQ", {"LISTEN"}, "LISTEN"},
        {"SIDR_REQ", {"LISTEN"}, "LISTEN"},
        {"send SIDR_REQ", {"IDLE"}, "SIDR_REQ_SENT"},
        {"SIDR_REQ", {"IDLE"}, "SIDR_REQ_RCVD"},
        {"send SIDR_REP", {"SIDR_REQ_RCVD"}, "IDLE"},
        {"SIDR_REP", {"SIDR_REQ_SENT"}, "IDLE"},
        {"timeout", {"SIDR_REQ_SENT"}, "IDLE"},
    };
    return kCases;
}

// A LAP that nobody answers is given up: IBA, since Linux says nothing of it.
const std::vector<Case>& path_cases() {
    static const std::vector<Case> kCases = {
        {"send LAP", {"LAP_UNINIT", "LAP_IDLE"}, "LAP_SENT"},
        {"send MRA", {"LAP_RCVD"}, "MRA_LAP_SENT"},
        {"send APR", {"LAP_RCVD", "MRA_LAP_SENT"}, "LAP_IDLE"},
        {"path migrated", {"LAP_UNINIT", "LAP_IDLE"}, "LAP_IDLE"},
        {"LAP", {"LAP_UNINIT", "LAP_IDLE"}, "LAP_RCVD"},
        {"LAP", {"MRA_LAP_SENT"}, "MRA_LAP_SENT"},
        {"MRA", {"LAP_SENT"}, "MRA_LAP_RCVD"},
        {"APR", {"LAP_SENT", "MRA_LAP_RCVD"}, "LAP_IDLE"},
        {"timeout", {"LAP_SENT", "MRA_LAP_RCVD"}, "LAP_IDLE"},
    };
    return kCases;
}

template <class State, class Trigger>
void expect_moves(const std::vector<Case>& cases, std::span<const std::string_view> states,
                  std::span<const std::string_view> triggers) {
    std::map<std::pair<std::string_view, std::string_view>, std::string_view> oracle;
    for (const Case& each : cases) {
        ASSERT_TRUE(std::ranges::count(triggers, each.trigger) == 1) << each.trigger;
        for (const std::string_view from : each.from) {
            ASSERT_TRUE(std::ranges::count(states, from) == 1) << from;
            ASSERT_TRUE(oracle.emplace(std::pair(from, each.trigger), each.to).second)
                << from << " on " << each.trigger << " twice";
        }
    }
    for (std::size_t from = 0; from < states.size(); ++from) {
        for (std::size_t trigger = 0; trigger < triggers.size(); ++trigger) {
            const std::optional<State> to =
                next_state(static_cast<State>(from), static_cast<Trigger>(trigger));
            const auto found = oracle.find(std::pair(states[from], triggers[trigger]));
            EXPECT_EQ(to ? to_string(*to) : std::string_view("-"),
                      found == oracle.end() ? std::string_view("-") : found->second)
                << states[from] << " on " << triggers[trigger];
        }
    }
}

TEST(CmTransitions, EachTriggerInEachStateIsAsInTheOracle) {
    expect_moves<CmState, CmTrigger>(connection_cases(), kCmStateNames, kCmTriggerNames);
}

TEST(CmTransitions, TheLoadingOfAPathIsAsInTheOracle) {
    expect_moves<LapState, LapTrigger>(path_cases(), kLapStateNames, kLapTriggerNames);
}

// States that the rows of one side lead to, from IDLE.
std::set<CmState> reached(CmSides side) {
    std::set<CmState> states{CmState::kIdle};
    for (std::size_t before = 0; before != states.size();) {
        before = states.size();
        for (const CmTransition& row : kCmTransitions) {
            if (row.sides.intersects(side) && states.contains(row.from)) {
                states.insert(row.to);
            }
        }
    }
    return states;
}

TEST(CmTransitions, EachSideReachesItsStates) {
    using enum CmState;
    const std::set<CmState> end{kIdle, kEstablished, kDreqSent, kDreqReceived, kTimewait};
    std::set<CmState> active{kReqSent, kMraReqReceived, kRepReceived, kMraRepSent};
    active.insert(end.begin(), end.end());
    std::set<CmState> passive{kListening, kReqReceived, kMraReqSent, kRepSent, kMraRepReceived};
    passive.insert(end.begin(), end.end());
    EXPECT_EQ(reached(CmSide::kActive), active);
    EXPECT_EQ(reached(CmSide::kPassive), passive);
    EXPECT_EQ(reached(CmSide::kSidr), std::set({kIdle, kSidrReqSent, kSidrReqReceived}));
}

TEST(CmTransitions, EachRowStartsInAStateThatItsSidesReach) {
    for (const CmTransition& row : kCmTransitions) {
        for (const CmSide side : kCmSides) {
            if (row.sides.contains(side)) {
                EXPECT_TRUE(reached(side).contains(row.from))
                    << to_string(row.from) << " on " << to_string(row.trigger);
            }
        }
    }
}

TEST(CmCodes, MessagesHaveTheSizesOfLinux) {
    struct Row {
        CmMessage message;
        int attribute;
        int private_bytes;
        int info_bytes;
    };
    using enum CmMessage;
    constexpr auto kOracle = std::to_array<Row>({{kReq, 16, 92, 0},
                                                 {kMra, 17, 222, 0},
                                                 {kRej, 18, 148, 72},
                                                 {kRep, 19, 196, 0},
                                                 {kRtu, 20, 224, 0},
                                                 {kDreq, 21, 220, 0},
                                                 {kDrep, 22, 224, 0},
                                                 {kSidrReq, 23, 216, 0},
                                                 {kSidrRep, 24, 136, 72},
                                                 {kLap, 25, 168, 0},
                                                 {kApr, 26, 148, 72}});
    ASSERT_EQ(kOracle.size(), kCmMessages.size());
    for (const Row& row : kOracle) {
        EXPECT_EQ(properties(row.message).attribute_id, row.attribute) << to_string(row.message);
        EXPECT_EQ(properties(row.message).private_bytes, row.private_bytes);
        EXPECT_EQ(properties(row.message).info_bytes, row.info_bytes);
    }
}

// Reason, and a word of its name in ibcm_rej_reason_strs.
TEST(CmCodes, ReasonsOfARejAreThoseOfLinux) {
    const std::vector<std::pair<int, std::string_view>> oracle = {{1, "QP"},
                                                                  {2, "EEC"},
                                                                  {3, "resources"},
                                                                  {4, "timeout"},
                                                                  {5, "unsupp"},
                                                                  {6, "ID"},
                                                                  {7, "instance"},
                                                                  {8, "service ID"},
                                                                  {9, "trans"},
                                                                  {10, "stale"},
                                                                  {11, "RDC"},
                                                                  {12, "GID"},
                                                                  {13, "LID"},
                                                                  {14, "SL"},
                                                                  {15, "traffic"},
                                                                  {16, "hop"},
                                                                  {17, "rate"},
                                                                  {18, "alternate GID"},
                                                                  {19, "alternate LID"},
                                                                  {20, "alternate SL"},
                                                                  {21, "alternate traffic"},
                                                                  {22, "alternate hop"},
                                                                  {23, "alternate packet"},
                                                                  {24, "CM redirect"},
                                                                  {25, "port redirect"},
                                                                  {26, "MTU"},
                                                                  {27, "responder resources"},
                                                                  {28, "consumer"},
                                                                  {29, "RNR"},
                                                                  {30, "duplicate"},
                                                                  {31, "class version"},
                                                                  {32, "flow"},
                                                                  {33, "alternate flow"},
                                                                  {35, "vendor"}};
    ASSERT_EQ(oracle.size(), kRejectReasonNames.size());
    for (const auto& [reason, word] : oracle) {
        EXPECT_NE(to_string(static_cast<RejectReason>(reason)).find(word), std::string_view::npos)
            << reason;
    }
    for (const int none : {0, 34, 36, 0xFFFF}) {
        EXPECT_EQ(to_string(static_cast<RejectReason>(none)), "reserved");
    }
}

TEST(CmCodes, StatusesAreThoseOfLinux) {
    const std::vector<std::string_view> sidr = {"valid", "service ID", "rejected",
                                                "no QP", "redirect",   "version"};
    const std::vector<std::string_view> apr = {"loaded",        "communication ID",
                                               "not supported", "rejected",
                                               "redirect",      "current",
                                               "QPN",           "LID",
                                               "GID",           "flow label",
                                               "traffic class", "hop limit",
                                               "packet rate",   "SL"};
    ASSERT_EQ(sidr.size(), kSidrStatusNames.size());
    ASSERT_EQ(apr.size(), kAprStatusNames.size());
    for (std::size_t i = 0; i < sidr.size(); ++i) {
        EXPECT_NE(to_string(static_cast<SidrStatus>(i)).find(sidr[i]), std::string_view::npos);
    }
    for (std::size_t i = 0; i < apr.size(); ++i) {
        EXPECT_NE(to_string(static_cast<AprStatus>(i)).find(apr[i]), std::string_view::npos) << i;
    }
    EXPECT_EQ(to_string(static_cast<SidrStatus>(6)), "reserved");
    EXPECT_EQ(to_string(static_cast<AprStatus>(14)), "reserved");
}

}  // namespace
}  // namespace simverbs
