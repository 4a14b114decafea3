// Connections without a fault, as librdmacm makes them: what each side is told, what is on the wire
// and what the queue pairs are modified with. The numbers are those of Linux's cma.c and cm.c.
#include <cerrno>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rdma_cm/rdma_net.hpp"

namespace simverbs::rdma_cm::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kInit = 1;
constexpr std::uint32_t kRtr = 2;
constexpr std::uint32_t kRts = 3;
// enum ibv_qp_attr_mask
constexpr std::uint32_t kState = 1;
constexpr std::uint32_t kAccess = 1U << 3;
constexpr std::uint32_t kPkeyIndex = 1U << 4;
constexpr std::uint32_t kPortNumber = 1U << 5;
constexpr std::uint32_t kAv = 1U << 7;
constexpr std::uint32_t kPathMtu = 1U << 8;
constexpr std::uint32_t kTimeout = 1U << 9;
constexpr std::uint32_t kRetryCount = 1U << 10;
constexpr std::uint32_t kRnrRetry = 1U << 11;
constexpr std::uint32_t kRqPsn = 1U << 12;
constexpr std::uint32_t kMaxRdAtomic = 1U << 13;
constexpr std::uint32_t kMinRnrTimer = 1U << 15;
constexpr std::uint32_t kSqPsn = 1U << 16;
constexpr std::uint32_t kMaxDestRdAtomic = 1U << 17;
constexpr std::uint32_t kDestQpn = 1U << 20;

class Flow : public testing::TestWithParam<LinkLayer> {};

INSTANTIATE_TEST_SUITE_P(Layers, Flow,
                         testing::Values(LinkLayer::kInfiniband, LinkLayer::kEthernet),
                         [](const auto& layer) { return std::string(to_string(layer.param)); });

TEST_P(Flow, ConnectsAndDisconnects) {
    Pair pair(GetParam());
    pair.establish();
    ASSERT_EQ(pair.client.disconnect(pair.id), 0);
    pair.net.run_for(1_ms);
    EXPECT_THAT(pair.server.events(), ElementsAre("DISCONNECTED"));
    EXPECT_THAT(pair.client.events(), IsEmpty()) << "the server has not answered the DREQ";
    ASSERT_EQ(pair.server.disconnect(pair.peer), 0);
    pair.net.run_for(1_ms);
    EXPECT_THAT(pair.client.events(), ElementsAre("DISCONNECTED"));
    pair.net.run();
    EXPECT_THAT(pair.client.events(), ElementsAre("TIMEWAIT_EXIT"));
    EXPECT_THAT(pair.server.events(), ElementsAre("TIMEWAIT_EXIT"));
    EXPECT_EQ(pair.client.destroy(pair.id), std::pair(0, 5U));
    EXPECT_EQ(pair.server.destroy(pair.peer), std::pair(0, 3U));
    EXPECT_EQ(pair.server.destroy(pair.listener), std::pair(0, 1U));
    EXPECT_EQ(pair.client_host.ucma.rdma_cm().size(), 0U);
    EXPECT_EQ(pair.server_host.ucma.size(), 0U);
}

