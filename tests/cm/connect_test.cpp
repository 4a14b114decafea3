// Connecting and disconnecting without a fault, the attributes of the queue pairs, and what of it
// is refused.
#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cm/cm_pair.hpp"

namespace simverbs::cm {
namespace {

using test::CmPair;
using test::kActiveQpn;
using test::kPassiveQpn;
using test::kWireDelay;
using testing::ElementsAre;
using namespace fabric::literals;

TEST(CmConnect, ThreeMessagesEstablishAConnection) {
    CmPair pair;
    pair.connect();
    EXPECT_EQ(pair.active_state(), CmState::kEstablished);
    EXPECT_EQ(pair.passive_state(), CmState::kEstablished);
    EXPECT_THAT(pair.active.events(), ElementsAre("REP_RECEIVED"));
    EXPECT_THAT(pair.passive.events(), ElementsAre("REQ_RECEIVED", "RTU_RECEIVED"));
    EXPECT_EQ(pair.passive.seen[0].event.listener, pair.listener);
    EXPECT_EQ(pair.loop.now(), fabric::kSimStart + 3 * kWireDelay) << "no timer is left";
    EXPECT_EQ(pair.carrier.sent.size(), 3U);
}

TEST(CmConnect, BothSidesAgreeOnTheAttributesOfTheirQueuePairs) {
    CmPair pair;
    pair.passive.reply = {.qpn = kPassiveQpn,
                          .starting_psn = 0xABCDEF,
                          .responder_resources = 3,
                          .initiator_depth = 2,
                          .rnr_retry_count = 5};
    pair.connect();
    const QpParameters& active = pair.active.connection().qp_parameters();
    const QpParameters& passive = pair.passive.connection().qp_parameters();
    EXPECT_EQ(pair.active.connection().remote().qpn, kPassiveQpn);
    EXPECT_EQ(pair.passive.connection().remote().qpn, kActiveQpn);
    EXPECT_EQ(active.send_psn, 0xABCDEFU);
    EXPECT_EQ(active.receive_psn, 0x123456U);
    EXPECT_EQ(passive.send_psn, 0x123456U);
    EXPECT_EQ(passive.receive_psn, 0xABCDEFU);
    EXPECT_EQ(active.initiator_depth, 3) << "the reply's responder resources";
    EXPECT_EQ(active.responder_resources, 2);
    EXPECT_EQ(passive.initiator_depth, 2);
    EXPECT_EQ(passive.responder_resources, 3);
    EXPECT_EQ(active.rnr_retry_count, 5) << "the reply's";
    EXPECT_EQ(passive.rnr_retry_count, 6) << "the request's";
    EXPECT_EQ(passive.retry_count, 7);
    EXPECT_EQ(passive.path_mtu, 5);
    EXPECT_EQ(passive.pkey, 0xFFFF);
    EXPECT_EQ(active.ack_timeout, 15) << "life time 14 twice; a delay of 10 adds nothing";
    EXPECT_EQ(passive.ack_timeout, 15);
    EXPECT_EQ(passive.primary.local_lid, fabric::Lid{2});
    EXPECT_EQ(passive.primary.remote_lid, fabric::Lid{1});
    EXPECT_EQ(active.primary.local_ack_timeout, 15);
}

TEST(CmConnect, TheRequestOffersItsResourcesBeforeTheReply) {
    CmPair pair;
    pair.passive.answers = false;
    pair.active.connection().send_req(test::request_parameters());
    pair.loop.run_until(fabric::kSimStart + kWireDelay);
    const QpParameters& offered = pair.passive.connection().qp_parameters();
    EXPECT_EQ(offered.responder_resources, 8) << "the initiator's depth";
    EXPECT_EQ(offered.initiator_depth, 4) << "its responder resources";
}

TEST(CmConnect, TheReplyMayProlongTheAckTimeout) {
    CmPair pair;
    ReqParameters parameters = test::request_parameters();
    parameters.alternate = parameters.primary;
    parameters.alternate->packet_life_time = 13;
    Connection& active = pair.active.connection();
    ASSERT_EQ(active.send_req(parameters), 0);
    pair.active.answers = false;
    pair.active.cm.datagram_arrived(
        build(Rep{
            .local_comm_id = 5, .remote_comm_id = active.local_comm_id(), .target_ack_delay = 16}),
        test::address_of(1));
    EXPECT_EQ(active.qp_parameters().ack_timeout, 17);
    EXPECT_EQ(active.qp_parameters().alternate_ack_timeout, 16);
}

TEST(CmConnect, TransactionsNameTheAgentAndTheConnection) {
    CmPair pair;
    pair.connect();
    pair.disconnect();
    for (const test::Sent& sent : pair.carrier.sent) {
        const std::uint64_t transaction =
            std::visit([](const auto& any) { return any.transaction_id; }, sent.message);
        EXPECT_EQ(transaction, 0x5'1111'0001U) << "the active side began both exchanges";
    }
}

TEST(CmConnect, DisconnectingEndsInTimewaitOnBothSides) {
    CmPair pair;
    pair.connect();
    const fabric::SimTime begin = pair.loop.now();
    pair.disconnect();
    EXPECT_THAT(pair.active.events(),
                ElementsAre("REP_RECEIVED", "DREP_RECEIVED", "TIMEWAIT_EXIT"));
    EXPECT_THAT(pair.passive.events(),
                ElementsAre("REQ_RECEIVED", "RTU_RECEIVED", "DREQ_RECEIVED", "TIMEWAIT_EXIT"));
    EXPECT_EQ(pair.active.last(EventType::kTimewaitExit)->time,
              begin + 2 * kWireDelay + 134'217'728_ns);
    EXPECT_EQ(pair.passive.last(EventType::kTimewaitExit)->time,
              begin + kWireDelay + 134'217'728_ns);
    EXPECT_EQ(pair.active_state(), CmState::kIdle);
    EXPECT_EQ(pair.passive_state(), CmState::kIdle);
}

TEST(CmConnect, AnIdleConnectionConnectsAgain) {
    CmPair pair;
    pair.connect();
    pair.disconnect();
    pair.active.seen.clear();
    pair.connect();
    EXPECT_THAT(pair.active.events(), ElementsAre("REP_RECEIVED"));
    EXPECT_EQ(pair.active_state(), CmState::kEstablished);
}

TEST(CmConnect, DisconnectionsThatCrossAreBothAnswered) {
    CmPair pair;
    pair.connect();
    pair.active.connection().send_dreq({});
    pair.passive.connection().send_dreq({});
    pair.run();
    for (const test::Side* side : {&pair.active, &pair.passive}) {
        ASSERT_NE(side->last(EventType::kDreqReceived), nullptr);
        EXPECT_EQ(side->events().back(), "TIMEWAIT_EXIT");
        EXPECT_EQ(side->last(EventType::kDreqError), nullptr);
    }
}

TEST(CmConnect, OptionsAndPrivateDataArriveWholeAndFilledUp) {
    CmPair pair;
    ReqParameters parameters = test::request_parameters();
    parameters.private_data = {1, 2, 3};
    parameters.ece = {.vendor_id = 0x15B3, .options = 0x1000'0001};
    pair.passive.reply.private_data.assign(196, 0x5A);
    pair.passive.reply.ece = {.vendor_id = 0x15B3, .options = 2};
    pair.connect(parameters);
    const Req request = std::get<Req>(*pair.passive.seen[0].event.message);
    PrivateData expected{1, 2, 3};
    expected.resize(92);
    EXPECT_EQ(request.private_data, expected);
    EXPECT_EQ(request.ece, parameters.ece);
    const Rep reply = std::get<Rep>(*pair.active.seen[0].event.message);
    EXPECT_EQ(reply.private_data, PrivateData(196, 0x5A));
    EXPECT_EQ(reply.ece, pair.passive.reply.ece);
}

TEST(CmConnect, AnXrcTargetStandsInTheFieldOfAnEndToEndContext) {
    CmPair pair;
    ReqParameters parameters = test::request_parameters();
    parameters.service = Service::kXrcIni;
    pair.connect(parameters);
    EXPECT_EQ(pair.active.connection().remote().qpn, kPassiveQpn);
    EXPECT_EQ(pair.passive.connection().qp_parameters().service, Service::kXrcTgt);
    const Req request = std::get<Req>(*pair.passive.seen[0].event.message);
    EXPECT_EQ(request.responder_resources, 0);
    EXPECT_EQ(request.retry_count, 0);
    const Rep reply = std::get<Rep>(*pair.active.seen[0].event.message);
    EXPECT_EQ(reply.local_qpn, 0U);
    EXPECT_EQ(reply.local_eecn, kPassiveQpn);
    EXPECT_TRUE(reply.srq);
}

TEST(CmConnect, UnreliableConnectionsKeepTheirService) {
    CmPair pair;
    ReqParameters parameters = test::request_parameters();
    parameters.service = Service::kUc;
    pair.connect(parameters);
    EXPECT_EQ(pair.passive.connection().qp_parameters().service, Service::kUc);
    EXPECT_EQ(pair.active_state(), CmState::kEstablished);
}

TEST(CmConnect, ServicesWithoutConnectionsAreRefused) {
    CmPair pair;
    for (const Service service : {Service::kUd, Service::kRawPacket, Service::kXrcTgt}) {
        ReqParameters parameters = test::request_parameters();
        parameters.service = service;
        EXPECT_EQ(pair.active.connection().send_req(parameters), EINVAL);
    }
    EXPECT_TRUE(pair.carrier.sent.empty());
}

// As cm_init_qp_*_attr() of Linux.
TEST(CmConnect, AttributesOfTheQueuePairFollowTheState) {
    using enum QpAttr;
    CmPair pair;
    pair.passive.answers = false;
    pair.active.answers = false;
    Connection& active = pair.active.connection();
    EXPECT_FALSE(active.qp_attributes(QpState::kInit)) << "idle";
    active.send_req(test::request_parameters());
    EXPECT_EQ(active.qp_attributes(QpState::kInit),
              QpAttrs(kState) | kAccessFlags | kPkeyIndex | kPort);
    EXPECT_FALSE(active.qp_attributes(QpState::kRtr)) << "the peer is not known";
    pair.loop.run_until(fabric::kSimStart + kWireDelay);
    EXPECT_TRUE(pair.passive.connection().qp_attributes(QpState::kRts));
    pair.passive.connection().send_rep(pair.passive.reply);
    pair.loop.run_until(fabric::kSimStart + 2 * kWireDelay);
    EXPECT_EQ(active.qp_attributes(QpState::kRtr), QpAttrs(kState) | kAv | kPathMtu | kDestQpn |
                                                       kRqPsn | kMaxDestRdAtomic | kMinRnrTimer);
    EXPECT_EQ(active.qp_attributes(QpState::kRts),
              QpAttrs(kState) | kSqPsn | kRetryCnt | kRnrRetry | kMaxRdAtomic | kTimeout);
    EXPECT_FALSE(active.qp_attributes(QpState::kSqd));
    active.send_rtu({});
    pair.run();
    EXPECT_TRUE(active.qp_attributes(QpState::kRts)) << "established";
    active.send_dreq({});
    EXPECT_FALSE(active.qp_attributes(QpState::kRts)) << "it ends";
}

TEST(CmConnect, MessagesArriveBeforeTheRtuEstablishToo) {
    CmPair pair;
    pair.carrier.judge = [](int, CmMessage message, int) {
        return test::Fate{.copies = message == CmMessage::kRtu ? 0 : 1};
    };
    pair.active.connection().send_req(test::request_parameters());
    pair.loop.run_until(fabric::kSimStart + 2 * kWireDelay);
    EXPECT_EQ(pair.passive.connection().establish(), 0);
    EXPECT_EQ(pair.passive.connection().establish(), EISCONN);
    pair.run();
    EXPECT_EQ(pair.passive_state(), CmState::kEstablished);
    EXPECT_EQ(pair.carrier.count(1, CmMessage::kRep), 1) << "the reply is not repeated";
    EXPECT_EQ(pair.active.cm.find(pair.active.id)->establish(), EISCONN);
    EXPECT_EQ(pair.passive.cm.find(pair.listener)->establish(), EINVAL);
}

}  // namespace
}  // namespace simverbs::cm
