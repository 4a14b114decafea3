// Two hosts on Ethernet with a queue pair of raw packets each, and rules that steer frames.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "two_hosts.hpp"

namespace verbs_test {

inline constexpr std::uint32_t kFrameBytes = 100;
inline constexpr std::size_t kInbox = 65536;

// An attribute followed by its specifications, as ibv_create_flow wants them.
template <class... Specs>
struct Rule {
    ibv_flow_attr attr{};
    std::array<std::byte, (sizeof(Specs) + ... + 0)> bytes{};

    explicit Rule(const Specs&... specs) {
        attr.type = IBV_FLOW_ATTR_NORMAL;
        attr.port = 1;
        attr.size = sizeof attr + sizeof bytes;
        attr.num_of_specs = sizeof...(Specs);
        std::size_t offset = 0;
        ((std::memcpy(bytes.data() + offset, &specs, sizeof specs), offset += sizeof specs), ...);
    }
};

template <class Spec>
Spec spec_of(ibv_flow_spec_type type) {
    Spec spec{};
    spec.type = type;
    spec.size = sizeof spec;
    return spec;
}

class RawPackets : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
        ASSERT_EQ(simverbs_set_topology("eth-pair,mtu=1500B"), 0) << simverbs_last_error();
        connect();
        for (End* end : {a.get(), b.get()}) {
            ibv_qp*& raw = end == a.get() ? sender : receiver;
            raw = make(*end);
            ASSERT_NE(raw, nullptr);
            start(raw);
            end->drain();
        }
    }
    void TearDown() override {
        for (ibv_flow* flow : flows) {
            EXPECT_EQ(ibv_destroy_flow(flow), 0);
        }
        EXPECT_EQ(ibv_destroy_qp(sender), 0);
        EXPECT_EQ(ibv_destroy_qp(receiver), 0);
        TwoHosts::TearDown();
    }

    static ibv_qp* make(End& end) {
        ibv_qp_init_attr init = {};
        init.send_cq = init.recv_cq = end.cq;
        init.cap = Connection{}.cap;
        init.qp_type = IBV_QPT_RAW_PACKET;
        return ibv_create_qp(end.pd, &init);
    }
    static void start(ibv_qp* qp) {
        ibv_qp_attr attr{};
        attr.port_num = 1;
        attr.qp_state = IBV_QPS_INIT;
        ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
        attr.qp_state = IBV_QPS_RTR;
        ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
        attr.qp_state = IBV_QPS_RTS;
        ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    }

    template <class R>
    int steer(R rule) {
        errno = 0;
        ibv_flow* flow = ibv_create_flow(receiver, &rule.attr);
        if (flow == nullptr) {
            return errno;
        }
        flows.push_back(flow);
        return 0;
    }

    static void mac_of(const End& end, std::uint8_t* mac) {
        ibv_gid gid{};
        EXPECT_EQ(ibv_query_gid(end.context, 1, 0, &gid), 0);
        mac[0] = gid.raw[8] ^ 0x02U;
        std::copy_n(gid.raw + 9, 2, mac + 1);
        std::copy_n(gid.raw + 13, 3, mac + 3);
    }
    // An UDP datagram from port 1000 to port 2000 over IPv4, without checksums.
    void write_datagram() {
        std::uint8_t* frame = a->at();
        std::memset(frame, 0x5A, kFrameBytes);
        mac_of(*b, frame);
        mac_of(*a, frame + 6);
        const std::uint8_t headers[] = {0x08, 0x00, 0x45, 0x00, 0,    86,   0, 1,  0,   0,
                                        64,   17,   0,    0,    127,  77,   0, 0,  127, 77,
                                        0,    1,    0x03, 0xE8, 0x07, 0xD0, 0, 66, 0,   0};
        std::copy(std::begin(headers), std::end(headers), frame + 12);
    }
    // The same with a customer VLAN tag and four bytes less of data.
    void write_tagged_datagram(std::uint16_t tag) {
        write_datagram();
        std::uint8_t* frame = a->at();
        std::memmove(frame + 16, frame + 12, kFrameBytes - 16);
        const std::uint8_t header[] = {0x81, 0x00, static_cast<std::uint8_t>(tag >> 8U),
                                       static_cast<std::uint8_t>(tag & 0xFFU)};
        std::copy(std::begin(header), std::end(header), frame + 12);
        frame[21] -= 4;  // lengths of IPv4 and UDP
        frame[43] -= 4;
    }
    static int post_receive(ibv_qp* qp, End& end, std::uint64_t id) {
        ibv_sge segment = end.range(kInbox, 4096);
        ibv_recv_wr wr{};
        ibv_recv_wr* bad = nullptr;
        wr.wr_id = id;
        wr.sg_list = &segment;
        wr.num_sge = 1;
        return ibv_post_recv(qp, &wr, &bad);
    }
    int post_send(unsigned flags = IBV_SEND_SIGNALED, ibv_wr_opcode opcode = IBV_WR_SEND) {
        ibv_sge segment = a->range(0, kFrameBytes);
        ibv_send_wr wr{};
        ibv_send_wr* bad = nullptr;
        wr.wr_id = 1;
        wr.sg_list = &segment;
        wr.num_sge = 1;
        wr.opcode = opcode;
        wr.send_flags = flags;
        return ibv_post_send(sender, &wr, &bad);
    }
    // Returns true if the datagram, sent now, comes to the receiver.
    bool arrives() {
        EXPECT_EQ(post_receive(receiver, *b, 9), 0);
        EXPECT_EQ(post_send(), 0);
        EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
        pass(1);
        return !b->drain().empty();
    }
    bool arrives_by(const ibv_flow_spec_eth& eth) { return arrives_by_rule(Rule(eth)); }
    template <class R>
    bool arrives_by_rule(const R& rule) {
        EXPECT_EQ(steer(rule), 0);
        const bool came = arrives();
        EXPECT_EQ(ibv_destroy_flow(flows.back()), 0);
        flows.pop_back();
        return came;
    }
    ibv_flow_spec_eth eth_to_b() {
        auto eth = spec_of<ibv_flow_spec_eth>(IBV_FLOW_SPEC_ETH);
        mac_of(*b, eth.val.dst_mac);
        std::fill_n(eth.mask.dst_mac, 6, 0xFF);
        return eth;
    }

    ibv_qp* sender = nullptr;
    ibv_qp* receiver = nullptr;
    std::vector<ibv_flow*> flows;
};

}  // namespace verbs_test
