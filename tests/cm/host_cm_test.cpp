#include "simverbs/cm/host_cm.hpp"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/core/random.hpp"

#include "tests/cm/cm_pair.hpp"

namespace simverbs::cm {
namespace {

using test::CmPair;
using testing::ElementsAre;
using namespace fabric::literals;

int listen(CmPair& pair, std::uint64_t service_id, std::uint64_t mask = kExactServiceId) {
    return pair.passive.cm.listen(pair.passive.cm.create().value(), service_id, mask);
}

Rej last_rej(const CmPair& pair) {
    return std::get<Rej>(pair.carrier.sent.back().message);
}

TEST(HostCm, ListenersShareNoServiceId) {
    CmPair pair;
    EXPECT_EQ(listen(pair, test::kServiceId), EBUSY);
    EXPECT_EQ(listen(pair, test::kServiceId + 1), 0);
    EXPECT_EQ(listen(pair, 0x0106'0000, 0xFFFF'0000), EBUSY) << "it covers the first";
    EXPECT_EQ(listen(pair, 0x0107'0000, 0xFFFF'FFFF'FFFF'0000), 0);
    EXPECT_EQ(listen(pair, 0x0107'0005), EBUSY);
    EXPECT_EQ(pair.passive.cm.listen(pair.listener, 5), EINVAL) << "it listens";
    EXPECT_EQ(pair.passive.cm.listen(ConnectionId(777), 5), EINVAL);
    pair.passive.cm.destroy(pair.listener);
    EXPECT_EQ(listen(pair, test::kServiceId), 0) << "it is free again";
}

TEST(HostCm, AForgottenRequestIsNewWhenItComesAgain) {
    CmPair pair;
    int requests = 0;
    pair.passive.answers = false;
    pair.passive.on_event = [&](const CmEvent& event) {
        if (event.type == EventType::kReqReceived && ++requests < 3) {
            pair.passive.cm.forget(event.connection);
        } else {
            pair.passive.answers = true;
        }
    };
    pair.connect();
    EXPECT_EQ(requests, 3) << "the peer was told nothing, and has sent its REQ again";
    EXPECT_EQ(pair.carrier.count(1, CmMessage::kRej), 0);
    EXPECT_EQ(pair.passive_state(), CmState::kEstablished);
    pair.passive.cm.forget(ConnectionId(777));
}

TEST(HostCm, AssignsServiceIds) {
    CmPair pair;
    const ConnectionId first = pair.passive.cm.create().value();
    const ConnectionId second = pair.passive.cm.create().value();
    ASSERT_EQ(pair.passive.cm.listen(first, kAssignServiceId), 0);
    ASSERT_EQ(pair.passive.cm.listen(second, kAssignServiceId), 0);
    EXPECT_EQ(pair.passive.cm.find(first)->service_id(), 0x0200'0000'0000'0000U);
    EXPECT_EQ(pair.passive.cm.find(second)->service_id(), 0x0200'0000'0000'0001U);
    EXPECT_EQ(listen(pair, 0x0200'0000'0000'0007), EINVAL) << "nobody else may take those";
    EXPECT_EQ(listen(pair, kAssignServiceId, 0xFF), EINVAL);
}

TEST(HostCm, AListenerTakesWhatItsMaskSelects) {
    CmPair pair;
    const ConnectionId ports = pair.passive.cm.create().value();
    ASSERT_EQ(pair.passive.cm.listen(ports, 0x0108'0000, 0xFFFF'FFFF'FFFF'0000), 0);
    ReqParameters parameters = test::request_parameters();
    parameters.service_id = 0x0108'4321;
    pair.connect(parameters);
    EXPECT_EQ(pair.passive.seen[0].event.listener, ports);
    EXPECT_EQ(pair.passive.connection().service_id(), 0x0108'4321U);
}

TEST(HostCm, RefusesAServiceIdThatNobodyListensTo) {
    CmPair pair;
    ReqParameters parameters = test::request_parameters();
    parameters.service_id = 42;
    pair.connect(parameters);
    EXPECT_EQ(static_cast<int>(last_rej(pair).reason), 8);
    EXPECT_THAT(pair.active.events(), ElementsAre("REJ_RECEIVED"));
    EXPECT_EQ(pair.active_state(), CmState::kIdle);
    EXPECT_EQ(pair.passive.cm.size(), 1U);
}

TEST(HostCm, RefusesATransportWithoutConnections) {
    CmPair pair;
    pair.passive.cm.datagram_arrived(
        build(Req{.local_comm_id = 5, .service_id = test::kServiceId, .transport_service_type = 2}),
        test::address_of(0));
    EXPECT_EQ(static_cast<int>(last_rej(pair).reason), 9);
    EXPECT_EQ(last_rej(pair).remote_comm_id, 5U);
}

TEST(HostCm, RefusesMoreConnectionsThanThereMayBe) {
    CmPair pair;
    HostCm small(pair.loop, {.ca_guid = fabric::Guid(7), .max_connections = 2}, pair.passive,
                 pair.passive);
    pair.carrier.connect(1, small);
    ASSERT_EQ(small.listen(small.create().value(), test::kServiceId), 0);
    ASSERT_TRUE(small.create());
    EXPECT_FALSE(small.create());
    pair.connect();
    EXPECT_EQ(static_cast<int>(last_rej(pair).reason), 3);
    small.datagram_arrived(build(SidrReq{.request_id = 3, .service_id = test::kServiceId}),
                           test::address_of(0));
    EXPECT_EQ(pair.carrier.count(1, CmMessage::kSidrRep), 0) << "a resolution is asked again";
}

TEST(HostCm, ManyConnectionsAreKeptApart) {
    CmPair pair;
    constexpr std::uint32_t kConnections = 100;
    std::vector<ConnectionId> ids;
    for (std::uint32_t i = 0; i < kConnections; ++i) {
        ids.push_back(pair.active.cm.create().value());
        ReqParameters parameters = test::request_parameters();
        parameters.qpn = 0x1000 + i;
        ASSERT_EQ(pair.active.cm.find(ids.back())->send_req(parameters), 0);
    }
    // Each reply names another queue pair.
    pair.passive.on_event = [&pair](const CmEvent& event) {
        pair.passive.reply.qpn = 0x2000 + event.connection.value();
    };
    pair.run();
    for (std::uint32_t i = 0; i < kConnections; ++i) {
        const Connection& connection = *pair.active.cm.find(ids[i]);
        EXPECT_EQ(connection.state(), CmState::kEstablished);
        Connection* const peer =
            pair.passive.cm.find(ConnectionId(connection.remote().comm_id ^ 0x2222'0000U));
        ASSERT_NE(peer, nullptr);
        EXPECT_EQ(peer->remote().qpn, 0x1000 + i);
        EXPECT_EQ(peer->remote().comm_id, connection.local_comm_id());
    }
}

// The active side has forgotten its connection and uses its queue pair anew (IBA 12.9.8.3.1).
TEST(HostCm, ARequestOfAQueuePairThatIsConnectedIsStale) {
    CmPair pair;
    pair.connect();
    const ConnectionId old = pair.passive.id;
    pair.carrier.judge = [](int, CmMessage message, int) {
        return test::Fate{.copies = message == CmMessage::kDreq ? 0 : 1};
    };
    pair.active.cm.destroy(pair.active.id);
    pair.carrier.judge = [](int, CmMessage, int) { return test::Fate{}; };
    pair.active.id = pair.active.cm.create().value();
    pair.active.seen.clear();
    pair.connect();
    EXPECT_THAT(pair.active.events(), ElementsAre("REJ_RECEIVED", "TIMEWAIT_EXIT"));
    EXPECT_EQ(static_cast<int>(std::get<Rej>(*pair.active.seen[0].event.message).reason), 10);
    EXPECT_THAT(pair.passive.events(),
                ElementsAre("REQ_RECEIVED", "RTU_RECEIVED", "DREP_RECEIVED", "TIMEWAIT_EXIT"))
        << "the old connection is disconnected; its peer, which knows none, answers";
    EXPECT_EQ(pair.passive.cm.find(old)->state(), CmState::kIdle);
    pair.active.seen.clear();
    pair.connect();
    EXPECT_THAT(pair.active.events(), ElementsAre("REP_RECEIVED")) << "the next try succeeds";
}

TEST(HostCm, AReplyOfAQueuePairThatIsConnectedIsStale) {
    CmPair pair;
    pair.connect();
    const ConnectionId old = pair.active.id;
    pair.active.id = pair.active.cm.create().value();
    ReqParameters parameters = test::request_parameters();
    parameters.qpn = 0x300;
    pair.connect(parameters);  // the reply names the same queue pair again
    EXPECT_EQ(pair.active_state(), CmState::kEstablished) << "its request came again, later";
    EXPECT_EQ(pair.carrier.count(0, CmMessage::kReq), 3);
    const test::Seen* const rejected = pair.passive.last(EventType::kRejReceived);
    ASSERT_NE(rejected, nullptr);
    const Rej reject = std::get<Rej>(*rejected->event.message);
    EXPECT_EQ(static_cast<int>(reject.reason), 10);
    EXPECT_EQ(reject.answers, CmAnswered::kRep);
    EXPECT_EQ(pair.active.cm.find(old)->state(), CmState::kIdle) << "it was disconnected";
}

// Timewait protects the own queue pair; the peer knows best when it may use its own again.
TEST(HostCm, AQueuePairMayConnectAgainWhileItsPeerIsInTimewait) {
    CmPair pair;
    pair.connect();
    const ConnectionId old = pair.passive.id;
    pair.active.connection().send_dreq({});
    pair.loop.run_until(pair.loop.now() + 10_us);
    ASSERT_EQ(pair.passive.cm.find(old)->state(), CmState::kTimewait);
    pair.active.id = pair.active.cm.create().value();
    ASSERT_EQ(pair.active.connection().send_req(test::request_parameters()), 0);
    pair.loop.run_until(pair.loop.now() + 15_us);
    EXPECT_EQ(pair.passive.cm.find(old)->state(), CmState::kTimewait);
    EXPECT_EQ(pair.active_state(), CmState::kEstablished);
    EXPECT_NE(pair.passive.id, old);
}

TEST(HostCm, ASecondConnectionOfOneCommunicationIdIsDropped) {
    CmPair pair;
    pair.passive.answers = false;
    const ConnectionId first = pair.active.id;
    const ConnectionId second = pair.active.cm.create().value();
    for (const ConnectionId id : {first, second}) {
        Connection& connection = *pair.active.cm.find(id);
        ASSERT_EQ(connection.send_req(test::request_parameters()), 0);
        pair.active.cm.datagram_arrived(build(Rep{.local_comm_id = 5,
                                                  .remote_comm_id = connection.local_comm_id(),
                                                  .local_qpn = 0x500 + id.value()}),
                                        test::address_of(1));
    }
    EXPECT_EQ(pair.active.cm.find(first)->state(), CmState::kEstablished);
    EXPECT_EQ(pair.active.cm.find(second)->state(), CmState::kReqSent);
}

TEST(HostCm, ADisconnectionOfNoConnectionIsAnswered) {
    CmPair pair;
    pair.passive.cm.datagram_arrived(
        build(Dreq{.transaction_id = 77, .local_comm_id = 5, .remote_comm_id = 6}),
        test::address_of(0));
    ASSERT_EQ(pair.carrier.sent.size(), 1U);
    const Drep reply = std::get<Drep>(pair.carrier.sent[0].message);
    EXPECT_EQ(reply.transaction_id, 77U);
    EXPECT_EQ(reply.local_comm_id, 6U);
    EXPECT_EQ(reply.remote_comm_id, 5U);
}

TEST(HostCm, OtherMessagesOfNoConnectionAreDropped) {
    CmPair pair;
    const std::vector<Message> messages = {Mra{}, Rej{},  Rep{},
                                           Rtu{}, Drep{}, SidrRep{},
                                           Lap{}, Apr{},  Rej{.reason = RejectReason::kTimeout}};
    for (const Message& message : messages) {
        pair.passive.cm.datagram_arrived(build(message), test::address_of(0));
    }
    EXPECT_TRUE(pair.carrier.sent.empty());
    EXPECT_TRUE(pair.passive.seen.empty());
}

// Ids that fit now and then, every field random: nothing asserts, and a peer leaves nothing behind
// but connections, of which there are only so many.
TEST(HostCm, NoiseDoesNoHarm) {
    fabric::RandomStream random(3, "cm_test", "noise");
    CmPair pair;
    pair.connect();
    for (int round = 0; round < 20'000; ++round) {
        Datagram datagram;
        for (std::uint8_t& byte : datagram.bytes) {
            byte = static_cast<std::uint8_t>(random.below(256));
        }
        const Datagram head = build(Rtu{});
        std::copy_n(head.bytes.begin(), 16, datagram.bytes.begin());
        datagram.set(fabric::mad::header::kAttributeId, random.between(0x10, 0x1A));
        const auto small = [&random](std::uint64_t operand) { return operand + random.below(8); };
        datagram.set({24 * 8, 32}, small(0x1111'0000));
        datagram.set({28 * 8, 32}, small(0x2222'0000));
        if (random.chance({1, 2})) {
            datagram.set({32 * 8, 64}, test::kServiceId);
            datagram.set({40 * 8, 64}, 0xA000);
            datagram.set({56 * 8, 24}, small(0));
        }
        pair.passive.cm.datagram_arrived(datagram, test::address_of(0));
        if (round % 16 == 0) {
            pair.loop.run_until(pair.loop.now() + 1_s);
        }
    }
    EXPECT_LE(pair.passive.cm.size(), 65'536U);
    pair.run();
}

TEST(HostCm, IdsGoRoundAndSkipThoseInUse) {
    CmPair pair;
    HostCm cm(pair.loop, {.comm_id_operand = 2}, pair.passive, pair.passive);
    EXPECT_EQ(cm.create(), ConnectionId(1));
    EXPECT_EQ(cm.create(), ConnectionId(3)) << "2 would have communication id 0";
    cm.destroy(ConnectionId(1));
    cm.destroy(ConnectionId(1));
    EXPECT_EQ(cm.create(), ConnectionId(4)) << "1 is not used at once again";
    EXPECT_EQ(cm.find(ConnectionId(1)), nullptr);
}

}  // namespace
}  // namespace simverbs::cm
