// RC over Ethernet: addressing, what arrives and what does not, and what a frame weighs.
#include <cerrno>

#include <gmock/gmock.h>

#include "fabric/net/ethernet.hpp"

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;

PairOptions on_ethernet(std::uint8_t gid_index = 3, std::string topology = "eth-pair") {
    return {.topology = std::move(topology), .gid_index = gid_index};
}

// Returns the answer to INIT to RTR for a path that `change` has spoilt.
template <class Change>
int rtr_answer(Pair& pair, Change&& change) {
    const QueuePairHandle qp = pair.a.make_qp();
    EXPECT_EQ(qp.modify_to(QpState::kInit, kInitAttrs, init_values(pair.options())), 0);
    QpValues values = rtr_values(pair.options(), 0, pair.b.qp.qpn());
    values.path = pair.b.path_to();
    change(values.path);
    return qp.modify_to(QpState::kRtr, kRtrAttrs, values);
}

class EveryGid : public testing::TestWithParam<std::uint8_t> {};
INSTANTIATE_TEST_SUITE_P(Roce, EveryGid, testing::Values(0, 1, 2, 3));
INSTANTIATE_TEST_SUITE_P(RoceInAVlan, EveryGid, testing::Values(4, 5, 6, 7));

TEST_P(EveryGid, CarriesEveryOperation) {
    Pair pair(on_ethernet(GetParam(), "eth-pair,vlans=100"));
    pair.a.fill(0, 5000, 1);
    pair.b.fill(16384, 5000, 2);
    pair.b.set_word(131072, 40);
    pair.b.qp.post_receive(9, {pair.b.segment(8192, 5000)});
    pair.a.qp.post(send_of(pair.a, 1, 0, 5000));
    Send write = write_of(pair.a, pair.b, 2, 0, 5000);
    pair.a.qp.post(write);
    pair.a.qp.post(read_of(pair.a, pair.b, 3, 16384, 5000));
    pair.a.qp.post(fetch_add_of(pair.a, pair.b, 4, 131072, 2));
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()),
                testing::AllOf(testing::SizeIs(4), Each(WcStatus::kSuccess)));
    EXPECT_THAT(ids(pair.b.receive_cq.poll()), ElementsAre(9));
    EXPECT_EQ(pair.b.bytes(8192, 5000), pair.a.bytes(0, 5000));
    EXPECT_EQ(pair.b.bytes(0, 5000), pair.a.bytes(0, 5000));
    EXPECT_EQ(pair.a.bytes(16384, 5000), pair.b.bytes(16384, 5000));
    EXPECT_EQ(pair.b.word(131072), 42U);
}

TEST_P(EveryGid, LeadsBackToItsOwnPort) {
    Pair pair(on_ethernet(GetParam(), "eth-pair,vlans=100"));
    QueuePairHandle self = pair.a.make_qp();
    pair.connect(self, pair.a, self);
    pair.a.fill(0, 4096, 1);
    Send write = write_of(pair.a, pair.a, 1, 0, 4096);
    write.remote_address = pair.a.address(65536);
    const std::uint64_t before = pair.a.host.hca().port(1).counters().xmit_packets;
    self.post(write);
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kSuccess));
    EXPECT_EQ(pair.a.bytes(65536, 4096), pair.a.bytes(0, 4096));
    EXPECT_EQ(pair.a.host.hca().port(1).counters().xmit_packets, before);
}

TEST(Roce, LosesAndRepeatsAsOnInfiniband) {
    Pair pair(on_ethernet(3, "eth-pair"));
    pair.a.fill(0, 8192, 1);
    pair.drop_nth(pair.a, 3);
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 8192));
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kSuccess));
    EXPECT_EQ(pair.b.bytes(0, 8192), pair.a.bytes(0, 8192));
}

// MAC 14, GRH 40 or IP 20 and UDP 8, BTH 12, RETH 16, payload, ICRC 4, check sequence 4, gap 20;
// the acknowledgment has an AETH of 4 and nothing else. 80 ps a byte at 100 Gb/s.
TEST(Roce, AFrameWeighsWhatItsHeadersWeigh) {
    for (const auto& [gid, network] : {std::pair{0, 40}, std::pair{1, 48}, std::pair{3, 28}}) {
        Pair pair(on_ethernet(static_cast<std::uint8_t>(gid)));
        pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 1000));
        pair.drive_until_sent(pair.a);
        const std::int64_t request = 14 + network + 12 + 16 + 1000 + 4 + 4 + 20;
        const std::int64_t answer = std::max(14 + network + 12 + 4 + 4 + 4, 64) + 20;
        EXPECT_EQ(pair.elapsed(), fabric::SimDuration((request + answer) * 80 + 2 * 500'000L))
            << "GID " << gid;
    }
}