TEST_P(Flow, TheRequestCarriesTheParameters) {
    Pair pair(GetParam());
    pair.request();
    const cm::Req& req = pair.net.last<cm::Req>(0);
    EXPECT_EQ(req.service_id, 0x0000'0000'0106'1D2FU) << "RDMA_PS_TCP and port 7471";
    EXPECT_EQ(req.local_qpn, 0x100U);
    EXPECT_EQ(req.transport_service_type, 0);
    EXPECT_EQ(req.max_cm_retries, 15);
    EXPECT_EQ(req.remote_cm_response_timeout, 20);
    EXPECT_EQ(req.local_cm_response_timeout, 20);
    EXPECT_EQ(req.retry_count, 7);
    EXPECT_EQ(req.rnr_retry_count, 6);
    EXPECT_EQ(req.responder_resources, 4);
    EXPECT_EQ(req.initiator_depth, 8);
    EXPECT_TRUE(req.end_to_end_flow_control);
    EXPECT_EQ(req.pkey, 0xFFFF);
    EXPECT_EQ(req.path_mtu, GetParam() == LinkLayer::kEthernet ? 5 : 4) << "as the path says";
    EXPECT_EQ(req.primary.subnet_local, GetParam() == LinkLayer::kInfiniband);
    EXPECT_EQ(req.primary.local_gid, pair.client_host.gid());
    EXPECT_EQ(req.primary.remote_gid, pair.server_host.gid());
    EXPECT_EQ(req.private_data[1], 0x40) << "IPv4";
    EXPECT_EQ(std::memcmp(req.private_data.data() + 36, "hello", 5), 0);
}

TEST_P(Flow, TheRequestIsReported) {
    Pair pair(GetParam());
    pair.request();
    EXPECT_EQ(pair.asked.event, 4U);
    EXPECT_EQ(pair.asked.uid, 1U) << "the listener's";
    EXPECT_NE(pair.asked.id, pair.listener);
    const rdma_ucm_conn_param& conn = pair.asked.param.conn;
    EXPECT_EQ(conn.private_data_len, 56);
    EXPECT_EQ(std::memcmp(conn.private_data, "hello\0", 6), 0);
    EXPECT_EQ(conn.responder_resources, 8) << "the peer's initiator depth";
    EXPECT_EQ(conn.initiator_depth, 4);
    EXPECT_EQ(conn.flow_control, 1);
    EXPECT_EQ(conn.retry_count, 7);
    EXPECT_EQ(conn.rnr_retry_count, 6);
    EXPECT_EQ(conn.qp_num, 0x100U);
    EXPECT_EQ(conn.srq, 0);
}

TEST_P(Flow, TheReplyIsReported) {
    Pair pair(GetParam());
    pair.request();
    rdma_ucm_accept command{};
    command.uid = 9;
    command.id = pair.peer;
    command.conn_param = connection_parameters(0xFF00'0200, "welcome");
    command.conn_param.responder_resources = 3;
    command.conn_param.initiator_depth = 2;
    command.conn_param.srq = 1;
    command.ece = {.vendor_id = 0x15B3, .attr_mod = 0x1234'5678};
    ASSERT_EQ(pair.server.write(RDMA_USER_CM_CMD_ACCEPT, command).error, 0);
    pair.net.run_for(1_ms);
    const auto event = pair.client.event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->event, 5U);
    const rdma_ucm_conn_param& conn = event->param.conn;
    EXPECT_EQ(conn.private_data_len, 196);
    EXPECT_EQ(std::memcmp(conn.private_data, "welcome", 8), 0);
    EXPECT_EQ(conn.responder_resources, 2);
    EXPECT_EQ(conn.initiator_depth, 3);
    EXPECT_EQ(conn.rnr_retry_count, 6);
    EXPECT_EQ(conn.retry_count, 0) << "a REP has none";
    EXPECT_EQ(conn.srq, 1);
    EXPECT_EQ(conn.qp_num, 0x200U) << "24 bits";
    EXPECT_EQ(event->ece.vendor_id, 0x15B3U);
    EXPECT_EQ(event->ece.attr_mod, 0x1234'5678U);
}

TEST_P(Flow, GivesTheAttributesOfRcQueuePairs) {
    Pair pair(GetParam());
    pair.request();
    const std::uint32_t psn = pair.net.last<cm::Req>(0).starting_psn;
    ASSERT_EQ(pair.server.accept(pair.peer, connection_parameters(0x200)), 0);
    const std::uint32_t peer_psn = pair.net.last<cm::Rep>(1).starting_psn;
    EXPECT_NE(psn, peer_psn);
    pair.net.run_for(1_ms);

    const auto [init_error, init] = pair.client.qp_attr(pair.id, kInit);
    ASSERT_EQ(init_error, 0);
    EXPECT_EQ(init.qp_attr_mask, kState | kAccess | kPkeyIndex | kPortNumber);
    EXPECT_EQ(init.qp_state, kInit);
    EXPECT_EQ(init.qp_access_flags, 2U | 4U | 8U);
    EXPECT_EQ(init.port_num, 1);
    EXPECT_EQ(init.pkey_index, 0);

    const auto [rtr_error, rtr] = pair.client.qp_attr(pair.id, kRtr);
    ASSERT_EQ(rtr_error, 0);
    EXPECT_EQ(rtr.qp_attr_mask,
              kState | kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer);
    EXPECT_EQ(rtr.dest_qp_num, 0x200U);
    EXPECT_EQ(rtr.rq_psn, psn);
    EXPECT_EQ(rtr.max_dest_rd_atomic, 8) << "the peer's initiator depth";
    EXPECT_EQ(rtr.min_rnr_timer, 0);
    EXPECT_EQ(rtr.path_mtu, GetParam() == LinkLayer::kEthernet ? 5U : 4U);
    EXPECT_EQ(rtr.ah_attr.port_num, 1);
    if (GetParam() == LinkLayer::kEthernet) {
        EXPECT_EQ(rtr.ah_attr.is_global, 1);
        EXPECT_EQ(rtr.ah_attr.grh.sgid_index, 3) << "RoCE v2";
        EXPECT_EQ(rtr.ah_attr.grh.hop_limit, 64);
        EXPECT_EQ(rtr.ah_attr.static_rate, 0);
        EXPECT_EQ(rtr.ah_attr.dlid, 0);
        EXPECT_EQ(std::memcmp(rtr.ah_attr.grh.dgid, pair.server_host.gid().bytes.data(), 16), 0);
        EXPECT_EQ(rtr.ah_attr.grh.flow_label, (32768U * 31 + 7471) & 0xFFFFF);
    } else {
        EXPECT_EQ(rtr.ah_attr.is_global, 0);
        EXPECT_EQ(rtr.ah_attr.dlid, 2);
        EXPECT_EQ(rtr.ah_attr.sl, 3);
        EXPECT_EQ(rtr.ah_attr.static_rate, 7);
    }

    const auto [rts_error, rts] = pair.client.qp_attr(pair.id, kRts);
    ASSERT_EQ(rts_error, 0);
    EXPECT_EQ(rts.qp_attr_mask,
              kState | kSqPsn | kRetryCount | kRnrRetry | kMaxRdAtomic | kTimeout);
    EXPECT_EQ(rts.sq_psn, peer_psn);
    EXPECT_EQ(rts.retry_cnt, 7);
    EXPECT_EQ(rts.rnr_retry, 6);
    EXPECT_EQ(rts.max_rd_atomic, 4);
    // 2^15 for the round trip, or 2^17; the peer's delay of 2^10 is less than half of it.
    EXPECT_EQ(rts.timeout, GetParam() == LinkLayer::kEthernet ? 17 : 15);

    const auto [peer_error, peer] = pair.server.qp_attr(pair.peer, kRtr);
    ASSERT_EQ(peer_error, 0);
    EXPECT_EQ(peer.dest_qp_num, 0x100U);
    EXPECT_EQ(peer.rq_psn, peer_psn);
    EXPECT_EQ(peer.ah_attr.dlid, GetParam() == LinkLayer::kEthernet ? 0 : 1);
    EXPECT_EQ(pair.server.qp_attr(pair.peer, kRts).second.sq_psn, psn);
    EXPECT_EQ(pair.server.qp_attr(pair.peer, 6).first, EINVAL) << "ERR takes nothing";
}

TEST(FlowOptions, AttributesBeforeAConnectionAllowNoRemoteAccess) {
    Pair pair;
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    const auto [error, init] = pair.client.qp_attr(id, kInit);
    ASSERT_EQ(error, 0);
    EXPECT_EQ(init.qp_attr_mask, kState | kAccess | kPkeyIndex | kPortNumber);
    EXPECT_EQ(init.qp_access_flags, 0U);
    EXPECT_EQ(pair.client.qp_attr(pair.client.create(RDMA_PS_TCP), kInit).first, EINVAL)
        << "it is bound to no device";
}

TEST(FlowOptions, AnUnreliableConnectionHasFewerAttributes) {
    Pair pair;
    const std::uint32_t listener = pair.server.create(RDMA_PS_IB, 3);
    ASSERT_EQ(pair.server.bind(listener, SocketAddress::inet(0, kPort)), 0);
    ASSERT_EQ(pair.server.listen(listener), 0);
    const std::uint32_t id = pair.client.create(RDMA_PS_IB, 3);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, kPort)), 0);
    ASSERT_EQ(pair.client.route(id), 0);
    pair.net.run_for(1_ms);
    ASSERT_EQ(pair.client.connect(id, connection_parameters(0x100)), 0);
    EXPECT_EQ(pair.net.last<cm::Req>(0).service_id, 0x013F'1D2FU);
    EXPECT_EQ(pair.net.last<cm::Req>(0).transport_service_type, 1);
    pair.net.run_for(1_ms);
    const std::uint32_t peer = pair.server.event()->id;
    ASSERT_EQ(pair.server.accept(peer, connection_parameters(0x200)), 0);
    EXPECT_EQ(pair.server.qp_attr(peer, kRtr).second.qp_attr_mask,
              kState | kAv | kPathMtu | kDestQpn | kRqPsn);
    EXPECT_EQ(pair.server.qp_attr(peer, kRts).second.qp_attr_mask, kState | kSqPsn);
}

TEST(FlowOptions, AnXrcConnectionSplitsTheAttributes) {
    Pair pair;
    const std::uint32_t listener = pair.server.create(RDMA_PS_IB, 10);
    ASSERT_EQ(pair.server.bind(listener, SocketAddress::inet(0, kPort)), 0);
    ASSERT_EQ(pair.server.listen(listener), 0);
    const std::uint32_t id = pair.client.create(RDMA_PS_IB, 9);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, kPort)), 0);
    ASSERT_EQ(pair.client.route(id), 0);
    pair.net.run_for(1_ms);
    ASSERT_EQ(pair.client.connect(id, connection_parameters(0x100)), 0);
    pair.net.run_for(1_ms);
    const std::uint32_t peer = pair.server.event()->id;
    ASSERT_EQ(pair.server.accept(peer, connection_parameters(0x200)), 0);
    pair.net.run_for(1_ms);
    EXPECT_THAT(pair.client.events(),
                ElementsAre("ADDR_RESOLVED", "ROUTE_RESOLVED", "CONNECT_RESPONSE"));
    EXPECT_EQ(pair.client.qp_attr(id, kRts).second.qp_attr_mask,
              kState | kSqPsn | kRetryCount | kRnrRetry | kMaxRdAtomic | kTimeout);
    EXPECT_EQ(pair.client.qp_attr(id, kRtr).second.qp_attr_mask,
              kState | kAv | kPathMtu | kDestQpn | kRqPsn);
    EXPECT_EQ(pair.server.qp_attr(peer, kRtr).second.qp_attr_mask,
              kState | kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer);
    EXPECT_EQ(pair.server.qp_attr(peer, kRts).second.qp_attr_mask, kState | kSqPsn | kTimeout);
}

