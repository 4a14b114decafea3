// The sample packet of IBA 7.8 as an oracle for the CRC, and the sizes that the device counts by.
#include "simverbs/wire/packet_bytes.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <gtest/gtest.h>

#include "fabric/net/ethernet.hpp"
#include "fabric/net/management.hpp"

#include "simverbs/wire/packet.hpp"

namespace simverbs {
namespace {

// With the fields that may change on the way as ones.
constexpr auto kSample = std::to_array<std::uint8_t>(
    {0xF0, 0x12, 0x37, 0x5C, 0x00, 0x0E, 0x17, 0xD2, 0x0A, 0x20, 0x24, 0x87, 0xFF,
     0x87, 0xB1, 0xB3, 0x00, 0x0D, 0xEC, 0x2A, 0x01, 0x71, 0x0A, 0x1C, 0x01, 0x5D,
     0x40, 0x02, 0x38, 0xF2, 0x7A, 0x05, 0x00, 0x00, 0x00, 0x0E, 0xBB, 0x88, 0x4D,
     0x85, 0xFD, 0x5C, 0xFB, 0xA4, 0x72, 0x8B, 0xC0, 0x69, 0x0E, 0xD4, 0x00, 0x00});

TEST(PacketBytes, TheInvariantCrcIsThatOfTheSpecification) {
    // 96 25 B7 5A on the wire.
    EXPECT_EQ(invariant_crc(std::as_bytes(std::span(kSample))), 0x5AB72596U);
}

TEST(PacketBytes, AVariantCrcThatIsAppendedLeavesTheResidue) {
    Bytes bytes(kSample.size());
    std::memcpy(bytes.data(), kSample.data(), kSample.size());
    const auto residue = [](Bytes of) {
        const std::uint16_t crc = variant_crc(of);
        of.push_back(static_cast<std::byte>(crc));
        of.push_back(static_cast<std::byte>(crc >> 8U));
        return variant_crc(of);
    };
    const std::uint16_t good = residue(bytes);
    bytes[7] ^= std::byte{0x10};
    EXPECT_EQ(residue(bytes), good) << "one residue for all";
    EXPECT_NE(variant_crc(bytes), variant_crc(std::as_bytes(std::span(kSample))));
}

class EveryOpcode : public testing::Test {
  protected:
    fabric::FramePool pool;
    fabric::FramePtr frame = pool.make();
};

TEST_F(EveryOpcode, IsAsLongAsTheDeviceCounts) {
    for (const WireOpcode& opcode : kWireOpcodes) {
        if (!opcode.known || opcode.transport == WireTransport::kRd ||
            opcode.opcode == kCnpOpcode) {
            continue;
        }
        for (const std::uint32_t length : {0U, 1U, 8U, 255U}) {
            const Bytes payload(opcode.payload ? length : 0);
            const auto bytes = static_cast<std::uint32_t>(payload.size());
            frame->transport_as<Packet>() = Packet{};
            frame->transport_as<Packet>().opcode = opcode.opcode;
            for (const bool global : {false, true}) {
                frame->has_grh = global;
                Bytes built;
                append_packet(built, *frame, fabric::LinkLayer::kInfiniband, payload);
                EXPECT_EQ(built.size(), infiniband_wire_bytes(opcode, bytes, global))
                    << opcode.operation;
            }
            for (const bool over_udp : {false, true}) {
                frame->has_grh = true;
                frame->over_udp = over_udp;
                frame->grh = {};
                frame->sl = 0;
                Bytes built;
                append_packet(built, *frame, fabric::LinkLayer::kEthernet, payload);
                EXPECT_EQ(built.size(), fabric::kEthernetHeaderBytes +
                                            roce_packet_bytes(opcode, bytes, over_udp, false))
                    << opcode.operation;
            }
            frame->over_udp = false;
        }
    }
}

// UD SEND_ONLY, as the transport builds it with the same fields.
TEST_F(EveryOpcode, ADatagramIsAUdSendOnBothLinkLayers) {
    constexpr std::uint8_t kUdSendOnly = 0x64;
    constexpr std::uint32_t kQkey = 0x8001'0000;
    Bytes datagram(256);
    for (std::size_t i = 0; i < datagram.size(); ++i) {
        datagram[i] = static_cast<std::byte>(i * 3);
    }
    frame->pkey = 0x8001;
    frame->vlan = 0;
    frame->flow = 1;
    for (const auto layer : {fabric::LinkLayer::kInfiniband, fabric::LinkLayer::kEthernet}) {
        for (const bool over_udp : {false, true}) {
            for (const bool over_ipv4 : {false, true}) {
                frame->has_grh = layer == fabric::LinkLayer::kEthernet || over_ipv4;
                frame->over_udp = layer == fabric::LinkLayer::kEthernet && over_udp;
                frame->grh = {.hop_limit = 64};
                if (over_ipv4) {
                    frame->grh.sgid = fabric::ipv4_mapped(0x7F4D'0000);
                    frame->grh.dgid = fabric::ipv4_mapped(0x7F4D'0001);
                }
                Packet packet;
                packet.opcode = kUdSendOnly;
                packet.pkey = 0x8001;
                packet.dest_qpn = 1;
                packet.qkey = kQkey;
                packet.source_qpn = 1;
                packet.migration_request = false;
                frame->transport_as<Packet>() = packet;
                Bytes expected;
                append_packet(expected, *frame, layer, datagram);
                frame->transport_as<fabric::ManagementHeader>() = {1, 1, kQkey};
                Bytes built;
                append_datagram(built, *frame, layer, datagram);
                EXPECT_EQ(built, expected);
            }
        }
    }
}

// IEEE 802.1Q 9.6: type, then three bits of priority, one of DEI, twelve of the VLAN.
TEST_F(EveryOpcode, ATagHasThePriorityAndTheVlan) {
    frame->transport_as<Packet>() = Packet{};
    frame->transport_as<Packet>().opcode = 0x04;
    frame->has_grh = true;
    frame->over_udp = true;
    frame->grh = {};
    const auto from_the_type_on = [this](std::uint8_t sl, std::uint16_t vlan) {
        frame->sl = sl;
        frame->vlan = vlan;
        Bytes built;
        append_packet(built, *frame, fabric::LinkLayer::kEthernet, {});
        std::uint64_t bytes = 0;
        for (std::size_t i = 12; i < 18; ++i) {
            bytes = bytes << 8U | std::to_integer<std::uint64_t>(built.at(i));
        }
        return bytes;
    };
    EXPECT_EQ(from_the_type_on(0, 0) >> 32U, 0x86DDU) << "no tag";
    EXPECT_EQ(from_the_type_on(5, 0), 0x8100'A000'86DDU);
    EXPECT_EQ(from_the_type_on(0, 100), 0x8100'0064'86DDU);
    EXPECT_EQ(from_the_type_on(13, 4094), 0x8100'AFFE'86DDU);
}

TEST_F(EveryOpcode, WhatAFaultFlippedStandsInTheBytesAndNotInTheInvariantCrc) {
    constexpr std::size_t kLrhAndBth = 8 + 12;
    Packet& packet = frame->transport_as<Packet>() = Packet{};
    packet.opcode = 0x04;
    const Bytes payload(16);
    Bytes sent;
    append_packet(sent, *frame, fabric::LinkLayer::kInfiniband, payload);
    packet.corrupted_byte = 12;
    packet.corrupted_bits = 0x81;
    Bytes corrupted;
    append_packet(corrupted, *frame, fabric::LinkLayer::kInfiniband, payload);
    ASSERT_EQ(corrupted.size(), sent.size());
    EXPECT_EQ(corrupted[kLrhAndBth], sent[kLrhAndBth] ^ std::byte{0x81});
    corrupted[kLrhAndBth] = sent[kLrhAndBth];
    EXPECT_NE(corrupted, sent) << "the variant CRC is that of the link, and holds";
    EXPECT_TRUE(std::equal(sent.begin(), sent.end() - 2, corrupted.begin()));
}

TEST_F(EveryOpcode, WhatMayChangeOnTheWayIsNotInTheInvariantCrc) {
    frame->transport_as<Packet>() = Packet{};
    frame->transport_as<Packet>().opcode = 0x04;
    const Bytes payload(16, std::byte{7});
    const auto crc = [&] {
        Bytes built;
        append_packet(built, *frame, fabric::LinkLayer::kInfiniband, payload);
        std::uint32_t value = 0;
        std::memcpy(&value, built.data() + built.size() - kVcrcBytes - kIcrcBytes, sizeof value);
        return value;
    };
    frame->has_grh = false;
    const std::uint32_t local = crc();
    frame->vl = 3;
    EXPECT_EQ(crc(), local);
    frame->sl = 3;
    EXPECT_NE(crc(), local);
    frame->has_grh = true;
    frame->grh = {};
    const std::uint32_t global = crc();
    frame->sl = 4;
    frame->grh.hop_limit = 9;
    frame->grh.traffic_class = 8;
    EXPECT_EQ(crc(), global);
    frame->grh.dgid.bytes[3] = 1;
    EXPECT_NE(crc(), global);
}

}  // namespace
}  // namespace simverbs
