// Rare ways: alternate paths, loopback, IPv6, RoCE v1, queue pairs of other types, no room.
#include <cerrno>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rdma_cm/rdma_net.hpp"

namespace simverbs::rdma_cm::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Gid gid_of(const std::uint8_t (&bytes)[16]) {
    Gid gid;
    std::memcpy(gid.bytes.data(), bytes, sizeof bytes);
    return gid;
}

// Another implementation may ask for an alternate path; rdma_cm never does.
TEST(AlternatePath, OfTheRequestIsForTheQueuePair) {
    Pair pair;
    pair.listener = pair.server.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort));
    cm::HostCm& manager = *pair.client_host.infos[0].cm;
    const cm::ConnectionId connection = manager.create().value();
    cm::ReqParameters request{.service_id = 0x0106'1D2F, .qpn = 5};
    request.primary = {
        .path = {.local_lid = fabric::Lid(1),
                 .remote_lid = fabric::Lid(2),
                 .local_gid = pair.client_host.gid(),
                 .remote_gid = pair.server_host.gid(),
                 .subnet_local = true},
        .packet_life_time = 14,
        .address = {.port = fabric::PortNumber(1), .remote = {.lid = fabric::Lid(2), .qp = 1}}};
    request.alternate = request.primary;
    request.alternate->path.local_lid = fabric::Lid(9);
    request.alternate->packet_life_time = 15;
    request.path_mtu = 4;
    request.pkey = 0xFFFF;
    request.private_data = {0, 0x40, 0, 1};
    ASSERT_EQ(manager.find(connection)->send_req(request), 0);
    pair.net.run_for(1_ms);
    const std::uint32_t peer = pair.server.event()->id;
    ASSERT_EQ(pair.server.accept(peer, connection_parameters(2)), 0);
    const auto [error, rtr] = pair.server.qp_attr(peer, 2);
    ASSERT_EQ(error, 0);
    EXPECT_NE(rtr.qp_attr_mask & 1U << 14, 0U);
    EXPECT_EQ(rtr.ah_attr.dlid, 1);
    EXPECT_EQ(rtr.alt_ah_attr.dlid, 9);
    EXPECT_EQ(rtr.alt_port_num, 1);
    EXPECT_EQ(rtr.alt_pkey_index, 0);
    EXPECT_EQ(rtr.alt_timeout, 16);
    EXPECT_EQ(pair.server.qp_attr(peer, 3).second.path_mig_state, 1U) << "rearm";
    rdma_ucm_query_route_resp route{};
    const UcmaReply reply =
        pair.server.write(RDMA_USER_CM_CMD_QUERY_ROUTE, rdma_ucm_query{0, peer, 0}, sizeof route);
    std::memcpy(&route, reply.bytes.data(), sizeof route);
    EXPECT_EQ(route.num_paths, 2U);
    EXPECT_EQ(route.ib_route[1].dlid, 0x0900) << "in the order of the wire";
    EXPECT_EQ(pair.server.notify(peer, 5), EINVAL) << "it is not established";
    ASSERT_EQ(pair.server.notify(peer, 4), 0);
    EXPECT_EQ(pair.server.notify(peer, 5), 0);
    EXPECT_EQ(pair.server.qp_attr(peer, 2).second.ah_attr.dlid, 9) << "the paths have changed";
}