TEST(FlowOptions, TheAckTimeoutIsTheProgramsOwn) {
    Pair pair(LinkLayer::kEthernet);
    pair.listener = pair.server.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort));
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    const std::array<std::uint8_t, 1> timeout{12};
    const std::array<std::uint8_t, 1> tos{0x60};
    ASSERT_EQ(pair.client.set_option(id, 0, 3, timeout), 0);
    ASSERT_EQ(pair.client.set_option(id, 0, 0, tos), 0);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, kPort)), 0);
    ASSERT_EQ(pair.client.route(id), 0);
    ASSERT_EQ(pair.client.connect(id, connection_parameters(0x100)), 0);
    EXPECT_EQ(pair.net.last<cm::Req>(0).primary.traffic_class, 0x60);
    pair.net.run_for(1_ms);
    ASSERT_EQ(pair.server.accept(pair.server.event()->id, connection_parameters(0x200)), 0);
    pair.net.run_for(1_ms);
    EXPECT_EQ(pair.client.qp_attr(id, kRts).second.timeout, 12);
}

TEST(FlowOptions, AMessageThatComesFirstEstablishes) {
    Pair pair;
    pair.request();
    ASSERT_EQ(pair.server.accept(pair.peer, connection_parameters(0x200)), 0);
    EXPECT_EQ(pair.server.notify(pair.peer, 3), EINVAL);
    EXPECT_EQ(pair.server.notify(pair.peer, 4), 0);
    EXPECT_THAT(pair.server.events(), ElementsAre("ESTABLISHED"));
    EXPECT_EQ(pair.server.notify(pair.peer, 4), EISCONN);
    EXPECT_EQ(pair.server.notify(pair.peer, 5), EINVAL) << "there is no alternate path";
    EXPECT_EQ(pair.client.notify(pair.id, 4), EINVAL);
}

