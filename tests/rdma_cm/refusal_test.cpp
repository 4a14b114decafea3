// Connections, addresses and routes that fail: the event and its status on each side.
#include <cerrno>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rdma_cm/rdma_net.hpp"

namespace simverbs::rdma_cm::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Refusal, ARejectionBringsItsPrivateData) {
    Pair pair;
    pair.request();
    ASSERT_EQ(pair.server.reject(pair.peer, "no thanks"), 0);
    pair.net.run_for(1_ms);
    const auto event = pair.client.event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->event, 8U);
    EXPECT_EQ(event->status, 28U) << "consumer defined";
    EXPECT_EQ(event->param.conn.private_data_len, 148);
    EXPECT_EQ(std::memcmp(event->param.conn.private_data, "no thanks", 10), 0);
    EXPECT_EQ(pair.server.reject(pair.peer, ""), EINVAL) << "it is rejected already";
}

TEST(Refusal, OnlyTwoReasonsAreAllowed) {
    Pair pair;
    pair.request();
    EXPECT_EQ(pair.server.reject(pair.peer, "", 8), EINVAL);
    EXPECT_EQ(pair.server.reject(pair.peer, "", 35), 0) << "vendor option not supported";
    pair.net.run_for(1_ms);
    EXPECT_THAT(pair.client.events(), ElementsAre("REJECTED 35"));
}

TEST(Refusal, NobodyListens) {
    Pair pair;
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    ASSERT_EQ(pair.client.connect(id, connection_parameters(1)), 0);
    pair.net.run_for(1_ms);
    EXPECT_THAT(pair.client.events(), ElementsAre("REJECTED 8"));
    EXPECT_EQ(pair.client.connect(id, connection_parameters(1)), EINVAL) << "an id connects once";
}

TEST(Refusal, TheListenerHasAnotherAddress) {
    Net net;
    Host client_host(net, 0);
    Host server_host(net, 1, LinkLayer::kInfiniband, 2);
    Program client(client_host);
    Program server(server_host);
    const std::uint32_t bound = server.create(RDMA_PS_TCP);
    ASSERT_EQ(server.bind(bound, address_of(1, kPort)), 0);
    server.listening(RDMA_PS_TCP, address_of(1, kPort, 1));
    const std::uint32_t id = client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    ASSERT_EQ(client.connect(id, connection_parameters(1)), 0);
    net.run_for(1_ms);
    EXPECT_THAT(client.events(), ElementsAre("REJECTED 8")) << "that device has no listener";
    EXPECT_THAT(server.events(), IsEmpty());
}

TEST(Refusal, TheListenerWantsAnotherServiceType) {
    Pair pair;
    const std::uint32_t listener = pair.server.create(RDMA_PS_IB, 3);
    ASSERT_EQ(pair.server.bind(listener, SocketAddress::inet(0, kPort)), 0);
    ASSERT_EQ(pair.server.listen(listener), 0);
    const std::uint32_t id = pair.client.create(RDMA_PS_IB, 2);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, kPort)), 0);
    ASSERT_EQ(pair.client.route(id), 0);
    pair.net.run_for(1_ms);
    pair.client.events();
    ASSERT_EQ(pair.client.connect(id, connection_parameters(1)), 0);
    pair.net.run_for(1_ms);
    EXPECT_THAT(pair.client.events(), ElementsAre("REJECTED 28"));
    EXPECT_EQ(pair.server_host.infos[0].cm->size(), 1U) << "nothing but the listener is left";
}

TEST(Refusal, ASilentPeerIsUnreachable) {
    Pair pair;
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    pair.net.loses = [](int, CmMessage) { return true; };
    ASSERT_EQ(pair.client.connect(id, connection_parameters(1)), 0);
    pair.net.run();
    EXPECT_THAT(pair.client.events(), ElementsAre("UNREACHABLE -110"));
    EXPECT_EQ(pair.net.count(0, CmMessage::kReq), 16) << "15 retries";
}

TEST(Refusal, AReplyThatNobodyTakesIsUnreachable) {
    Pair pair;
    pair.request();
    pair.net.loses = [](int, CmMessage message) { return message == CmMessage::kRep; };
    ASSERT_EQ(pair.server.accept(pair.peer, connection_parameters(0x200)), 0);
    pair.net.run();
    EXPECT_THAT(pair.server.events(), ElementsAre("UNREACHABLE -110"));
}