TEST(Roce, AFrameOfAVlanHasATagInBothDirections) {
    const auto round_trip = [](std::uint8_t gid_index) {
        Pair pair(on_ethernet(gid_index, "eth-pair,vlans=100"));
        pair.a.qp.post(read_of(pair.a, pair.b, 1, 0, 1000));  // no frame is padded
        pair.drive_until_sent(pair.a);
        return pair.elapsed();
    };
    EXPECT_EQ(round_trip(7) - round_trip(3), fabric::SimDuration(2 * 4 * 80));
}

TEST(Roce, APathStaysInItsVlan) {
    Pair pair(on_ethernet(7, "eth-pair,vlans=100"));
    const auto from = [&pair](std::uint8_t index) {
        return rtr_answer(pair, [index](AddressVector& path) { path.sgid_index = index; });
    };
    EXPECT_EQ(from(7), 0);
    EXPECT_EQ(from(3), ETIMEDOUT) << "nobody has the address outside of the VLAN";
    EXPECT_EQ(from(8), ENODATA);
    pair.a.host.take_events();

    QueuePairHandle other = pair.a.make_qp();
    EXPECT_EQ(other.modify_to(QpState::kInit, kInitAttrs, init_values(pair.options())), 0);
    QpValues rtr = rtr_values(pair.options(), 0, pair.b.qp.qpn());
    rtr.path = pair.b.path_to();
    rtr.path.sgid_index = 0;  // link-local, of RoCE v1: nobody is asked
    rtr.path.dgid = pair.b.host.hca().port(1).attributes().gids[0].gid.bytes;
    EXPECT_EQ(other.modify_to(QpState::kRtr, kRtrAttrs, rtr), 0);
    EXPECT_EQ(other.modify_to(QpState::kRts, kRtsAttrs, rts_values(pair.options())), 0);
    PairOptions in_vlan = pair.options();
    in_vlan.gid_index = 4;
    QpValues there = rtr_values(in_vlan, 0, other.qpn());
    there.path = pair.a.path_to();
    there.path.sgid_index = 4;  // the same address, in the VLAN
    there.path.dgid = pair.a.host.hca().port(1).attributes().gids[4].gid.bytes;
    EXPECT_EQ(pair.b.qp.modify_to(QpState::kReset, {}, {}), 0);
    EXPECT_EQ(pair.b.qp.modify_to(QpState::kInit, kInitAttrs, init_values(in_vlan)), 0);
    EXPECT_EQ(pair.b.qp.modify_to(QpState::kRtr, kRtrAttrs, there), 0);
    pair.watch_packets();
    other.post(write_of(pair.a, pair.b, 1, 0, 64));
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kRetryExcErr));
    EXPECT_THAT(pair.fates(), Each("not from the peer"));
    EXPECT_THAT(pair.fates(), Contains("not from the peer"));
}

TEST(Roce, AHostIsDeafInAVlanThatItHasLeft) {
    Pair pair(on_ethernet(7, "eth-pair,vlans=100"));
    pair.watch_packets();
    pair.simulation().network().host(1).port(fabric::PortNumber{1}).mutable_attributes().vlans =
        std::vector<std::uint16_t>{200};
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 64));
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kRetryExcErr));
    EXPECT_THAT(pair.fates(), Each("of a VLAN that the host is not in"));
    EXPECT_THAT(pair.fates(), Contains("of a VLAN that the host is not in"));
}

TEST(Roce, APathNeedsAGrhAndAnAddressThatSomebodyHas) {
    Pair pair(on_ethernet());
    const auto answer = [&pair](auto&& change) { return rtr_answer(pair, change); };
    EXPECT_EQ(answer([](AddressVector&) {}), 0);
    EXPECT_EQ(answer([](AddressVector& path) { path.is_global = false; }), EINVAL);
    EXPECT_EQ(answer([](AddressVector& path) { path.sgid_index = 4; }), ENODATA);
    EXPECT_EQ(answer([](AddressVector& path) { path.dgid = {}; }), EINVAL);
    EXPECT_EQ(answer([](AddressVector& path) { path.dgid[12] = 203; }), ETIMEDOUT);
    EXPECT_EQ(answer([](AddressVector& path) { path.sgid_index = 1; }), EINVAL);
    EXPECT_EQ(answer([](AddressVector& path) { path.port = 2; }), EINVAL);
    EXPECT_EQ(answer([](AddressVector& path) {
                  path.dgid = {0xFF, 0x0E, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
              }),
              0);
}

// RoCE v1 takes the MAC address out of a link-local GID and asks nobody.
TEST(Roce, ALinkLocalStrangerIsFoundMissingWhenSentTo) {
    Pair pair({.topology = "eth-star:2", .gid_index = 0});
    const auto stranger = [](AddressVector& path) { path.dgid[15] ^= 0x40U; };
    EXPECT_EQ(rtr_answer(pair, stranger), 0);
    pair.a.host.take_events();
    QueuePairHandle qp = pair.a.make_qp();
    EXPECT_EQ(qp.modify_to(QpState::kInit, kInitAttrs, init_values(pair.options())), 0);
    QpValues rtr = rtr_values(pair.options(), 0, pair.b.qp.qpn());
    rtr.path = pair.b.path_to();
    stranger(rtr.path);
    EXPECT_EQ(qp.modify_to(QpState::kRtr, kRtrAttrs, rtr), 0);
    EXPECT_EQ(qp.modify_to(QpState::kRts, kRtsAttrs, rts_values(pair.options())), 0);
    pair.watch_packets();
    qp.post(write_of(pair.a, pair.b, 1, 0, 64));
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kRetryExcErr));
    EXPECT_THAT(pair.fates(), Each("for another station"));
    EXPECT_THAT(pair.fates(), Contains("for another station"));
}