TEST(FlowOptions, APathThatTheProgramKnowsIsTaken) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, kPort)), 0);
    PathRecord path{.dgid = pair.server_host.gid(),
                    .sgid = pair.client_host.gid(),
                    .dlid = fabric::Lid(2),
                    .slid = fabric::Lid(1),
                    .pkey = 0xFFFF,
                    .sl = 5,
                    .mtu = 1};
    std::array<ib_path_rec_data, 2> data{};
    data[0].flags = IB_PATH_GMP;
    data[1].flags = 1 | 2 | 8 | 32;
    const auto packed = pack(path);
    std::memcpy(data[1].path_rec, packed.data(), packed.size());
    std::array<std::uint8_t, sizeof data> bytes{};
    std::memcpy(bytes.data(), data.data(), sizeof data);
    const std::span<const std::uint8_t> value(bytes);
    EXPECT_EQ(pair.client.set_option(id, 1, 1, value.first(72)), EINVAL) << "not both directions";
    EXPECT_EQ(pair.client.set_option(id, 1, 1, value.first(100)), EINVAL);
    EXPECT_EQ(pair.client.set_option(id, 1, 1, value.first(0)), EINVAL);
    EXPECT_EQ(pair.client.set_option(id, 1, 2, value), ENOSYS);
    EXPECT_EQ(pair.client.set_option(id, 2, 1, value), ENOSYS);
    ASSERT_EQ(pair.client.set_option(id, 1, 1, value), 0);
    EXPECT_THAT(pair.client.events(), ElementsAre("ADDR_RESOLVED", "ROUTE_RESOLVED"));
    EXPECT_EQ(pair.client.set_option(id, 1, 1, value), EINVAL) << "it has a path";
    ASSERT_EQ(pair.client.connect(id, connection_parameters(1)), 0);
    EXPECT_EQ(pair.net.last<cm::Req>(0).primary.sl, 5);
    EXPECT_EQ(pair.net.last<cm::Req>(0).path_mtu, 1);
}

