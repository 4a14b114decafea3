// Ethernet ports through verbs.h: what they report, how a queue pair is addressed, that data moves.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class Roce : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
        ASSERT_EQ(simverbs_set_topology("eth-star:2"), 0) << simverbs_last_error();
    }

    static ibv_gid gid_of(const End& end, int index) {
        ibv_gid gid{};
        EXPECT_EQ(ibv_query_gid(end.context, 1, index, &gid), 0);
        return gid;
    }
    // Returns the answer of modify_qp from INIT to RTR to an attribute that `change` has spoilt.
    template <class Change>
    int rtr_answer(Change&& change, int mask = kRtrMask) {
        EXPECT_EQ(a->to_state(IBV_QPS_RESET), 0);
        ibv_qp_attr attr = init_attr({});
        EXPECT_EQ(ibv_modify_qp(a->qp, &attr, kInitMask), 0);
        attr = rtr_attr(*b, {});
        change(attr);
        return ibv_modify_qp(a->qp, &attr, mask);
    }
};

TEST_F(Roce, APortSaysThatItIsEthernet) {
    connect();
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(a->context, 1, &port), 0);
    EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(port.phys_state, 5);
    EXPECT_EQ(port.active_mtu, IBV_MTU_4096);
    EXPECT_EQ(port.max_mtu, IBV_MTU_4096);
    EXPECT_EQ(port.lid, 0);
    EXPECT_EQ(port.sm_lid, 0);
    EXPECT_EQ(port.pkey_tbl_len, 1);
    EXPECT_EQ(port.flags, IBV_QPF_GRH_REQUIRED);
    EXPECT_EQ(port.port_cap_flags, static_cast<unsigned>(IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS));
}

TEST_F(Roce, TheGidTableHasBothVersionsOfBothAddresses) {
    connect();
    constexpr int kEntries = 8;
    ibv_gid_entry entries[kEntries];
    ASSERT_EQ(ibv_query_gid_table(b->context, entries, kEntries, 0), 4);
    for (std::uint32_t i = 0; i < 4; ++i) {
        EXPECT_EQ(entries[i].gid_index, i);
        EXPECT_EQ(entries[i].port_num, 1U);
        EXPECT_EQ(entries[i].gid_type,
                  static_cast<unsigned>(i % 2 == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2));
        EXPECT_NE(entries[i].ndev_ifindex, 0U);
        const ibv_gid gid = gid_of(*b, static_cast<int>(i));
        EXPECT_EQ(std::memcmp(gid.raw, entries[i].gid.raw, sizeof gid.raw), 0);
    }
    const std::uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 77, 0, 1};
    EXPECT_EQ(std::memcmp(entries[2].gid.raw, mapped, sizeof mapped), 0);
    EXPECT_EQ(entries[0].gid.raw[0], 0xFE);
    EXPECT_EQ(entries[0].gid.raw[1], 0x80);
    ibv_gid_entry entry{};
    EXPECT_EQ(ibv_query_gid_ex(b->context, 1, 4, &entry, 0), ENODATA);
}

TEST_F(Roce, ATableThatIsTooSmallForTheGidsIsEinval) {
    connect();
    ibv_gid_entry entry{};
    errno = 0;
    EXPECT_EQ(ibv_query_gid_table(a->context, &entry, 1, 0), -EINVAL);
    EXPECT_EQ(errno, EINVAL);
}

