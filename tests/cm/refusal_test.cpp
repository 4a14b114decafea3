// Rejections with each reason and in each state, private data that fit and that do not, and what a
// destroyed connection tells its peer.
#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cm/cm_pair.hpp"

namespace simverbs::cm {
namespace {

using test::CmPair;
using testing::ElementsAre;
using namespace fabric::literals;

// Runs until the passive side has the REQ.
void request(CmPair& pair) {
    pair.passive.answers = false;
    pair.active.answers = false;
    ASSERT_EQ(pair.active.connection().send_req(test::request_parameters()), 0);
    pair.loop.run_until(pair.loop.now() + test::kWireDelay);
}
// Then until the active side has the REP.
void reply(CmPair& pair) {
    request(pair);
    ASSERT_EQ(pair.passive.connection().send_rep(pair.passive.reply), 0);
    pair.loop.run_until(pair.loop.now() + test::kWireDelay);
}

TEST(CmRefusal, EachReasonReachesTheActiveSide) {
    for (const auto& row : kRejectReasonNames) {
        SCOPED_TRACE(row.name);
        if (row.code == RejectReason::kTimeout) {
            continue;  // finds its connection in another way
        }
        CmPair pair;
        request(pair);
        ASSERT_EQ(pair.passive.connection().send_rej(row.code, {1, 2}, {3, 4, 5}), 0);
        EXPECT_EQ(pair.passive_state(), CmState::kIdle);
        pair.loop.run_until(pair.loop.now() + test::kWireDelay);
        EXPECT_EQ(pair.active_state(),
                  row.code == RejectReason::kStaleConnection ? CmState::kTimewait : CmState::kIdle);
        ASSERT_THAT(pair.active.events(), ElementsAre("REJ_RECEIVED"));
        const Rej reject = std::get<Rej>(*pair.active.seen[0].event.message);
        EXPECT_EQ(reject.reason, row.code);
        EXPECT_EQ(reject.answers, CmAnswered::kReq);
        EXPECT_EQ(reject.local_comm_id, 0U) << "the peer has not heard of it";
        EXPECT_EQ(reject.info, (PrivateData{1, 2}));
        EXPECT_EQ(reject.private_data[2], 5);
    }
}

TEST(CmRefusal, ARejectionThatIsLostLetsTheRequestComeAnew) {
    CmPair pair;
    pair.passive.answers = false;
    pair.carrier.judge = [](int, CmMessage message, int nth) {
        return test::Fate{.copies = message == CmMessage::kRej && nth == 0 ? 0 : 1};
    };
    pair.passive.on_event = [&pair](const CmEvent& event) {
        if (event.type == EventType::kReqReceived) {
            pair.passive.connection().send_rej(RejectReason::kConsumerDefined, {}, {});
            pair.passive.cm.destroy(event.connection);
        }
    };
    pair.connect();
    EXPECT_THAT(pair.passive.events(), ElementsAre("REQ_RECEIVED", "REQ_RECEIVED"));
    EXPECT_THAT(pair.active.events(), ElementsAre("REJ_RECEIVED"));
    EXPECT_EQ(pair.passive.cm.size(), 1U) << "the listener";
}

TEST(CmRefusal, TheActiveSideRejectsAReply) {
    CmPair pair;
    reply(pair);
    ASSERT_EQ(pair.active.connection().send_rej(RejectReason::kInvalidRnrRetry, {}, {}), 0);
    pair.run();
    EXPECT_THAT(pair.passive.events(), ElementsAre("REQ_RECEIVED", "REJ_RECEIVED"));
    const Rej reject = std::get<Rej>(*pair.passive.seen[1].event.message);
    EXPECT_EQ(reject.answers, CmAnswered::kRep);
    EXPECT_EQ(reject.local_comm_id, pair.active.connection().local_comm_id());
    EXPECT_EQ(pair.passive_state(), CmState::kIdle);
    EXPECT_EQ(pair.active_state(), CmState::kIdle);
}

TEST(CmRefusal, ARejectionOfAnEstablishedConnectionEndsInTimewait) {
    CmPair pair;
    reply(pair);
    ASSERT_EQ(pair.active.connection().send_rtu({}), 0);
    // The passive side gives up before the RTU has come.
    ASSERT_EQ(pair.passive.connection().send_rej(RejectReason::kNoQp, {}, {}), 0);
    EXPECT_EQ(pair.passive_state(), CmState::kTimewait);
    pair.run();
    EXPECT_THAT(pair.active.events(), ElementsAre("REP_RECEIVED", "REJ_RECEIVED", "TIMEWAIT_EXIT"));
    EXPECT_THAT(pair.passive.events(), ElementsAre("REQ_RECEIVED", "TIMEWAIT_EXIT"));
}

// The sizes of Linux's ib_cm.h once more.
TEST(CmRefusal, PrivateDataOfEachMessageHaveTheirLimits) {
    const PrivateData none;
    const auto data = [](std::size_t bytes) { return PrivateData(bytes, 0xEE); };
    CmPair pair;
    pair.passive.answers = false;
    pair.active.answers = false;
    ReqParameters parameters = test::request_parameters();
    parameters.private_data = data(93);
    EXPECT_EQ(pair.active.connection().send_req(parameters), EINVAL);
    EXPECT_EQ(pair.active_state(), CmState::kIdle);
    parameters.private_data = data(92);
    ASSERT_EQ(pair.active.connection().send_req(parameters), 0);
    pair.loop.run_until(pair.loop.now() + test::kWireDelay);

    Connection& passive = pair.passive.connection();
    EXPECT_EQ(passive.send_mra(20, data(223), MraMoment::kNow), EINVAL);
    EXPECT_EQ(passive.send_rej(RejectReason::kNoQp, data(73), none), EINVAL);
    EXPECT_EQ(passive.send_rej(RejectReason::kNoQp, none, data(149)), EINVAL);
    RepParameters reply = pair.passive.reply;
    reply.private_data = data(197);
    EXPECT_EQ(passive.send_rep(reply), EINVAL);
    EXPECT_EQ(passive.state(), CmState::kReqReceived);
    EXPECT_EQ(passive.send_mra(20, data(222), MraMoment::kNow), 0);
    reply.private_data = data(196);
    EXPECT_EQ(passive.send_rep(reply), 0);
    pair.loop.run_until(pair.loop.now() + test::kWireDelay);

    Connection& active = pair.active.connection();
    EXPECT_EQ(active.send_rtu(data(225)), EINVAL);
    EXPECT_EQ(active.send_rtu(data(224)), 0);
    pair.run();
    LapParameters load;
    load.private_data = data(169);
    EXPECT_EQ(active.send_lap(load), EINVAL);
    load.private_data = data(168);
    EXPECT_EQ(active.send_lap(load), 0);
    pair.loop.run_until(pair.loop.now() + test::kWireDelay);
    EXPECT_EQ(passive.send_apr(AprStatus::kLoaded, data(73), none), EINVAL);
    EXPECT_EQ(passive.send_apr(AprStatus::kLoaded, none, data(149)), EINVAL);
    EXPECT_EQ(passive.send_apr(AprStatus::kLoaded, data(72), data(148)), 0);
    pair.run();
    EXPECT_EQ(active.send_dreq(data(221)), EINVAL);
    EXPECT_EQ(active.send_dreq(data(220)), 0);
    pair.loop.run_until(pair.loop.now() + test::kWireDelay);
    EXPECT_EQ(passive.send_drep(data(225)), EINVAL);
    EXPECT_EQ(passive.send_drep(data(224)), 0);
    pair.run();
    EXPECT_EQ(
        std::get<Drep>(*pair.active.last(EventType::kDrepReceived)->event.message).private_data,
        data(224));
}

TEST(CmRefusal, ADestroyedRequestTellsOfATimeout) {
    CmPair pair;
    request(pair);
    pair.active.cm.destroy(pair.active.id);
    pair.run();
    const Rej reject = std::get<Rej>(pair.carrier.sent.back().message);
    EXPECT_EQ(reject.reason, RejectReason::kTimeout);
    EXPECT_EQ(reject.info, (PrivateData{0, 0, 0, 0, 0, 0, 0xA0, 0})) << "the CA's GUID";
    EXPECT_THAT(pair.passive.events(), ElementsAre("REQ_RECEIVED", "REJ_RECEIVED"))
        << "found by the GUID, since the peer's id is not in it";
    EXPECT_EQ(pair.active.cm.size(), 0U);
}

TEST(CmRefusal, ADestroyedConnectionTellsItsPeer) {
    {
        CmPair pair;
        request(pair);
        pair.passive.cm.destroy(pair.passive.id);
        pair.run();
        EXPECT_EQ(std::get<Rej>(*pair.active.seen.back().event.message).reason,
                  RejectReason::kConsumerDefined);
        EXPECT_EQ(pair.active_state(), CmState::kIdle);
    }
    {
        CmPair pair;
        reply(pair);
        pair.active.cm.destroy(pair.active.id);
        pair.run();
        EXPECT_THAT(pair.passive.events(), ElementsAre("REQ_RECEIVED", "REJ_RECEIVED"));
    }
    {
        CmPair pair;
        pair.connect();
        pair.active.cm.destroy(pair.active.id);
        pair.run();
        EXPECT_EQ(pair.passive.events().back(), "TIMEWAIT_EXIT");
        EXPECT_EQ(pair.carrier.count(0, CmMessage::kDreq), 1);
        EXPECT_EQ(pair.active.cm.size(), 0U);
    }
    {
        CmPair pair;
        pair.connect();
        pair.passive.answers = false;
        pair.active.connection().send_dreq({});
        pair.loop.run_until(pair.loop.now() + test::kWireDelay);
        pair.passive.cm.destroy(pair.passive.id);
        pair.run();
        EXPECT_NE(pair.active.last(EventType::kDrepReceived), nullptr);
    }
}

TEST(CmRefusal, ADisconnectionIsNotRepeatedOnceItsConnectionIsDestroyed) {
    CmPair pair;
    pair.connect();
    pair.carrier.judge = [](int, CmMessage, int) { return test::Fate{.copies = 0}; };
    pair.active.cm.destroy(pair.active.id);
    EXPECT_TRUE(pair.loop.empty()) << "no timer outlives its connection";
    EXPECT_EQ(pair.passive_state(), CmState::kEstablished);
}

TEST(CmRefusal, AConnectionIsDestroyedWithinItsLastEvent) {
    CmPair pair;
    pair.active.on_event = [&pair](const CmEvent& event) {
        pair.active.cm.destroy(event.connection);
    };
    pair.carrier.judge = [](int, CmMessage, int) { return test::Fate{.copies = 0}; };
    pair.connect();
    EXPECT_THAT(pair.active.events(), ElementsAre("REQ_ERROR"));
    EXPECT_EQ(pair.active.cm.size(), 0U);
    EXPECT_EQ(pair.carrier.count(0, CmMessage::kRej), 0) << "it was idle";
}

TEST(CmRefusal, CommandsInAStateWithoutARowAreRefused) {
    CmPair pair;
    Connection& idle = pair.active.connection();
    EXPECT_EQ(idle.send_rep({}), EINVAL);
    EXPECT_EQ(idle.send_rtu({}), EINVAL);
    EXPECT_EQ(idle.send_mra(1, {}, MraMoment::kNow), EINVAL);
    EXPECT_EQ(idle.send_rej(RejectReason::kNoQp, {}, {}), EINVAL);
    EXPECT_EQ(idle.send_dreq({}), EINVAL);
    EXPECT_EQ(idle.send_drep({}), EINVAL);
    EXPECT_EQ(idle.send_lap({}), EINVAL);
    EXPECT_EQ(idle.send_apr(AprStatus::kLoaded, {}, {}), EINVAL);
    EXPECT_EQ(idle.send_sidr_rep({}), EINVAL);
    EXPECT_EQ(idle.establish(), EINVAL);
    EXPECT_EQ(idle.migrate({}), EINVAL);
    pair.connect();
    EXPECT_EQ(pair.active.connection().send_req(test::request_parameters()), EINVAL);
    EXPECT_EQ(pair.active.connection().send_sidr_req({}), EINVAL);
}

}  // namespace
}  // namespace simverbs::cm