TEST(FlowOptions, ThePathQueryNamesServiceAndClass) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    const std::array<std::uint8_t, 1> tos{0x20};
    ASSERT_EQ(pair.client.set_option(id, 0, 0, tos), 0);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, kPort)), 0);
    ASSERT_EQ(pair.client.route(id, 1500), 0);
    ASSERT_EQ(pair.client_host.queries.size(), 1U);
    const PathQuery& query = pair.client_host.queries[0];
    EXPECT_EQ(query.service_id, 0x0106'1D2FU);
    EXPECT_EQ(query.qos_class, 0x20);
    EXPECT_FALSE(query.traffic_class);
    EXPECT_EQ(query.dgid, pair.server_host.gid());
    EXPECT_EQ(query.local.gid, pair.client_host.gid());
    EXPECT_EQ(query.timeout, 1500_ms);
}

TEST(FlowOptions, SameSeedSamePsn) {
    Pair first;
    Pair second;
    first.request();
    second.request();
    EXPECT_EQ(first.net.last<cm::Req>(0).starting_psn, second.net.last<cm::Req>(0).starting_psn);
}

// A REQ that is repeated while the program thinks is answered by an MRA, which gives it 69 s.
TEST(FlowOptions, AProgramThatThinksLongIsWaitedFor) {
    Pair pair;
    pair.request();
    pair.net.run_for(60_s);
    EXPECT_EQ(pair.net.count(1, CmMessage::kMra), 1);
    ASSERT_EQ(pair.server.accept(pair.peer, connection_parameters(0x200)), 0);
    pair.net.run_for(1_ms);
    EXPECT_THAT(pair.client.events(), ElementsAre("CONNECT_RESPONSE"));
}

}  // namespace
}  // namespace simverbs::rdma_cm::test
