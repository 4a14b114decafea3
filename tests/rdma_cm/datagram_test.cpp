// Datagram ids: service id resolution, Q_Keys and multicast groups.
#include <cerrno>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rdma_cm/rdma_net.hpp"

namespace simverbs::rdma_cm::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kUdpQueueKey = 0x0123'4567;
// state, P_Key index, port, Q_Key
constexpr std::uint32_t kDatagramMask = 1U | 1U << 4 | 1U << 5 | 1U << 6;

std::string text_of(const Gid& gid) {
    return fabric::to_string(gid);
}
Gid gid_of(const std::uint8_t (&bytes)[16]) {
    Gid gid;
    std::memcpy(gid.bytes.data(), bytes, sizeof bytes);
    return gid;
}

class Datagram : public testing::TestWithParam<LinkLayer> {};

INSTANTIATE_TEST_SUITE_P(Layers, Datagram,
                         testing::Values(LinkLayer::kInfiniband, LinkLayer::kEthernet),
                         [](const auto& layer) { return std::string(to_string(layer.param)); });

TEST_P(Datagram, ResolvesTheQueuePairOfTheServer) {
    Pair pair(GetParam(), RDMA_PS_UDP);
    pair.request();
    EXPECT_EQ(pair.asked.event, 4U);
    EXPECT_EQ(pair.asked.param.ud.private_data_len, 180);
    EXPECT_EQ(std::memcmp(pair.asked.param.ud.private_data, "hello\0", 6), 0);
    const cm::SidrReq& req = pair.net.last<cm::SidrReq>(0);
    EXPECT_EQ(req.service_id, 0x0111'1D2FU);
    EXPECT_EQ(req.pkey, 0xFFFF);
    ASSERT_EQ(pair.server.accept(pair.peer, connection_parameters(0x200, "welcome")), 0);
    pair.net.run();
    const auto event = pair.client.event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->event, 9U);
    const rdma_ucm_ud_param& ud = event->param.ud;
    EXPECT_EQ(ud.qp_num, 0x200U);
    EXPECT_EQ(ud.qkey, kUdpQueueKey);
    EXPECT_EQ(ud.private_data_len, 136);
    EXPECT_EQ(std::memcmp(ud.private_data, "welcome", 8), 0);
    EXPECT_EQ(ud.ah_attr.port_num, 1);
    if (GetParam() == LinkLayer::kEthernet) {
        EXPECT_EQ(ud.ah_attr.is_global, 1);
        EXPECT_EQ(ud.ah_attr.grh.sgid_index, 3);
        EXPECT_EQ(text_of(gid_of(ud.ah_attr.grh.dgid)), text_of(pair.server_host.gid()));
    } else {
        EXPECT_EQ(ud.ah_attr.dlid, 2);
        EXPECT_EQ(ud.ah_attr.sl, 3);
    }
    EXPECT_THAT(pair.server.events(), IsEmpty()) << "nothing more comes on this side";
}

TEST_P(Datagram, GivesTheAttributesOfTheQueuePair) {
    Pair pair(GetParam(), RDMA_PS_UDP);
    pair.request();
    for (const std::uint32_t state : {1U, 2U, 3U}) {
        const auto [error, attributes] = pair.server.qp_attr(pair.peer, state);
        ASSERT_EQ(error, 0);
        EXPECT_EQ(attributes.qp_attr_mask, kDatagramMask);
        EXPECT_EQ(attributes.qp_state, state);
        EXPECT_EQ(attributes.qkey, kUdpQueueKey);
        EXPECT_EQ(attributes.port_num, 1);
    }
}

TEST(DatagramRefusal, ARejectionIsUnreachable) {
    Pair pair(LinkLayer::kInfiniband, RDMA_PS_UDP);
    pair.request();
    ASSERT_EQ(pair.server.reject(pair.peer, "no"), 0);
    pair.net.run();
    const auto event = pair.client.event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->event, 7U);
    EXPECT_EQ(event->status, 2U);
    EXPECT_EQ(std::memcmp(event->param.ud.private_data, "no", 3), 0);
}

