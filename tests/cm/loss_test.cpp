// Each message of connecting and disconnecting, lost once, twice and for ever, repeated and late:
// what both users learn, and when. Times follow from the codes of request_parameters().
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cm/cm_pair.hpp"

namespace simverbs::cm {
namespace {

using test::CmPair;
using test::Fate;
using testing::ElementsAre;
using testing::ElementsAreArray;
using namespace fabric::literals;
using Names = std::vector<std::string>;

constexpr fabric::SimDuration kRequestTime = 4'429'185'024_ns;
constexpr fabric::SimDuration kReplyTime = 4'294'967'296_ns;
constexpr fabric::SimDuration kTimewait = 134'217'728_ns;
constexpr fabric::SimTime kStart = fabric::kSimStart;
constexpr int kForEver = 1000;

test::Judge loses(CmMessage lost, int count) {
    return [=](int, CmMessage message, int nth) {
        return Fate{.copies = message == lost && nth < count ? 0 : 1};
    };
}

// The outcome of a message lost `count` times. `end` is the time of the last event.
struct Outcome {
    CmMessage lost;
    int count;
    Names active;
    Names passive;
    CmState active_state;
    CmState passive_state;
    fabric::SimDuration end;
};

const Names kAccepted{"REQ_RECEIVED", "RTU_RECEIVED"};

TEST(CmLoss, WhileConnecting) {
    using enum CmState;
    using enum CmMessage;
    const std::vector<Outcome> outcomes = {
        {kReq, 1, {"REP_RECEIVED"}, kAccepted, kEstablished, kEstablished, kRequestTime + 15_us},
        {kReq,
         2,
         {"REP_RECEIVED"},
         kAccepted,
         kEstablished,
         kEstablished,
         2 * kRequestTime + 15_us},
        {kReq, kForEver, {"REQ_ERROR"}, {}, kIdle, kIdle, 4 * kRequestTime},
        {kRep, 1, {"REP_RECEIVED"}, kAccepted, kEstablished, kEstablished, kReplyTime + 15_us},
        {kRep, 2, {"REP_RECEIVED"}, kAccepted, kEstablished, kEstablished, 2 * kReplyTime + 15_us},
        {kRep,
         kForEver,
         {"REQ_ERROR"},
         {"REQ_RECEIVED", "REP_ERROR"},
         kIdle,
         kIdle,
         4 * kRequestTime},
        {kRtu, 1, {"REP_RECEIVED"}, kAccepted, kEstablished, kEstablished, kReplyTime + 15_us},
        {kRtu, 2, {"REP_RECEIVED"}, kAccepted, kEstablished, kEstablished, 2 * kReplyTime + 15_us},
        {kRtu,
         kForEver,
         {"REP_RECEIVED"},
         {"REQ_RECEIVED", "REP_ERROR"},
         kEstablished,
         kIdle,
         4 * kReplyTime + 5_us},
    };
    for (const Outcome& outcome : outcomes) {
        SCOPED_TRACE(std::string(to_string(outcome.lost)) + " lost " +
                     std::to_string(outcome.count));
        CmPair pair;
        pair.carrier.judge = loses(outcome.lost, outcome.count);
        pair.connect();
        EXPECT_THAT(pair.active.events(), ElementsAreArray(outcome.active));
        EXPECT_THAT(pair.passive.events(), ElementsAreArray(outcome.passive));
        EXPECT_EQ(pair.active_state(), outcome.active_state);
        EXPECT_EQ(pair.passive_state(), outcome.passive_state);
        EXPECT_EQ(pair.loop.now(), kStart + outcome.end);
    }
}

TEST(CmLoss, WhileDisconnecting) {
    using enum CmMessage;
    const Names disconnected{"DREP_RECEIVED", "TIMEWAIT_EXIT"};
    const Names given_up{"DREQ_ERROR", "TIMEWAIT_EXIT"};
    const Names asked{"DREQ_RECEIVED", "TIMEWAIT_EXIT"};
    const std::vector<Outcome> outcomes = {
        {kDreq, 1, disconnected, asked, {}, {}, kRequestTime + 10_us + kTimewait},
        {kDreq, 2, disconnected, asked, {}, {}, 2 * kRequestTime + 10_us + kTimewait},
        {kDreq, kForEver, given_up, {}, {}, CmState::kEstablished, 4 * kRequestTime + kTimewait},
        // The passive side is out of timewait when the DREQ comes again, and answers all the same.
        {kDrep, 1, disconnected, asked, {}, {}, kRequestTime + 10_us + kTimewait},
        {kDrep, 2, disconnected, asked, {}, {}, 2 * kRequestTime + 10_us + kTimewait},
        {kDrep, kForEver, given_up, asked, {}, {}, 4 * kRequestTime + kTimewait},
    };
    for (const Outcome& outcome : outcomes) {
        SCOPED_TRACE(std::string(to_string(outcome.lost)) + " lost " +
                     std::to_string(outcome.count));
        CmPair pair;
        pair.connect();
        pair.active.seen.clear();
        pair.passive.seen.clear();
        pair.carrier.judge = loses(outcome.lost, outcome.count);
        const fabric::SimTime begin = pair.loop.now();
        pair.disconnect();
        EXPECT_THAT(pair.active.events(), ElementsAreArray(outcome.active));
        EXPECT_THAT(pair.passive.events(), ElementsAreArray(outcome.passive));
        EXPECT_EQ(pair.active_state(), CmState::kIdle);
        EXPECT_EQ(pair.passive_state(), outcome.passive_state);
        EXPECT_EQ(pair.loop.now(), begin + outcome.end);
    }
}

TEST(CmLoss, AMessageIsSentOnceAndAsOftenAgainAsTheRequestSays) {
    for (const int retries : {0, 1, 15}) {
        CmPair pair;
        pair.carrier.judge = loses(CmMessage::kReq, kForEver);
        ReqParameters parameters = test::request_parameters();
        parameters.max_cm_retries = static_cast<std::uint8_t>(retries);
        pair.connect(parameters);
        EXPECT_EQ(pair.carrier.count(0, CmMessage::kReq), retries + 1);
        EXPECT_EQ(pair.loop.now(), kStart + (retries + 1) * kRequestTime);
        for (const test::Sent& sent : pair.carrier.sent) {
            EXPECT_EQ(sent.message, pair.carrier.sent.front().message);
        }
    }
}

TEST(CmLoss, TheReplyIsRepeatedAsOftenAsTheRequestSays) {
    CmPair pair;
    pair.carrier.judge = loses(CmMessage::kRep, kForEver);
    ReqParameters parameters = test::request_parameters();
    parameters.max_cm_retries = 1;
    pair.connect(parameters);
    EXPECT_EQ(pair.carrier.count(1, CmMessage::kRep), 2);
    EXPECT_EQ(pair.passive.last(EventType::kRepError)->time, kStart + 5_us + 2 * kReplyTime);
}

TEST(CmLoss, MessagesThatComeTwiceChangeNothing) {
    for (const CmMessage twice :
         {CmMessage::kReq, CmMessage::kRep, CmMessage::kRtu, CmMessage::kDreq, CmMessage::kDrep}) {
        SCOPED_TRACE(to_string(twice));
        CmPair pair;
        pair.carrier.judge = [twice](int, CmMessage message, int) {
            return Fate{.copies = message == twice ? 2 : 1};
        };
        pair.connect();
        EXPECT_EQ(pair.loop.now(), kStart + 15_us);
        pair.disconnect();
        EXPECT_THAT(pair.active.events(),
                    ElementsAre("REP_RECEIVED", "DREP_RECEIVED", "TIMEWAIT_EXIT"));
        EXPECT_THAT(pair.passive.events(),
                    ElementsAre("REQ_RECEIVED", "RTU_RECEIVED", "DREQ_RECEIVED", "TIMEWAIT_EXIT"));
        EXPECT_EQ(pair.carrier.count(0, CmMessage::kRtu), twice == CmMessage::kRep ? 2 : 1);
        EXPECT_EQ(pair.carrier.count(1, CmMessage::kDrep), twice == CmMessage::kDreq ? 2 : 1);
        EXPECT_EQ(pair.carrier.count(1, CmMessage::kRep), 1);
    }
}

TEST(CmLoss, ARequestThatComesAgainMeetsTheStateOfItsConnection) {
    CmPair pair;
    pair.connect();
    const Datagram request = build(pair.carrier.sent.front().message);
    pair.carrier.sent.clear();
    pair.passive.cm.datagram_arrived(request, test::address_of(0));
    EXPECT_TRUE(pair.carrier.sent.empty()) << "established";
    pair.active.connection().send_dreq({});
    pair.loop.run_until(pair.loop.now() + 10_us);
    ASSERT_EQ(pair.passive_state(), CmState::kTimewait);
    pair.carrier.sent.clear();
    pair.passive.cm.datagram_arrived(request, test::address_of(0));
    ASSERT_EQ(pair.carrier.sent.size(), 1U);
    EXPECT_EQ(std::get<Rej>(pair.carrier.sent[0].message).reason, RejectReason::kStaleConnection);
    EXPECT_EQ(pair.passive.cm.size(), 2U) << "no second connection";
}

// The side that was connected to waits for less than timewait lasts.
TEST(CmLoss, ADisconnectionThatComesAgainInTimewaitIsAnsweredAgain) {
    CmPair pair;
    ReqParameters parameters = test::request_parameters();
    parameters.local_cm_response_timeout = 10;  // 4.194304 ms
    pair.connect(parameters);
    pair.carrier.judge = loses(CmMessage::kDrep, 2);
    const fabric::SimTime begin = pair.loop.now();
    ASSERT_EQ(pair.passive.connection().send_dreq({}), 0);
    pair.run();
    EXPECT_EQ(pair.carrier.count(0, CmMessage::kDrep), 3);
    EXPECT_EQ(pair.passive.last(EventType::kDrepReceived)->time, begin + 2 * 4'194'304_ns + 10_us);
    EXPECT_EQ(pair.active.last(EventType::kTimewaitExit)->time, begin + 5_us + kTimewait)
        << "timewait does not begin anew";
}

// The peer asks in a transaction of its own, and nothing else is sent than a DREP.
TEST(CmLoss, ADisconnectionInTimewaitIsAnsweredInItsTransaction) {
    for (const int asked : {0, 1}) {  // who had asked before
        CmPair pair;
        pair.connect();
        (asked == 0 ? pair.active : pair.passive).connection().send_dreq({});
        pair.loop.run_until(pair.loop.now() + 10_us);
        Connection& active = pair.active.connection();
        ASSERT_EQ(active.state(), CmState::kTimewait);
        pair.active.cm.datagram_arrived(build(Dreq{.transaction_id = 99,
                                                   .local_comm_id = active.remote().comm_id,
                                                   .remote_comm_id = active.local_comm_id(),
                                                   .remote_qpn = test::kActiveQpn}),
                                        test::address_of(1));
        const Drep* const reply = std::get_if<Drep>(&pair.carrier.sent.back().message);
        ASSERT_NE(reply, nullptr) << asked;
        EXPECT_EQ(reply->transaction_id, 99U);
    }
}

constexpr fabric::SimDuration kMraTime = 17'179'869'184_ns + kTimewait;  // codes 22 and 15

TEST(CmLoss, AnAcknowledgedRequestWaitsLonger) {
    CmPair pair;
    pair.passive.answers = false;
    pair.passive.on_event = [&pair](const CmEvent& event) {
        if (event.type == EventType::kReqReceived) {
            EXPECT_EQ(pair.passive.connection().send_mra(22, {9}, MraMoment::kNow), 0);
        }
    };
    pair.connect();
    EXPECT_THAT(pair.active.events(), ElementsAre("MRA_RECEIVED", "REQ_ERROR"));
    EXPECT_EQ(std::get<Mra>(*pair.active.seen[0].event.message).private_data[0], 9);
    EXPECT_EQ(pair.loop.now(), kStart + 10_us + 4 * kMraTime);
    EXPECT_EQ(pair.carrier.count(0, CmMessage::kReq), 4);
    EXPECT_EQ(pair.carrier.count(1, CmMessage::kMra), 4) << "each repeated REQ gets it again";
    EXPECT_EQ(pair.passive_state(), CmState::kMraReqSent);
}

TEST(CmLoss, AnAcknowledgementMayWaitForTheRepetition) {
    CmPair pair;
    pair.passive.answers = false;
    pair.passive.on_event = [&pair](const CmEvent& event) {
        if (event.type == EventType::kReqReceived) {
            EXPECT_EQ(pair.passive.connection().send_mra(22, {}, MraMoment::kOnRepetition), 0);
        }
    };
    pair.active.connection().send_req(test::request_parameters());
    pair.loop.run_until(kStart + 4_s);
    EXPECT_EQ(pair.carrier.count(1, CmMessage::kMra), 0);
    pair.loop.run_until(kStart + 5_s);
    EXPECT_EQ(pair.carrier.count(1, CmMessage::kMra), 1);
    EXPECT_EQ(pair.active_state(), CmState::kMraReqReceived);
    ASSERT_EQ(pair.passive.connection().send_rep(pair.passive.reply), 0);
    pair.run();
    EXPECT_EQ(pair.active_state(), CmState::kEstablished);
    EXPECT_EQ(pair.passive_state(), CmState::kEstablished);
}

TEST(CmLoss, AnAcknowledgedReplyWaitsLonger) {
    CmPair pair;
    pair.active.answers = false;
    pair.active.on_event = [&pair](const CmEvent& event) {
        if (event.type == EventType::kRepReceived) {
            EXPECT_EQ(pair.active.connection().send_mra(22, {}, MraMoment::kNow), 0);
        }
    };
    pair.active.connection().send_req(test::request_parameters());
    pair.loop.run_until(kStart + 15_us);
    EXPECT_EQ(pair.passive_state(), CmState::kMraRepReceived);
    pair.loop.run_until(kStart + 15_us + kMraTime + 5_us);
    EXPECT_EQ(pair.carrier.count(1, CmMessage::kRep), 2);
    EXPECT_EQ(pair.carrier.count(0, CmMessage::kMra), 2);
    ASSERT_EQ(pair.active.connection().send_rtu({}), 0);
    pair.run();
    EXPECT_EQ(pair.passive_state(), CmState::kEstablished);
}

// A REQ overtaken by nothing, and a REP that comes after the REQ was given up.
TEST(CmLoss, AReplyThatComesTooLateIsDropped) {
    CmPair pair;
    pair.carrier.judge = [](int, CmMessage message, int) {
        return Fate{.delay = message == CmMessage::kRep ? 60_s : 0_s};
    };
    pair.connect();
    EXPECT_THAT(pair.active.events(), ElementsAre("REQ_ERROR"));
    EXPECT_THAT(pair.passive.events(), ElementsAre("REQ_RECEIVED", "REP_ERROR"));
}

}  // namespace
}  // namespace simverbs::cm