TEST(Refusal, ADisconnectThatNobodyAnswersEndsNevertheless) {
    Pair pair;
    pair.establish();
    pair.net.loses = [](int sender, CmMessage) { return sender == 0; };
    ASSERT_EQ(pair.client.disconnect(pair.id), 0);
    pair.net.run();
    EXPECT_THAT(pair.client.events(), ElementsAre("DISCONNECTED -110", "TIMEWAIT_EXIT"));
}

TEST(Refusal, PrivateDataHasLimits) {
    Pair pair;
    pair.listener = pair.server.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort));
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    EXPECT_EQ(pair.client.connect(id, connection_parameters(1, std::string(57, 'x'))), EINVAL);
    EXPECT_EQ(pair.client.connect(id, connection_parameters(1, std::string(255, 'x'))), EINVAL);
    ASSERT_EQ(pair.client.connect(id, connection_parameters(1, std::string(56, 'x'))), 0);
    pair.net.run_for(1_ms);
    const std::uint32_t peer = pair.server.event()->id;
    EXPECT_EQ(pair.server.reject(peer, std::string(149, 'x')), EINVAL);
    EXPECT_EQ(pair.server.accept(peer, connection_parameters(2, std::string(197, 'x'))), EINVAL);
    pair.net.run_for(1_ms);
    EXPECT_THAT(pair.client.events(), ElementsAre("REJECTED 28")) << "accepting that fails rejects";
}

TEST(Refusal, AnAcceptThatFitsIsTaken) {
    Pair pair;
    pair.request();
    EXPECT_EQ(pair.server.accept(pair.peer, connection_parameters(2, std::string(196, 'x'))), 0);
}

TEST(Refusal, TheBacklogIsFull) {
    Pair pair;
    pair.listener = pair.server.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort), 2);
    std::vector<std::uint32_t> ids;
    ids.reserve(3);
    for (int i = 0; i < 3; ++i) {
        ids.push_back(pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort)));
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
        ASSERT_EQ(
            pair.client.connect(ids[i], connection_parameters(static_cast<std::uint32_t>(1 + i))),
            0);
    }
    pair.net.run_for(1_ms);
    EXPECT_THAT(pair.client.events(), IsEmpty()) << "the third is not even rejected";
    EXPECT_THAT(pair.server.events(), ElementsAre("CONNECT_REQUEST", "CONNECT_REQUEST"));
    pair.net.run_for(5_s);
    EXPECT_THAT(pair.server.events(), ElementsAre("CONNECT_REQUEST"))
        << "it has come again, and the backlog has room since the others were read";
}