TEST(DatagramRefusal, NobodyListens) {
    Pair pair;
    const std::uint32_t id = pair.client.resolved(RDMA_PS_UDP, address_of(1, kPort));
    ASSERT_EQ(pair.client.connect(id, connection_parameters(1)), 0);
    pair.net.run();
    EXPECT_THAT(pair.client.events(), ElementsAre("UNREACHABLE 1"));
}

TEST(DatagramRefusal, ASilentPeerIsUnreachable) {
    Pair pair;
    const std::uint32_t id = pair.client.resolved(RDMA_PS_UDP, address_of(1, kPort));
    pair.net.loses = [](int, CmMessage) { return true; };
    const SimTime begin = pair.net.loop.now();
    ASSERT_EQ(pair.client.connect(id, connection_parameters(1)), 0);
    pair.net.run();
    EXPECT_THAT(pair.client.events(), ElementsAre("UNREACHABLE -110"));
    EXPECT_EQ(pair.net.count(0, CmMessage::kSidrReq), 16);
    EXPECT_EQ(pair.net.loop.now() - begin, 16 * 4096_ms);
}

TEST(DatagramRefusal, AnotherQueueKeyIsAnAddressError) {
    Pair pair(LinkLayer::kInfiniband, RDMA_PS_UDP);
    pair.listener = pair.server.listening(RDMA_PS_UDP, SocketAddress::inet(0, kPort));
    const std::uint32_t id = pair.client.resolved(RDMA_PS_UDP, address_of(1, kPort));
    ASSERT_EQ(pair.client.qp_attr(id, 1).first, 0) << "the client has the usual Q_Key now";
    ASSERT_EQ(pair.client.connect(id, connection_parameters(1)), 0);
    pair.net.run_for(1_ms);
    ASSERT_TRUE(pair.server.event());
    // The manager's own answer, with a Q_Key that rdma_cm would not give.
    ASSERT_EQ(pair.server_host.infos[0]
                  .cm->find(cm::ConnectionId(2))
                  ->send_sidr_rep({.qpn = 5, .qkey = 99}),
              0);
    pair.net.run();
    EXPECT_THAT(pair.client.events(), ElementsAre("ADDR_ERROR -22"));
}

TEST(DatagramRefusal, PrivateDataHasLimits) {
    Pair pair(LinkLayer::kInfiniband, RDMA_PS_UDP);
    pair.listener = pair.server.listening(RDMA_PS_UDP, SocketAddress::inet(0, kPort));
    const std::uint32_t id = pair.client.resolved(RDMA_PS_UDP, address_of(1, kPort));
    EXPECT_EQ(pair.client.connect(id, connection_parameters(1, std::string(181, 'x'))), EINVAL);
    ASSERT_EQ(pair.client.connect(id, connection_parameters(1, std::string(180, 'x'))), 0);
    pair.net.run_for(1_ms);
    const std::uint32_t peer = pair.server.event()->id;
    EXPECT_EQ(pair.server.accept(peer, connection_parameters(2, std::string(137, 'x'))), EINVAL);
    pair.net.run();
    EXPECT_THAT(pair.client.events(), ElementsAre("UNREACHABLE 2"));
}

TEST(Multicast, JoinsAGroupOfTheSubnet) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_UDP);
    ASSERT_EQ(pair.client.bind(id, address_of(0, 0)), 0);
    const auto [error, membership] = pair.client.join(id, SocketAddress::inet(0xE901'0203, 0));
    ASSERT_EQ(error, 0);
    EXPECT_EQ(membership, 0U);
    ASSERT_EQ(pair.client_host.joins.size(), 1U);
    const JoinRequest& join = pair.client_host.joins[0];
    // ip_ib_mc_map() and the signature of rdma_cm: ff12:4001:ffff::, then 28 bits of the address.
    EXPECT_EQ(text_of(join.mgid), "ff12:4001:ffff::901:203");
    EXPECT_EQ(join.qkey, kUdpQueueKey);
    EXPECT_EQ(join.pkey, 0xFFFF);
    EXPECT_EQ(join.state, JoinState::kFullMember);
    pair.net.run();
    const auto event = pair.client.event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->event, 12U);
    EXPECT_EQ(event->uid, 77U);
    EXPECT_EQ(event->id, membership);
    const rdma_ucm_ud_param& ud = event->param.ud;
    EXPECT_EQ(ud.qp_num, 0xFFFFFFU);
    EXPECT_EQ(ud.qkey, kUdpQueueKey);
    EXPECT_EQ(ud.private_data_len, 0);
    EXPECT_EQ(ud.ah_attr.dlid, 0xC005);
    EXPECT_EQ(ud.ah_attr.sl, 2);
    EXPECT_EQ(ud.ah_attr.static_rate, 3);
    EXPECT_EQ(ud.ah_attr.is_global, 1);
    EXPECT_EQ(ud.ah_attr.grh.hop_limit, 9);
    EXPECT_EQ(ud.ah_attr.grh.traffic_class, 8);
    EXPECT_EQ(ud.ah_attr.grh.flow_label, 0x12345U);
    EXPECT_EQ(gid_of(ud.ah_attr.grh.dgid), join.mgid);
    EXPECT_EQ(pair.client.leave(membership), std::pair(0, 1U));
    EXPECT_EQ(pair.client_host.left.size(), 1U);
    EXPECT_EQ(pair.client.leave(membership).first, ENOENT);
}