TEST(Loopback, OnEthernetTakesTheAddressOfThePort) {
    Net net;
    Host host(net, 0, LinkLayer::kEthernet);
    Program program(host);
    const std::uint32_t id = program.resolved(RDMA_PS_TCP, SocketAddress::inet(0x7F00'0001, 5));
    rdma_ucm_query_addr_resp query = program.query(id, RDMA_USER_CM_QUERY_GID);
    Gid gid;
    std::memcpy(gid.bytes.data(), reinterpret_cast<const std::uint8_t*>(&query.src_addr) + 8, 16);
    EXPECT_EQ(gid, host.gid());
    query = program.query(id, RDMA_USER_CM_QUERY_ADDR);
    EXPECT_EQ(SocketAddress(std::span(reinterpret_cast<const std::uint8_t*>(&query.src_addr), 16)),
              SocketAddress::inet(0x7F00'0001, 32768));
}

TEST(Loopback, HasAnIpv6Address) {
    Pair pair;
    Gid one;
    one.bytes[15] = 1;
    SocketAddress to = SocketAddress::inet6(one, 5);
    to.set_scope_id(7);
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    ASSERT_EQ(pair.client.resolve(id, to), 0);
    const auto query = pair.client.query(id, RDMA_USER_CM_QUERY_ADDR);
    const SocketAddress source(
        std::span(reinterpret_cast<const std::uint8_t*>(&query.src_addr), 128));
    EXPECT_EQ(source.gid(), one);
    EXPECT_EQ(source.scope_id(), 7U) << "that of the destination";
    ASSERT_EQ(pair.client.route(id), 0);
    EXPECT_EQ(pair.client_host.queries.back().traffic_class, 0);
    EXPECT_EQ(pair.client_host.queries.back().dgid, pair.client_host.gid());
}

TEST(RoceV1, GroupsHaveAPrefix) {
    Pair pair(LinkLayer::kEthernet);
    PortInfo& port = pair.client_host.infos[0].ports[0];
    std::erase_if(port.gids, [](const fabric::GidEntry& entry) {
        return entry.type == fabric::GidType::kRoceV2;
    });
    const std::uint32_t id = pair.client.create(RDMA_PS_UDP);
    ASSERT_EQ(pair.client.bind(id, address_of(0, 0)), 0);
    ASSERT_EQ(pair.client.join(id, SocketAddress::inet(0xE901'0203, 0)).first, 0);
    const auto event = pair.client.event();
    ASSERT_TRUE(event);
    EXPECT_EQ(fabric::to_string(gid_of(event->param.ud.ah_attr.grh.dgid)), "ff0e::ffff:e901:203");
    EXPECT_EQ(event->param.ud.ah_attr.grh.hop_limit, 1);
    EXPECT_EQ(event->param.ud.ah_attr.grh.sgid_index, 1) << "RoCE v1";
    Gid ipv6;
    ipv6.bytes[0] = 0xFF;
    EXPECT_EQ(pair.client.join(id, SocketAddress::inet6(ipv6, 0)).first, 0);
    port.mtu = 0;
    EXPECT_EQ(pair.client.join(id, SocketAddress::inet(0xE000'0001, 0)).first, EINVAL);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, 5)), 0);
    EXPECT_EQ(pair.client.route(id), EINVAL) << "the port is down";
    port.mtu = 5;
    EXPECT_EQ(pair.client.route(id), 0);
    ASSERT_EQ(pair.client.connect(id, connection_parameters(1)), 0);
}

TEST(QueuePairTypes, OnlySomeSendRequests) {
    for (const unsigned type : {0U, 1U, 8U, 10U, 200U}) {
        Pair pair;
        const std::uint32_t id = pair.client.create(RDMA_PS_IB, static_cast<std::uint8_t>(type));
        ASSERT_EQ(pair.client.resolve(id, address_of(1, kPort)), 0);
        ASSERT_EQ(pair.client.route(id), 0);
        pair.net.run_for(1_ms);
        EXPECT_EQ(pair.client.connect(id, connection_parameters(1)), EINVAL) << type;
        EXPECT_EQ(pair.client_host.infos[0].cm->size(), 0U);
    }
}

TEST(QueuePairTypes, AListenerOfNoneTakesAll) {
    Pair pair;
    const std::uint32_t listener = pair.server.create(RDMA_PS_IB, 0);
    ASSERT_EQ(pair.server.bind(listener, SocketAddress::inet(0, kPort)), 0);
    ASSERT_EQ(pair.server.listen(listener), 0);
    for (const unsigned type : {2U, 3U, 4U, 9U}) {
        const std::uint32_t id = pair.client.create(RDMA_PS_IB, static_cast<std::uint8_t>(type));
        ASSERT_EQ(pair.client.resolve(id, address_of(1, kPort)), 0);
        ASSERT_EQ(pair.client.route(id), 0);
        pair.net.run_for(1_ms);
        ASSERT_EQ(pair.client.connect(id, connection_parameters(type)), 0);
        pair.net.run_for(1_ms);
        EXPECT_THAT(pair.server.events(), ElementsAre("CONNECT_REQUEST")) << type;
    }
}

TEST(QueuePairTypes, IpoibNeedsInfiniband) {
    Pair pair(LinkLayer::kEthernet);
    const std::uint32_t id = pair.client.create(RDMA_PS_IPOIB);
    EXPECT_EQ(pair.client.bind(id, address_of(0, 0)), EINVAL);
    EXPECT_EQ(pair.client.bind(id, SocketAddress::inet(0, 0)), 0);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, 0)), 0);
    EXPECT_THAT(pair.client.events(), ElementsAre("ADDR_ERROR -22"));
}

TEST(QueuePairTypes, IpoibTakesTheQueueKeyOfTheBroadcastGroup) {
    Pair pair(LinkLayer::kInfiniband, RDMA_PS_IPOIB);
    pair.request();
    EXPECT_EQ(pair.server.qp_attr(pair.peer, 1).first, EADDRNOTAVAIL);
    pair.server_host.infos[0].ports[0].ipoib_qkey = 0xB1B;
    EXPECT_EQ(pair.server.qp_attr(pair.peer, 1).second.qkey, 0xB1BU);
}

TEST(Pkeys, FullMembershipIsPreferred) {
    PortInfo port;
    port.pkeys = {0x0001, 0xFFFF, 0x8001, 0x7FFF};
    EXPECT_EQ(pkey_index(port, 0x0001), 2);
    EXPECT_EQ(pkey_index(port, 0x7FFF), 1);
    port.pkeys = {0x8002, 0x0001, 0x0001};
    EXPECT_EQ(pkey_index(port, 0x8001), 1) << "the first one";
    EXPECT_FALSE(pkey_index(port, 0x8003));
}

TEST(Pkeys, APathOfAForeignPartitionConnectsNothing) {
    Pair pair;
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    pair.client_host.infos[0].ports[0].pkeys = {0x8001};
    EXPECT_EQ(pair.client.connect(id, connection_parameters(1)), EINVAL);
    const std::uint32_t datagram = pair.client.resolved(RDMA_PS_UDP, address_of(1, kPort));
    EXPECT_EQ(pair.client.connect(datagram, connection_parameters(1)), EINVAL);
}

TEST(Room, AForeignListenerKeepsItsServiceId) {
    Pair pair;
    cm::HostCm& manager = *pair.server_host.infos[0].cm;
    ASSERT_EQ(manager.listen(manager.create().value(), 0x0106'1D2F), 0);
    const std::uint32_t id = pair.server.create(RDMA_PS_TCP);
    ASSERT_EQ(pair.server.bind(id, address_of(1, kPort)), 0);
    EXPECT_EQ(pair.server.listen(id), EBUSY);
    EXPECT_EQ(manager.size(), 1U);
}

// A REQ is forgotten; a SIDR_REQ is rejected even then.
TEST(Room, WithoutIdsRequestsAreNotTaken) {
    Pair pair;
    pair.server.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort));
    pair.server.listening(RDMA_PS_UDP, SocketAddress::inet(0, kPort));
    rdma_ucm_create_id command{};
    command.ps = RDMA_PS_TCP;
    while (pair.server.write(RDMA_USER_CM_CMD_CREATE_ID, command, 4).error == 0) {
    }
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    const std::uint32_t datagram = pair.client.resolved(RDMA_PS_UDP, address_of(1, kPort));
    ASSERT_EQ(pair.client.connect(id, connection_parameters(1)), 0);
    ASSERT_EQ(pair.client.connect(datagram, connection_parameters(2)), 0);
    pair.net.run_for(1_ms);
    EXPECT_THAT(pair.client.events(), ElementsAre("UNREACHABLE 2"));
    EXPECT_EQ(pair.server.destroy(9).first, 0);
    EXPECT_EQ(pair.server.destroy(8).first, 0);
    pair.net.run_for(10_s);
    EXPECT_THAT(pair.server.events(), ElementsAre("CONNECT_REQUEST"));
}

TEST(Room, GroupsAreReportedOnlyWhileResolving) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_UDP);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, kPort)), 0);
    ASSERT_EQ(pair.client.join(id, SocketAddress::inet(0xE000'0001, 0)).first, 0);
    ASSERT_EQ(pair.client.route(id), 0);
    pair.net.run();
    EXPECT_THAT(pair.client.events(), ElementsAre("ADDR_RESOLVED", "ROUTE_RESOLVED"));
    pair.client_host.ucma.rdma_cm().membership_failed(MembershipId(1), ENETRESET);
    EXPECT_THAT(pair.client.events(), IsEmpty());
}

}  // namespace
}  // namespace simverbs::rdma_cm::test
