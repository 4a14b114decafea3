// Against the values that Microsoft publishes ("Verifying the RSS hash calculation"), with its key.
#include "simverbs/wire/toeplitz.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace simverbs::test {
namespace {

constexpr std::array<std::uint8_t, kHashKeyBytes> kKey = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

struct Flow {
    const char* destination;
    std::uint16_t destination_port;
    const char* source;
    std::uint16_t source_port;
    std::uint32_t addresses_hash;
    std::uint32_t ports_hash;
};
constexpr Flow kIpv4Flows[] = {
    {"161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e8fc2, 0x51ccc178},
    {"65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718262a, 0xc626b0ea},
    {"12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0a5de, 0x5c2b394a},
    {"209.142.163.6", 2217, "38.27.205.30", 48228, 0x82989176, 0xafc7327f},
    {"202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d1809c5, 0x10e828a2},
};
constexpr Flow kIpv6Flows[] = {
    {"3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2cc18cd5, 0x40207d3d},
    {"ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0f0c461c, 0xdde51bbf},
    {"fe80::200:f8ff:fe21:67cf", 38024, "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, 0x4b61e985,
     0x02d1feef},
};

std::array<std::uint8_t, 2> port(std::uint16_t number) {
    return {static_cast<std::uint8_t>(number >> 8U), static_cast<std::uint8_t>(number & 0xFFU)};
}

FrameHeaders headers_of(const Flow& flow, bool is_ipv6, FrameLayer transport) {
    FrameHeaders headers;
    headers.layers = FrameLayer::kEthernet | transport;
    headers.layers = headers.layers | (is_ipv6 ? FrameLayer::kIpv6 : FrameLayer::kIpv4);
    FrameFields& fields = headers.fields;
    const auto parse = [is_ipv6](const char* text, auto& ipv4, auto& ipv6) {
        void* to = is_ipv6 ? static_cast<void*>(ipv6.data()) : ipv4.data();
        ASSERT_EQ(inet_pton(is_ipv6 ? AF_INET6 : AF_INET, text, to), 1) << text;
    };
    parse(flow.source, fields.outer.ipv4_source, fields.outer.ipv6_source);
    parse(flow.destination, fields.outer.ipv4_destination, fields.outer.ipv6_destination);
    fields.outer.source_port = port(flow.source_port);
    fields.outer.destination_port = port(flow.destination_port);
    return headers;
}

TEST(Toeplitz, PublishedValuesOfIpv4) {
    for (const Flow& flow : kIpv4Flows) {
        const FrameHeaders tcp = headers_of(flow, false, FrameLayer::kTcp);
        EXPECT_EQ(hash_of({kIpv4Hash, kKey}, tcp), flow.addresses_hash) << flow.source;
        EXPECT_EQ(hash_of({kIpv4Hash | kTcpHash, kKey}, tcp), flow.ports_hash) << flow.source;
        const FrameHeaders udp = headers_of(flow, false, FrameLayer::kUdp);
        EXPECT_EQ(hash_of({kIpv4Hash | kUdpHash, kKey}, udp), flow.ports_hash) << flow.source;
    }
}

TEST(Toeplitz, PublishedValuesOfIpv6) {
    for (const Flow& flow : kIpv6Flows) {
        const FrameHeaders tcp = headers_of(flow, true, FrameLayer::kTcp);
        EXPECT_EQ(hash_of({kIpv6Hash, kKey}, tcp), flow.addresses_hash) << flow.source;
        EXPECT_EQ(hash_of({kIpv6Hash | kTcpHash, kKey}, tcp), flow.ports_hash) << flow.source;
    }
}

TEST(Toeplitz, FieldsThatAFrameHasNotCountForNothing) {
    const Flow& flow = kIpv4Flows[0];
    const FrameHeaders udp = headers_of(flow, false, FrameLayer::kUdp);
    EXPECT_EQ(hash_of({kIpv4Hash | kTcpHash, kKey}, udp), flow.addresses_hash);
    EXPECT_EQ(hash_of({kIpv6Hash, kKey}, udp), 0U);
    EXPECT_EQ(hash_of({{}, kKey}, udp), 0U);
    EXPECT_NE(hash_of({HashField::kIpv4Source, kKey}, udp),
              hash_of({HashField::kIpv4Destination, kKey}, udp));
}

}  // namespace
}  // namespace simverbs::test