TEST(Multicast, MapsAddressesToGroups) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_UDP);
    ASSERT_EQ(pair.client.bind(id, address_of(0, 0)), 0);
    const auto mgid_of = [&](const SocketAddress& group) {
        EXPECT_EQ(pair.client.join(id, group).first, 0);
        return text_of(pair.client_host.joins.back().mgid);
    };
    Gid ipv6;
    ipv6.bytes = {0xFF, 0x05, 0,    0,    0,    0,    0x66, 0x77,
                  0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF};
    EXPECT_EQ(mgid_of(SocketAddress::inet6(ipv6, 0)), "ff12:6001:ffff:6677:8899:aabb:ccdd:eeff");
    Gid assigned;
    assigned.bytes = {0xFF, 0x12, 0xA0, 0x1B, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
    EXPECT_EQ(mgid_of(SocketAddress::inet6(assigned, 0)), "ff12:a01b:ffff::7");
    EXPECT_EQ(mgid_of(SocketAddress::infiniband(ipv6, 0, 0, 0)), text_of(ipv6));
    EXPECT_EQ(mgid_of(SocketAddress::inet(0, 0)), "::") << "the SA chooses one";
    const std::uint32_t other = pair.client.create(RDMA_PS_IB, 4);
    ASSERT_EQ(pair.client.bind(other, address_of(0, 0)), 0);
    EXPECT_EQ(pair.client.join(other, SocketAddress::inet(0xE000'0001, 0), 1).first, 0);
    EXPECT_EQ(text_of(pair.client_host.joins.back().mgid), "ff12:401b:ffff::1");
    EXPECT_EQ(pair.client_host.joins.back().state, JoinState::kSendOnlyFullMember);
}

TEST(Multicast, AnErrorIsReportedAtOnceOrLater) {
    Pair pair;
    pair.client_host.join_answer = {.error = ENETRESET};
    const std::uint32_t id = pair.client.create(RDMA_PS_UDP);
    ASSERT_EQ(pair.client.bind(id, address_of(0, 0)), 0);
    const auto [error, membership] = pair.client.join(id, SocketAddress::inet(0xE000'0005, 0));
    ASSERT_EQ(error, 0);
    pair.net.run();
    const auto event = pair.client.event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->event, 13U);
    EXPECT_EQ(static_cast<int>(event->status), -ENETRESET);
    EXPECT_EQ(event->uid, 77U);
    pair.client_host.ucma.rdma_cm().joined(MembershipId(1), {.qkey = 5});
    EXPECT_THAT(pair.client.events(), ElementsAre("MULTICAST_ERROR -22")) << "a foreign Q_Key";
}

TEST(Multicast, OnEthernetNobodyIsAsked) {
    Pair pair(LinkLayer::kEthernet);
    const std::uint32_t id = pair.client.create(RDMA_PS_UDP);
    ASSERT_EQ(pair.client.bind(id, address_of(0, 0)), 0);
    const auto [error, membership] = pair.client.join(id, SocketAddress::inet(0xE901'0203, 0));
    ASSERT_EQ(error, 0);
    const auto event = pair.client.event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->event, 12U);
    EXPECT_EQ(text_of(gid_of(event->param.ud.ah_attr.grh.dgid)), "::ffff:e901:203");
    EXPECT_EQ(event->param.ud.ah_attr.grh.hop_limit, 64);
    EXPECT_EQ(event->param.ud.ah_attr.grh.sgid_index, 3);
    EXPECT_EQ(event->param.ud.qkey, kUdpQueueKey);
    EXPECT_THAT(pair.client_host.joins, IsEmpty());
    EXPECT_EQ(pair.client.join(id, SocketAddress::inet(0, 0)).first, EINVAL);
    Gid ipv6;
    ipv6.bytes[0] = 0xFF;
    EXPECT_EQ(pair.client.join(id, SocketAddress::inet6(ipv6, 0)).first, EOPNOTSUPP);
    EXPECT_EQ(pair.client.leave(membership), std::pair(0, 1U));
    EXPECT_THAT(pair.client_host.left, IsEmpty());
}

TEST(Multicast, OnlyBoundDatagramIdsJoin) {
    Pair pair;
    const SocketAddress group = SocketAddress::inet(0xE000'0001, 0);
    EXPECT_EQ(pair.client.join(pair.client.create(RDMA_PS_UDP), group).first, EINVAL);
    const std::uint32_t connected = pair.client.create(RDMA_PS_TCP);
    ASSERT_EQ(pair.client.bind(connected, address_of(0, 0)), 0);
    EXPECT_EQ(pair.client.join(connected, group).first, EINVAL);
    const std::uint32_t id = pair.client.resolved(RDMA_PS_UDP, address_of(1, kPort));
    EXPECT_EQ(pair.client.join(id, group).first, EINVAL) << "it has a route";
    const std::uint32_t ipoib = pair.client.create(RDMA_PS_IPOIB);
    ASSERT_EQ(pair.client.bind(ipoib, address_of(0, 0)), 0);
    EXPECT_EQ(pair.client.join(ipoib, group).first, EADDRNOTAVAIL) << "no broadcast group";
    pair.client_host.infos[0].ports[0].ipoib_qkey = 0xB1B;
    EXPECT_EQ(pair.client.join(ipoib, group).first, 0);
    EXPECT_EQ(pair.client_host.joins.back().qkey, 0xB1BU);
}

TEST(Multicast, MembershipsOfAnIdAreBounded) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_UDP);
    ASSERT_EQ(pair.client.bind(id, address_of(0, 0)), 0);
    for (std::uint32_t i = 0; i < RdmaId::kMaxMemberships; ++i) {
        ASSERT_EQ(pair.client.join(id, SocketAddress::inet(0xE000'0000 + i, 0)), std::pair(0, i));
    }
    EXPECT_EQ(pair.client.join(id, SocketAddress::inet(0xE100'0000, 0)).first, ENOMEM);
    EXPECT_EQ(pair.client.leave(5).first, 0);
    EXPECT_EQ(pair.client.join(id, SocketAddress::inet(0xE100'0000, 0)), std::pair(0, 5U))
        << "the lowest free number";
    EXPECT_EQ(pair.client.destroy(id).first, 0);
    EXPECT_EQ(pair.client_host.left.size(), RdmaId::kMaxMemberships + 1);
    pair.net.run();
    EXPECT_THAT(pair.client.events(), IsEmpty());
}

TEST(Multicast, EventsOfAGroupGoWhenItIsLeft) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_UDP);
    ASSERT_EQ(pair.client.bind(id, address_of(0, 0)), 0);
    const std::uint32_t first = pair.client.join(id, SocketAddress::inet(0xE000'0001, 0)).second;
    pair.client.join(id, SocketAddress::inet(0xE000'0002, 0));
    pair.net.run();
    EXPECT_EQ(pair.client.leave(first), std::pair(0, 0U));
    EXPECT_THAT(pair.client.events(), ElementsAre("MULTICAST_JOIN"));
    Program stranger(pair.client_host);
    EXPECT_EQ(stranger.leave(1).first, EINVAL);
    EXPECT_EQ(pair.client.destroy(id), std::pair(0, 1U));
    EXPECT_EQ(pair.client.leave(1).first, ENOENT);
}

}  // namespace
}  // namespace simverbs::rdma_cm::test