TEST(Refusal, AnAddressWithoutRouteIsRefusedAtOnce) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    EXPECT_EQ(pair.client.resolve(id, SocketAddress::inet(0x0A00'0001, 1)), ENETUNREACH);
    EXPECT_THAT(pair.client.events(), IsEmpty());
    EXPECT_EQ(pair.client.resolve(id, address_of(1, 1), SocketAddress::inet(0x0A00'0001, 0)), 0)
        << "it is bound since the first attempt, so that the source does not count";
    EXPECT_THAT(pair.client.events(), ElementsAre("ADDR_RESOLVED"));
}

TEST(Refusal, ARouteByAnInterfaceWithoutRdmaIsAnAddressError) {
    Pair pair;
    pair.client_host.source = SocketAddress::inet(0x0A00'0001, 0).gid();
    ASSERT_EQ(pair.client.resolve(pair.client.create(RDMA_PS_TCP), address_of(1, 0)), 0);
    EXPECT_THAT(pair.client.events(), ElementsAre("ADDR_ERROR -19"));
}

TEST(Refusal, AnUnknownSourceAddressIsNotAvailable) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    EXPECT_EQ(pair.client.bind(id, SocketAddress::inet(0x0A00'0001, 0)), EADDRNOTAVAIL);
    EXPECT_EQ(pair.client.resolve(id, address_of(1, 1), SocketAddress::inet(0x0A00'0001, 0)),
              EADDRNOTAVAIL);
    EXPECT_EQ(pair.client.resolve(id, address_of(1, 1), SocketAddress::inet6(Gid{}, 0)), EINVAL)
        << "families differ";
}

TEST(Refusal, ANeighbourThatDoesNotAnswerTakesTheTimeGiven) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    ASSERT_EQ(pair.client.resolve(id, SocketAddress::inet(0x7F4D'0009, 1), {}, 1500), 0);
    EXPECT_EQ(pair.client.resolve(id, address_of(1, 1)), EINVAL) << "it is busy";
    pair.net.run_for(1499_ms);
    EXPECT_THAT(pair.client.events(), IsEmpty());
    pair.net.run_for(2_ms);
    EXPECT_THAT(pair.client.events(), ElementsAre("ADDR_ERROR -110"));
    EXPECT_EQ(pair.client.resolve(id, address_of(1, 1)), 0) << "it may try again";
    EXPECT_THAT(pair.client.events(), ElementsAre("ADDR_RESOLVED"));
}

TEST(Refusal, TimesThatAreNoneAreOverAtOnce) {
    for (const std::uint32_t none : {0U, 0x8000'0000U, 0xFFFF'FFFFU}) {
        Pair pair;
        const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
        ASSERT_EQ(pair.client.resolve(id, SocketAddress::inet(0x7F4D'0009, 1), {}, none), 0);
        pair.net.run_for(2_ms);
        EXPECT_THAT(pair.client.events(), ElementsAre("ADDR_ERROR -110")) << none;
    }
}

TEST(Refusal, RouteErrors) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    EXPECT_EQ(pair.client.route(id), EINVAL) << "it has no address";
    ASSERT_EQ(pair.client.resolve(id, address_of(1, kPort)), 0);
    pair.client_host.path_answer = {.error = EINVAL};
    ASSERT_EQ(pair.client.route(id), 0);
    EXPECT_EQ(pair.client.route(id), EINVAL) << "it is busy";
    pair.net.run_for(1_ms);
    EXPECT_THAT(pair.client.events(), ElementsAre("ADDR_RESOLVED", "ROUTE_ERROR -22"));
    EXPECT_EQ(pair.client.connect(id, connection_parameters(1)), EINVAL);
    pair.client_host.path_answer = {.comes = false};
    ASSERT_EQ(pair.client.route(id, 700), 0);
    pair.net.run_for(699_ms);
    EXPECT_THAT(pair.client.events(), IsEmpty());
    pair.net.run_for(2_ms);
    EXPECT_THAT(pair.client.events(), ElementsAre("ROUTE_ERROR -110"));
}

TEST(Refusal, AnIdWithoutDeviceDoesLittle) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    EXPECT_EQ(pair.client.connect(id, connection_parameters(1)), EINVAL);
    EXPECT_EQ(pair.client.accept(id, connection_parameters(1)), EINVAL);
    EXPECT_EQ(pair.client.reject(id, ""), EINVAL);
    EXPECT_EQ(pair.client.disconnect(id), EINVAL);
    EXPECT_EQ(pair.client.notify(id, 4), EINVAL);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, 1)), 0);
    EXPECT_EQ(pair.client.accept(id, connection_parameters(1)), EINVAL);
    EXPECT_EQ(pair.client.reject(id, ""), EINVAL) << "there is no connection";
    EXPECT_EQ(pair.client.disconnect(id), EINVAL);
    EXPECT_EQ(pair.client.listen(id), EINVAL);
}

TEST(Refusal, AHeaderOfAnotherVersionIsRejected) {
    Pair pair;
    pair.listener = pair.server.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort));
    const auto send = [&pair](std::uint8_t version, std::uint8_t ip_version) {
        cm::HostCm& manager = *pair.client_host.infos[0].cm;
        const cm::ConnectionId connection = manager.create().value();
        cm::ReqParameters request{.service_id = 0x0106'1D2F, .qpn = connection.value()};
        request.primary.address = {.port = fabric::PortNumber(1),
                                   .remote = {.lid = fabric::Lid(2), .qp = 1}};
        request.private_data = {version, ip_version, 0, 1};
        EXPECT_EQ(manager.find(connection)->send_req(request), 0);
        pair.net.run_for(1_ms);
    };
    send(1, 0x40);
    EXPECT_EQ(pair.net.last<cm::Rej>(1).reason, RejectReason::kConsumerDefined);
    EXPECT_EQ(pair.net.count(1, CmMessage::kRej), 1);
    send(0, 0x50);
    EXPECT_EQ(pair.net.count(1, CmMessage::kRej), 2) << "no listener has an address of that kind";
    EXPECT_THAT(pair.server.events(), IsEmpty());
    EXPECT_EQ(pair.server_host.ucma.rdma_cm().size(), 1U);
}

}  // namespace
}  // namespace simverbs::rdma_cm::test