// The global header that a datagram brings by each GID, and the handle that is made of it.
TEST_F(Roce, ADatagramBringsTheHeaderOfItsNetworkLayer) {
    constexpr std::uint8_t kIpv6 = 0x60;
    constexpr std::uint8_t kUdp = 17;
    for (std::uint8_t index = 0; index < 4; ++index) {
        SCOPED_TRACE(index);
        Connection with;
        with.type = IBV_QPT_UD;
        with.gid_index = index;
        connect(with);
        ibv_ah_attr attr = rtr_attr(*b, with).ah_attr;
        attr.grh.hop_limit = 33;
        attr.grh.traffic_class = 0x60;
        ibv_ah* ah = ibv_create_ah(a->pd, &attr);
        ASSERT_NE(ah, nullptr);
        std::memset(b->at(), 0xEE, 40);
        ASSERT_EQ(b->receive(1, {b->range(0, 256)}), 0);
        ASSERT_EQ(
            Request(IBV_WR_SEND).from(a->range(0, 12)).to(ah, b->qp->qp_num, with.qkey).post(*a),
            0);
        ibv_wc wc = b->wait();
        const std::uint8_t* header = b->at();
        const bool over_ipv4 = index == 3;
        constexpr std::uint8_t kPacketKind[] = {0, 9, 0, 10};  // v1; UDP over IPv6; UDP over IPv4
        EXPECT_EQ(wc.sl, kPacketKind[index]);
        if (over_ipv4) {
            EXPECT_EQ(std::count(header, header + 20, 0), 20);
            EXPECT_EQ(header[20], 0x45);
            EXPECT_EQ(header[21], 0x60);
            EXPECT_EQ(header[22] << 8 | header[23], 20 + 8 + 12 + 8 + 12 + 4);  // to the ICRC
            EXPECT_EQ(header[28], 33);
            EXPECT_EQ(header[29], kUdp);
            EXPECT_EQ(std::memcmp(header + 36, attr.grh.dgid.raw + 12, 4), 0);
            std::uint32_t sum = 0;
            for (int i = 20; i < 40; i += 2) {
                sum += static_cast<std::uint32_t>(header[i] << 8 | header[i + 1]);
            }
            EXPECT_EQ((sum & 0xFFFF) + (sum >> 16), 0xFFFFU);
        } else {
            EXPECT_EQ(header[0] & 0xF0, kIpv6);
            EXPECT_EQ(header[6], index == 1 ? kUdp : 0x1B);
            EXPECT_EQ(header[7], 33);
            EXPECT_EQ(header[4] << 8 | header[5], (index == 1 ? 8 : 0) + 12 + 8 + 12 + 4);
        }
        ibv_ah_attr back{};
        ASSERT_EQ(
            ibv_init_ah_from_wc(b->context, 1, &wc, reinterpret_cast<ibv_grh*>(b->at()), &back), 0);
        EXPECT_EQ(back.grh.sgid_index, index);
        EXPECT_EQ(back.grh.hop_limit, 33);
        EXPECT_EQ(back.grh.traffic_class, 0x60);
        const ibv_gid sender = gid_of(*a, index);
        EXPECT_EQ(std::memcmp(back.grh.dgid.raw, sender.raw, sizeof sender.raw), 0);
        EXPECT_EQ(ibv_destroy_ah(ah), 0);
        a.reset();
        b.reset();
    }
}

TEST_F(Roce, OneProgramHasOnePkey) {
    connect();
    __be16 pkey = 0;
    EXPECT_EQ(ibv_query_pkey(a->context, 1, 0, &pkey), 0);
    EXPECT_EQ(pkey, 0xFFFF);
    EXPECT_EQ(ibv_query_pkey(a->context, 1, 1, &pkey), -1);
}

TEST_F(Roce, DataMovesByEveryGid) {
    for (std::uint8_t index = 0; index < 4; ++index) {
        Connection with;
        with.gid_index = index;
        connect(with);
        expect_works();
        a.reset();
        b.reset();
    }
}

// Where switches have several ways to choose from.
TEST_F(Roce, DataPassesSeveralSwitches) {
    ASSERT_EQ(simverbs_set_topology("eth-fat-tree2:2x2"), 0) << simverbs_last_error();
    End from(0, {});
    End to(3, {});
    bring_up(from, to, {});
    std::fill_n(from.at(0), 64, 0x5A);
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .from(from.range(0, 64))
                  .to(to.address(4096), to.mr->rkey)
                  .post(from),
              0);
    EXPECT_EQ(from.wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(from.at(0), to.at(4096), 64), 0);
}

TEST_F(Roce, APathNeedsAGrhAndANeighbour) {
    connect();
    EXPECT_EQ(rtr_answer([](ibv_qp_attr&) {}), 0);
    EXPECT_EQ(rtr_answer([](ibv_qp_attr& attr) { attr.ah_attr.is_global = 0; }), EINVAL);
    EXPECT_EQ(rtr_answer([](ibv_qp_attr& attr) { attr.ah_attr.grh.sgid_index = 5; }), ENODATA);
    EXPECT_EQ(rtr_answer([](ibv_qp_attr& attr) { attr.ah_attr.grh.dgid = {}; }), EINVAL);
    EXPECT_EQ(rtr_answer([](ibv_qp_attr& attr) { attr.ah_attr.grh.dgid.raw[12] = 203; }),
              ETIMEDOUT);
    EXPECT_EQ(rtr_answer([](ibv_qp_attr& attr) { attr.ah_attr.port_num = 2; }), EINVAL);
    EXPECT_EQ(rtr_answer([](ibv_qp_attr&) {}, kRtrMask | IBV_QP_ALT_PATH), EINVAL);
    EXPECT_EQ(a->state(), IBV_QPS_INIT);
}

