// Datagrams by rdma_cm: service id resolution, and multicast groups.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <simverbs/rdmacm_gtest.hpp>

namespace rdmacm_test {
namespace {

using simverbs::CompletesWith;
using simverbs::expect_event;
using simverbs::host_address;

constexpr std::uint16_t kPort = 7471;
constexpr std::uint32_t kGrh = 40;

// An id with a UD queue pair and memory.
struct DatagramEnd {
    rdma_cm_id* id = nullptr;
    ibv_cq* cq = nullptr;
    ibv_mr* mr = nullptr;
    std::array<std::uint8_t, 256> bytes{};

    void make_queue_pair() {
        cq = ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0);
        ASSERT_NE(cq, nullptr);
        mr = ibv_reg_mr(id->pd, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE);
        ASSERT_NE(mr, nullptr);
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_UD;
        init.send_cq = init.recv_cq = cq;
        init.sq_sig_all = 1;
        init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
        ASSERT_EQ(rdma_create_qp(id, nullptr, &init), 0) << std::strerror(errno);
    }
    void receive() {
        ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), 128, mr->lkey};
        ibv_recv_wr request{};
        request.sg_list = &piece;
        request.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_recv(id->qp, &request, &bad), 0);
    }
    void send(ibv_ah* to, const rdma_ud_param& peer) {
        ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), 32, mr->lkey};
        ibv_send_wr request{};
        request.opcode = IBV_WR_SEND;
        request.sg_list = &piece;
        request.num_sge = 1;
        request.wr.ud.ah = to;
        request.wr.ud.remote_qpn = peer.qp_num;
        request.wr.ud.remote_qkey = peer.qkey;
        ibv_send_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_send(id->qp, &request, &bad), 0) << simverbs_last_error();
    }
    void destroy() const {
        if (id->qp != nullptr) {
            rdma_destroy_qp(id);
        }
        EXPECT_EQ(mr == nullptr ? 0 : ibv_dereg_mr(mr), 0);
        EXPECT_EQ(cq == nullptr ? 0 : ibv_destroy_cq(cq), 0);
        EXPECT_EQ(rdma_destroy_id(id), 0);
    }
};

class Datagrams : public testing::TestWithParam<const char*> {
  protected:
    Datagrams() : world({.topology = GetParam()}) {}
    void SetUp() override {
        channel = rdma_create_event_channel();
        ASSERT_NE(channel, nullptr);
    }
    void TearDown() override { rdma_destroy_event_channel(channel); }
    rdma_cm_id* make() {
        rdma_cm_id* made = nullptr;
        EXPECT_EQ(rdma_create_id(channel, &made, nullptr, RDMA_PS_UDP), 0);
        return made;
    }
    // Takes the next event, with the parameters of a datagram queue pair.
    rdma_ud_param next(rdma_cm_event_type wanted) {
        rdma_cm_event* event = nullptr;
        EXPECT_EQ(rdma_get_cm_event(channel, &event), 0);
        EXPECT_STREQ(rdma_event_str(event->event), rdma_event_str(wanted)) << event->status;
        const rdma_ud_param parameters = event->param.ud;
        rdma_ack_cm_event(event);
        return parameters;
    }

    simverbs::World world;
    rdma_event_channel* channel = nullptr;
};

TEST_P(Datagrams, APeerIsFoundAndHears) {
    rdma_cm_id* const listener = make();
    sockaddr_in at = host_address(0, kPort);
    ASSERT_EQ(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&at)), 0);
    ASSERT_EQ(rdma_listen(listener, 1), 0);
    DatagramEnd client{make()};
    ASSERT_EQ(rdma_resolve_addr(client.id, nullptr, reinterpret_cast<sockaddr*>(&at), 1000), 0);
    expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    client.make_queue_pair();
    ASSERT_EQ(rdma_resolve_route(client.id, 1000), 0);
    expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    rdma_conn_param parameters{};
    ASSERT_EQ(rdma_connect(client.id, &parameters), 0) << std::strerror(errno);
    DatagramEnd server{expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST)};
    ASSERT_NE(server.id, nullptr);
    server.make_queue_pair();
    server.receive();
    parameters.qp_num = server.id->qp->qp_num;
    ASSERT_EQ(rdma_accept(server.id, &parameters), 0) << std::strerror(errno);
    rdma_ud_param peer = next(RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_EQ(peer.qp_num, server.id->qp->qp_num);
    ibv_ah* const to = ibv_create_ah(client.id->pd, &peer.ah_attr);
    ASSERT_NE(to, nullptr);
    client.bytes.fill(0x33);
    client.send(to, peer);
    EXPECT_THAT(server.cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_THAT(client.cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(server.bytes[kGrh], 0x33);
    EXPECT_EQ(ibv_destroy_ah(to), 0);
    client.destroy();
    server.destroy();
    EXPECT_EQ(rdma_destroy_id(listener), 0);
}

TEST_P(Datagrams, AGroupHears) {
    std::array<DatagramEnd, 2> members{};
    sockaddr_in group{};
    group.sin_family = AF_INET;
    inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
    rdma_ud_param joined{};
    for (unsigned host = 0; host < members.size(); ++host) {
        DatagramEnd& member = members.at(host);
        member.id = make();
        sockaddr_in at = host_address(host, 0);
        ASSERT_EQ(rdma_bind_addr(member.id, reinterpret_cast<sockaddr*>(&at)), 0);
        member.make_queue_pair();
        ASSERT_EQ(rdma_join_multicast(member.id, reinterpret_cast<sockaddr*>(&group), nullptr), 0)
            << std::strerror(errno);
        joined = next(RDMA_CM_EVENT_MULTICAST_JOIN);
    }
    members[0].receive();
    members[1].bytes.fill(0x44);
    ibv_ah* const to = ibv_create_ah(members[1].id->pd, &joined.ah_attr);
    ASSERT_NE(to, nullptr);
    joined.qp_num = 0xFFFFFF;
    members[1].send(to, joined);
    EXPECT_THAT(members[0].cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(members[0].bytes[kGrh], 0x44);
    EXPECT_EQ(ibv_destroy_ah(to), 0);
    for (DatagramEnd& member : members) {
        EXPECT_EQ(rdma_leave_multicast(member.id, reinterpret_cast<sockaddr*>(&group)), 0);
        member.destroy();
    }
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, Datagrams, testing::Values("star:2", "eth-star:2"));

}  // namespace
}  // namespace rdmacm_test
