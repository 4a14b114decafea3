// The wire opcodes against figures written down from the specification's table of opcodes: a byte
// and the bytes of headers behind it, one line a packet type, added up by hand.
#include "simverbs/model/wire_opcodes.hpp"

#include <array>
#include <cstdint>
#include <set>

#include <gtest/gtest.h>

namespace simverbs {
namespace {

struct Figure {
    std::uint8_t opcode;
    std::uint32_t header_bytes;
};

// BTH 12; RETH 16; AtomicETH 28; AETH 4; AtomicAckETH 8; immediate 4; IETH 4; FETH 4.
constexpr auto kRcFigures = std::to_array<Figure>({
    {0x00, 12}, {0x01, 12}, {0x02, 12}, {0x03, 16}, {0x04, 12}, {0x05, 16}, {0x06, 28},
    {0x07, 12}, {0x08, 12}, {0x09, 16}, {0x0A, 28}, {0x0B, 32}, {0x0C, 28}, {0x0D, 16},
    {0x0E, 12}, {0x0F, 16}, {0x10, 16}, {0x11, 16}, {0x12, 24}, {0x13, 40}, {0x14, 40},
    {0x16, 16}, {0x17, 16}, {0x1C, 32}, {0x1D, 28},
});
constexpr auto kUcFigures = std::to_array<Figure>({
    {0x20, 12},
    {0x21, 12},
    {0x22, 12},
    {0x23, 16},
    {0x24, 12},
    {0x25, 16},
    {0x26, 28},
    {0x27, 12},
    {0x28, 12},
    {0x29, 16},
    {0x2A, 28},
    {0x2B, 32},
    {0x36, 16},
    {0x37, 16},
});
// DETH 8.
constexpr auto kUdFigures = std::to_array<Figure>({{0x64, 20}, {0x65, 24}});
// XRCETH 4 on each request, nothing on responses.
constexpr auto kXrcFigures = std::to_array<Figure>({
    {0xA0, 16}, {0xA1, 16}, {0xA2, 16}, {0xA3, 20}, {0xA4, 16}, {0xA5, 20}, {0xA6, 32},
    {0xA7, 16}, {0xA8, 16}, {0xA9, 20}, {0xAA, 32}, {0xAB, 36}, {0xAC, 32}, {0xAD, 16},
    {0xAE, 12}, {0xAF, 16}, {0xB0, 16}, {0xB1, 16}, {0xB2, 24}, {0xB3, 44}, {0xB4, 44},
    {0xB6, 20}, {0xB7, 20}, {0xBC, 36}, {0xBD, 32},
});
// RDETH 4 on all, DETH 8 on requests.
constexpr auto kRdFigures = std::to_array<Figure>({
    {0x40, 24},
    {0x43, 28},
    {0x46, 40},
    {0x4C, 40},
    {0x4D, 20},
    {0x4E, 16},
    {0x51, 20},
    {0x52, 28},
    {0x53, 52},
    {0x55, 24},
});

TEST(WireOpcodes, HeadersAreAsLongAsTheSpecificationSays) {
    const auto check = [](auto figures) {
        for (const Figure& figure : figures) {
            const WireOpcode& row = wire_opcode(figure.opcode);
            EXPECT_TRUE(row.known) << unsigned{figure.opcode};
            EXPECT_EQ(row.header_bytes, figure.header_bytes) << unsigned{figure.opcode};
        }
    };
    check(kRcFigures);
    check(kUcFigures);
    check(kUdFigures);
    check(kXrcFigures);
    check(kRdFigures);
    EXPECT_EQ(wire_opcode(0x81).kind, MessageKind::kCongestionNotification);
    EXPECT_EQ(wire_opcode(0x81).header_bytes, 12);
}

TEST(WireOpcodes, NoOtherOpcodeIsKnown) {
    std::set<std::uint8_t> listed = {kCnpOpcode};
    const auto add = [&](auto figures) {
        for (const Figure& figure : figures) {
            listed.insert(figure.opcode);
        }
    };
    add(kRcFigures);
    add(kUcFigures);
    add(kUdFigures);
    add(kXrcFigures);
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
        const auto byte = static_cast<std::uint8_t>(opcode);
        const bool reliable_datagram = opcode >= 0x40 && opcode < 0x60;
        if (!reliable_datagram) {
            EXPECT_EQ(wire_opcode(byte).known, listed.contains(byte)) << opcode;
        }
    }
}

TEST(WireOpcodes, EncodingAndTheTableAgree) {
    for (const WireOpcode& row : kWireOpcodes) {
        EXPECT_EQ(&wire_opcode(row.opcode), &row);
        if (!row.known || row.transport == WireTransport::kNone) {
            continue;
        }
        const PacketPosition position =
            row.starts_message
                ? (row.ends_message ? PacketPosition::kOnly : PacketPosition::kFirst)
                : (row.ends_message ? PacketPosition::kLast : PacketPosition::kMiddle);
        EXPECT_EQ(encode_opcode(row.transport, row.kind, position, row.trailer), row.opcode)
            << row.operation;
    }
}

TEST(WireOpcodes, WhatATransportLacksHasNoOpcode) {
    EXPECT_FALSE(
        encode_opcode(WireTransport::kUc, MessageKind::kRead, PacketPosition::kOnly).has_value());
    EXPECT_FALSE(
        encode_opcode(WireTransport::kUd, MessageKind::kSend, PacketPosition::kFirst).has_value());
    EXPECT_FALSE(
        encode_opcode(WireTransport::kUc, MessageKind::kAck, PacketPosition::kOnly).has_value());
    EXPECT_FALSE(
        encode_opcode(WireTransport::kNone, MessageKind::kSend, PacketPosition::kOnly).has_value());
}

TEST(WireOpcodes, OnlyTheLastPacketCarriesATrailerAndOnlyRequestsDo) {
    for (const WireOpcode& row : kWireOpcodes) {
        EXPECT_EQ(row.has(WireHeader::kImmDt), row.trailer == Trailer::kImmediate);
        EXPECT_EQ(row.has(WireHeader::kIeth), row.trailer == Trailer::kInvalidate);
        if (row.trailer != Trailer::kNone) {
            EXPECT_TRUE(row.ends_message && row.request) << row.operation;
        }
        EXPECT_EQ(row.known, row.has(WireHeader::kBth));
    }
}

TEST(WireOpcodes, AResponseSaysHowItWentExceptInTheMiddle) {
    for (const WireOpcode& row : kWireOpcodes) {
        if (row.known && row.transport != WireTransport::kNone) {
            EXPECT_EQ(row.has(WireHeader::kAeth),
                      row.response() && (row.starts_message || row.ends_message))
                << row.operation;
        }
    }
}

}  // namespace
}  // namespace simverbs