TEST(Roce, APacketOfTheOtherVersionIsNotFromThePeer) {
    Pair pair(on_ethernet(3));
    QueuePairHandle other = pair.a.make_qp();
    EXPECT_EQ(other.modify_to(QpState::kInit, kInitAttrs, init_values(pair.options())), 0);
    QpValues rtr = rtr_values(pair.options(), 0, pair.b.qp.qpn());
    rtr.path = pair.b.path_to();
    rtr.path.sgid_index = 2;  // RoCE v1, the same address
    EXPECT_EQ(other.modify_to(QpState::kRtr, kRtrAttrs, rtr), 0);
    EXPECT_EQ(other.modify_to(QpState::kRts, kRtsAttrs, rts_values(pair.options())), 0);
    pair.watch_packets();
    other.post(write_of(pair.a, pair.b, 1, 0, 64));
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kRetryExcErr));
    EXPECT_THAT(pair.fates(), Each("not from the peer"));
}

TEST(Roce, WhatADriverSaysOfMacAddressesIsNotBelieved) {
    Pair pair(on_ethernet());
    const QueuePairHandle qp = pair.a.make_qp();
    EXPECT_EQ(qp.modify_to(QpState::kInit, kInitAttrs, init_values(pair.options())), 0);
    QpValues rtr = rtr_values(pair.options(), 0, pair.b.qp.qpn());
    rtr.path = pair.b.path_to();
    rtr.path.destination_mac.bytes = {0x66, 0x11, 0x22, 0x33, 0x44, 0x55};
    rtr.path.dlid = 77;
    EXPECT_EQ(qp.modify_to(QpState::kRtr, kRtrAttrs, rtr), 0);
    const AddressVector path = qp.query().values.path;
    EXPECT_EQ(path.destination_mac, pair.b.host.hca().port(1).attributes().mac);
    EXPECT_EQ(path.dlid, 0);
}

TEST(Roce, APathStaysWithThePortOfItsQueuePair) {
    Pair pair({.topology = "vpi-pair"});
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kSqd, {}, {}), 0);
    pair.drive();
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kSqd, QpAttr::kPort, {.port = 2}), EINVAL);
    QpValues values;
    values.path = pair.b.path_to();
    values.path.port = 2;
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kSqd, QpAttr::kAv, values), EINVAL);
}

TEST(Roce, AlternatePathsAreInfinibands) {
    Pair ethernet(on_ethernet());
    const QueuePairHandle qp = ethernet.a.make_qp();
    EXPECT_EQ(qp.modify_to(QpState::kInit, kInitAttrs, init_values(ethernet.options())), 0);
    QpValues rtr = rtr_values(ethernet.options(), 0, ethernet.b.qp.qpn());
    rtr.path = ethernet.b.path_to();
    EXPECT_EQ(qp.modify_to(QpState::kRtr, kRtrAttrs | QpAttr::kAltPath, rtr), EINVAL);
}

TEST(Roce, OnlyTheDefaultPkey) {
    Pair pair(on_ethernet());
    EXPECT_EQ(pair.a.host.must(QueryPkey{.port = 1, .index = 0}).pkey, 0xFFFF);
    EXPECT_EQ(pair.a.host.ask(QueryPkey{.port = 1, .index = 1}), EINVAL);
    EXPECT_EQ(pair.a.host.must(QueryPort{.port = 1}).pkey_entries, 1);
}

TEST(Roce, RunsAlikeTwice) {
    const auto digest = [] {
        Pair pair(on_ethernet(1, "eth-star:2"));
        pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 100'000));
        pair.drive();
        return pair.run_digest();
    };
    EXPECT_EQ(digest(), digest());
}

}  // namespace
}  // namespace simverbs::test