TEST_F(Roce, FramesOf1500BytesLeave1024) {
    ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
    ASSERT_EQ(simverbs_set_topology("eth-star:2,mtu=1500B"), 0) << simverbs_last_error();
    connect();
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(a->context, 1, &port), 0);
    EXPECT_EQ(port.active_mtu, IBV_MTU_1024);
    EXPECT_EQ(port.max_mtu, IBV_MTU_4096);
    EXPECT_EQ(rtr_answer([](ibv_qp_attr& attr) { attr.path_mtu = IBV_MTU_2048; }), EINVAL);
    EXPECT_EQ(rtr_answer([](ibv_qp_attr& attr) { attr.path_mtu = IBV_MTU_1024; }), 0);
}

// UCX passes ~0; devices cut it (mlx5_create_ah).
TEST_F(Roce, AFlowLabelIsCutToTwentyBits) {
    for (const char* personality : {"spec", "connectx6", "rxe"}) {
        SCOPED_TRACE(personality);
        SetUp();
        ASSERT_EQ(simverbs_set_personality(personality), 0);
        connect();
        const auto all_bits = [](ibv_qp_attr& attr) { attr.ah_attr.grh.flow_label = ~0U; };
        ASSERT_EQ(rtr_answer(all_bits), 0);
        Connection with;
        with.type = IBV_QPT_UD;
        a.reset();
        b.reset();
        connect(with);
        ibv_qp_attr attr = rtr_attr(*b, {});
        attr.ah_attr.grh.flow_label = ~0U;
        ibv_ah* ah = ibv_create_ah(a->pd, &attr.ah_attr);
        ASSERT_NE(ah, nullptr) << std::strerror(errno);
        ASSERT_EQ(b->receive(1, {b->range(0, 256)}), 0);
        EXPECT_EQ(
            Request(IBV_WR_SEND).from(a->range(0, 12)).to(ah, b->qp->qp_num, with.qkey).post(*a),
            0);
        EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
        EXPECT_EQ(ibv_destroy_ah(ah), 0);
        a.reset();
        b.reset();
    }
}

TEST_F(Roce, ALinkThatGoesDownIsAPortThatGoesDown) {
    connect();
    a->events();
    ASSERT_EQ(simverbs_set_link("h0-s0", 0), 0) << simverbs_last_error();
    pass(1);
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(a->context, 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_DOWN);
    ASSERT_EQ(simverbs_set_link("h0-s0", 1), 0) << simverbs_last_error();
    pass(1);
    EXPECT_EQ(a->events(),
              (std::vector<ibv_event_type>{IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE}));
    expect_works();
}

TEST_F(Roce, AGroupIsAGidWhateverTheLid) {
    constexpr std::uint32_t kGroupQpn = 0xFFFFFF;
    constexpr std::uint32_t kGrh = 40;
    Connection with;
    with.type = IBV_QPT_UD;
    connect(with);
    ibv_ah_attr attr = rtr_attr(*b, with).ah_attr;
    const ibv_gid group{{0xFF, 0x01, 0, 0, 0, 2, 0xC9, 0x85, 0, 0, 0, 0, 0, 0, 0, 1}};
    attr.grh.dgid = group;
    ASSERT_EQ(ibv_attach_mcast(b->qp, &group, 0), 0) << "perftest gives 0";
    EXPECT_EQ(ibv_attach_mcast(b->qp, &group, 0xC001), 0) << "the same group";
    ibv_ah* ah = ibv_create_ah(a->pd, &attr);
    ASSERT_NE(ah, nullptr);
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    std::memcpy(a->at(), "group", 5);
    ASSERT_EQ(Request(IBV_WR_SEND).from(a->range(0, 5)).to(ah, kGroupQpn, with.qkey).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(b->at(kGrh), "group", 5), 0);
    EXPECT_EQ(ibv_detach_mcast(b->qp, &group, 7), 0);
    EXPECT_EQ(ibv_detach_mcast(b->qp, &group, 0), EINVAL);
    const ibv_gid unicast = gid_of(*b, 3);
    EXPECT_EQ(ibv_attach_mcast(b->qp, &unicast, 0), EINVAL);
    const ibv_gid mapped{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 239, 1, 2, 3}};
    EXPECT_EQ(ibv_attach_mcast(b->qp, &mapped, 0), 0);
    EXPECT_EQ(ibv_detach_mcast(b->qp, &mapped, 0), 0);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

TEST_F(Roce, ResolvesANeighbour) {
    connect();
    ibv_ah_attr attr = rtr_attr(*b, {}).ah_attr;
    std::uint8_t mac[6] = {};
    std::uint16_t vlan = 0;
    EXPECT_EQ(ibv_resolve_eth_l2_from_gid(a->context, &attr, mac, &vlan), 0);
    EXPECT_EQ(vlan, 0xFFFF);
    // Its link-local GID is made of the same address.
    const ibv_gid link_local = gid_of(*b, 0);
    EXPECT_EQ(mac[0], link_local.raw[8] ^ 0x02U);
    EXPECT_EQ(std::memcmp(mac + 1, link_local.raw + 9, 2), 0);
    EXPECT_EQ(std::memcmp(mac + 3, link_local.raw + 13, 3), 0);
    EXPECT_EQ(ibv_resolve_eth_l2_from_gid(a->context, &attr, mac, nullptr), 0);
    attr.grh.dgid.raw[12] = 203;
    EXPECT_EQ(ibv_resolve_eth_l2_from_gid(a->context, &attr, mac, &vlan), -EHOSTUNREACH);
    attr.grh.dgid = link_local;
    EXPECT_EQ(ibv_resolve_eth_l2_from_gid(a->context, &attr, mac, &vlan), -EINVAL);
    attr.port_num = 2;
    EXPECT_EQ(ibv_resolve_eth_l2_from_gid(a->context, &attr, mac, &vlan), -1);
}

TEST_F(Roce, InAVlan) {
    ASSERT_EQ(simverbs_restart(), 0);
    ASSERT_EQ(simverbs_set_topology("eth-star:2,vlans=100"), 0) << simverbs_last_error();
    Connection with;
    with.gid_index = 7;
    connect(with);
    expect_works();
    ibv_gid_entry entries[16];
    ASSERT_EQ(ibv_query_gid_table(b->context, entries, 16, 0), 8);
    const std::uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 78, 0, 1};
    EXPECT_EQ(std::memcmp(entries[7].gid.raw, mapped, sizeof mapped), 0);
    EXPECT_EQ(entries[7].gid_type, static_cast<unsigned>(IBV_GID_TYPE_ROCE_V2));
    EXPECT_NE(entries[7].ndev_ifindex, 0U);

    ibv_ah_attr attr = rtr_attr(*b, with).ah_attr;
    std::uint8_t mac[6] = {};
    std::uint16_t vlan = 0;
    EXPECT_EQ(ibv_resolve_eth_l2_from_gid(a->context, &attr, mac, &vlan), 0);
    EXPECT_EQ(vlan, 100);
    attr.grh.sgid_index = 3;
    EXPECT_EQ(ibv_resolve_eth_l2_from_gid(a->context, &attr, mac, &vlan), -EHOSTUNREACH);
    attr.grh.dgid = gid_of(*b, 3);
    EXPECT_EQ(ibv_resolve_eth_l2_from_gid(a->context, &attr, mac, &vlan), 0);
    EXPECT_EQ(vlan, 0xFFFF);
}

TEST_F(Roce, AnInfinibandPortHasNoNeighbours) {
    ASSERT_EQ(simverbs_restart(), 0);
    ASSERT_EQ(simverbs_set_topology("vpi-pair"), 0) << simverbs_last_error();
    connect();
    expect_works();
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(a->context, 1, &port), 0);
    EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
    ASSERT_EQ(ibv_query_port(a->context, 2, &port), 0);
    EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
    ibv_ah_attr attr{};
    attr.port_num = 1;
    attr.grh.dgid = gid_of(*b, 0);
    std::uint8_t mac[6] = {};
    EXPECT_EQ(ibv_resolve_eth_l2_from_gid(a->context, &attr, mac, nullptr), -EINVAL);
}

}  // namespace
}  // namespace verbs_test
