#include "simverbs/wire/ethernet_headers.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simverbs {
namespace {

using testing::ElementsAre;

// Two hexadecimal digits a byte; spaces are for the reader.
std::vector<std::byte> frame_of(std::initializer_list<std::string_view> parts) {
    std::vector<std::byte> frame;
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    for (const std::string_view part : parts) {
        for (std::size_t i = 0; i < part.size(); ++i) {
            if (part[i] != ' ') {
                frame.push_back(static_cast<std::byte>(digit(part[i]) << 4 | digit(part[i + 1])));
                ++i;
            }
        }
    }
    return frame;
}

constexpr std::string_view kMacs = "020000001001 020000002001";
// The example of RFC 1071's most quoted explanation: header checksum b861.
constexpr std::string_view kIpv4 = "0800 4500 0073 0000 4000 4011 b861 c0a8 0001 c0a8 00c7";

std::vector<std::byte> udp_frame(std::string_view checksum) {
    return frame_of({kMacs, "0800", "4500 0020 0001 0000 4011 0000 7f4d 0000 7f4d 0001",
                     "1f90 1f91 000c", checksum, "01020304"});
}

TEST(EthernetHeaders, ReadsIpv4AndUdp) {
    const FrameHeaders headers = parse_frame(udp_frame("0000"));
    EXPECT_EQ(headers.layers,
              FrameLayers(FrameLayer::kEthernet) | FrameLayer::kIpv4 | FrameLayer::kUdp);
    EXPECT_THAT(headers.fields.outer.destination_mac, ElementsAre(2, 0, 0, 0, 0x10, 1));
    EXPECT_THAT(headers.fields.outer.source_mac, ElementsAre(2, 0, 0, 0, 0x20, 1));
    EXPECT_THAT(headers.fields.outer.ether_type, ElementsAre(8, 0));
    EXPECT_THAT(headers.fields.outer.ipv4_source, ElementsAre(127, 77, 0, 0));
    EXPECT_THAT(headers.fields.outer.ipv4_destination, ElementsAre(127, 77, 0, 1));
    EXPECT_EQ(headers.fields.outer.ipv4_protocol, 17);
    EXPECT_EQ(headers.fields.outer.ipv4_ttl, 64);
    EXPECT_THAT(headers.fields.outer.source_port, ElementsAre(0x1F, 0x90));
    EXPECT_THAT(headers.fields.outer.destination_port, ElementsAre(0x1F, 0x91));
}

TEST(EthernetHeaders, ReadsIpv6AndTcp) {
    const FrameHeaders headers = parse_frame(frame_of(
        {kMacs, "86dd", "6ab1 2345 0014 0640", "20010db8000000000000000000000001",
         "20010db8000000000000000000000002", "0050 1f91 00000000 00000000 5000 0000 0000 0000"}));
    EXPECT_EQ(headers.layers,
              FrameLayers(FrameLayer::kEthernet) | FrameLayer::kIpv6 | FrameLayer::kTcp);
    EXPECT_EQ(headers.fields.outer.ipv6_source[15], 1);
    EXPECT_EQ(headers.fields.outer.ipv6_destination[15], 2);
    EXPECT_EQ(headers.fields.outer.ipv6_traffic_class, 0xAB);
    EXPECT_THAT(headers.fields.outer.ipv6_flow_label, ElementsAre(0, 0x01, 0x23, 0x45));
    EXPECT_EQ(headers.fields.outer.ipv6_next_header, 6);
    EXPECT_EQ(headers.fields.outer.ipv6_hop_limit, 64);
    EXPECT_THAT(headers.fields.outer.source_port, ElementsAre(0, 80));
}

TEST(EthernetHeaders, LaterFragmentsHaveNoPorts) {
    std::vector<std::byte> frame = udp_frame("0000");
    frame[21] = std::byte{1};  // fragment offset
    EXPECT_FALSE(parse_frame(frame).layers.contains(FrameLayer::kUdp));
    frame[21] = std::byte{0};
    frame[20] = std::byte{0x20};  // the first of several
    EXPECT_TRUE(parse_frame(frame).layers.contains(FrameLayer::kUdp));
}

TEST(EthernetHeaders, LengthsThatLieEndTheReading) {
    EXPECT_TRUE(parse_frame(frame_of({"0200"})).layers.empty());
    EXPECT_EQ(parse_frame(frame_of({kMacs, "0800 4500"})).layers,
              FrameLayers(FrameLayer::kEthernet));
    for (const auto& [offset, value] :
         {std::pair{14, 0x44}, std::pair{14, 0x4F}, std::pair{14, 0x65}, std::pair{17, 0xFF}}) {
        std::vector<std::byte> frame = udp_frame("0000");
        frame[static_cast<std::size_t>(offset)] = static_cast<std::byte>(value);
        EXPECT_EQ(parse_frame(frame).layers, FrameLayers(FrameLayer::kEthernet)) << offset;
        const std::vector<std::byte> before = frame;
        fill_checksums(frame);
        EXPECT_EQ(frame, before);
        EXPECT_FALSE(checksums_hold(frame));
    }
}

TEST(EthernetHeaders, ReadsWhatIsBehindVlanTags) {
    const FrameHeaders tagged =
        parse_frame(frame_of({kMacs, "8100 b064", "0800", "4500 0020 0001 0000 4011 0000 7f4d 0000",
                              "7f4d 0001 1f90 1f91 000c 0000 01020304"}));
    EXPECT_EQ(tagged.layers, FrameLayers(FrameLayer::kEthernet) | FrameLayer::kCvlan |
                                 FrameLayer::kIpv4 | FrameLayer::kUdp);
    EXPECT_THAT(tagged.fields.outer.cvlan_tag, ElementsAre(0xB0, 0x64));
    EXPECT_THAT(tagged.fields.outer.ether_type, ElementsAre(8, 0));
    EXPECT_THAT(tagged.fields.outer.destination_port, ElementsAre(0x1F, 0x91));

    // A provider's tag first: the customer's behind it is not the frame's first.
    const std::vector<std::byte> twice = frame_of(
        {kMacs, "88a8 0002 8100 0003 0800", "4500 0014 0001 0000 4001 0000 7f4d 0000 7f4d 0001"});
    EXPECT_EQ(parse_frame(twice).layers, FrameLayers(FrameLayer::kEthernet) | FrameLayer::kIpv4);
    EXPECT_EQ(cvlan_of(twice), std::nullopt);
    // A third tag is a type like any other.
    const FrameHeaders thrice = parse_frame(frame_of(
        {kMacs, "8100 0001 8100 0002 8100 0003 0800", "0000000000000000000000000000000000000000"}));
    EXPECT_THAT(thrice.fields.outer.ether_type, ElementsAre(0x81, 0x00));
}

TEST(EthernetHeaders, ATagThatIsCutIsNone) {
    const std::vector<std::byte> cut = frame_of({kMacs, "8100 b064"});
    EXPECT_EQ(cvlan_of(cut), std::nullopt);
    EXPECT_EQ(parse_frame(cut).layers, FrameLayers(FrameLayer::kEthernet));
    EXPECT_EQ(cvlan_of(frame_of({kMacs, "8100 b064 0800"})), 0xB064);
    EXPECT_EQ(cvlan_of(frame_of({kMacs, "0800 8100 0800"})), std::nullopt);
}

TEST(EthernetHeaders, ReadsTheFlagsOfIpv4AsLinuxNumbersThem) {
    std::vector<std::byte> frame = udp_frame("0000");
    EXPECT_EQ(parse_frame(frame).fields.outer.ipv4_flags, 0);
    frame[20] = std::byte{0x40};
    EXPECT_EQ(parse_frame(frame).fields.outer.ipv4_flags, 2);  // DF
    frame[20] = std::byte{0x20};
    EXPECT_EQ(parse_frame(frame).fields.outer.ipv4_flags, 4);  // MF
}

TEST(EthernetHeaders, ReadsEspAndMpls) {
    const FrameHeaders esp = parse_frame(frame_of(
        {kMacs, "0800", "4500 001c 0001 0000 4032 0000 7f4d 0000 7f4d 0001", "0a0b0c0d 00000007"}));
    EXPECT_EQ(esp.layers,
              FrameLayers(FrameLayer::kEthernet) | FrameLayer::kIpv4 | FrameLayer::kEsp);
    EXPECT_THAT(esp.fields.outer.esp_spi, ElementsAre(0x0A, 0x0B, 0x0C, 0x0D));
    EXPECT_THAT(esp.fields.outer.esp_sequence, ElementsAre(0, 0, 0, 7));

    const FrameHeaders mpls = parse_frame(frame_of({kMacs, "8847", "0006 4040 0000 7140 45"}));
    EXPECT_EQ(mpls.layers, FrameLayers(FrameLayer::kEthernet) | FrameLayer::kMpls);
    EXPECT_THAT(mpls.fields.outer.mpls_entry, ElementsAre(0x00, 0x06, 0x40, 0x40));
}

constexpr std::string_view kVxlan =
    "0800 4500 0000 0001 0000 4011 0000 7f4d 0000 7f4d 0001"
    "1f90 12b5 0000 0000";  // lengths are filled in

std::vector<std::byte> with_ip_length(std::vector<std::byte> frame) {
    frame[16] = static_cast<std::byte>((frame.size() - 14) >> 8U);
    frame[17] = static_cast<std::byte>((frame.size() - 14) & 0xFFU);
    return frame;
}

TEST(Tunnels, VxlanCarriesAFrame) {
    const std::vector<std::byte> frame = with_ip_length(
        frame_of({kMacs, kVxlan, "08000000 00123400", "020000000003 020000000004 8100 0005 0800",
                  "4500 001c 0001 0000 4011 0000 0a000001 0a000002 0007 0008 0008 0000"}));
    const FrameHeaders headers = parse_frame(frame);
    EXPECT_EQ(headers.layers, FrameLayers(FrameLayer::kEthernet) | FrameLayer::kIpv4 |
                                  FrameLayer::kUdp | FrameLayer::kVxlan |
                                  inner(FrameLayers(FrameLayer::kEthernet) | FrameLayer::kCvlan |
                                        FrameLayer::kIpv4 | FrameLayer::kUdp));
    EXPECT_THAT(headers.fields.tunnel.vxlan_vni, ElementsAre(0, 0x00, 0x12, 0x34));
    EXPECT_THAT(headers.fields.inner.destination_mac, ElementsAre(2, 0, 0, 0, 0, 3));
    EXPECT_THAT(headers.fields.inner.cvlan_tag, ElementsAre(0, 5));
    EXPECT_THAT(headers.fields.inner.ipv4_source, ElementsAre(10, 0, 0, 1));
    EXPECT_THAT(headers.fields.inner.destination_port, ElementsAre(0, 8));
    EXPECT_THAT(headers.fields.outer.destination_port, ElementsAre(0x12, 0xB5));

    std::vector<std::byte> without_vni = frame;
    without_vni[42] = std::byte{0};
    EXPECT_FALSE(parse_frame(without_vni).layers.contains(FrameLayer::kVxlan));
    std::vector<std::byte> other_port = frame;
    other_port[37] = std::byte{0xB6};
    EXPECT_FALSE(parse_frame(other_port).layers.contains(FrameLayer::kVxlan));
}

constexpr std::string_view kGreOver4 = "0800 4500 0000 0001 0000 402f 0000 7f4d 0000 7f4d 0001";

TEST(Tunnels, GreCarriesPacketsFramesAndLabels) {
    const FrameHeaders packet = parse_frame(
        with_ip_length(frame_of({kMacs, kGreOver4, "b000 0800 00000000 0000abcd 00000001",
                                 "4500 0014 0001 0000 4001 0000 0a000001 0a000002"})));
    EXPECT_EQ(packet.layers, FrameLayers(FrameLayer::kEthernet) | FrameLayer::kIpv4 |
                                 FrameLayer::kGre | FrameLayer::kGreKey | inner(FrameLayer::kIpv4));
    EXPECT_THAT(packet.fields.tunnel.gre_flags, ElementsAre(0xB0, 0x00));
    EXPECT_THAT(packet.fields.tunnel.gre_protocol, ElementsAre(0x08, 0x00));
    EXPECT_THAT(packet.fields.tunnel.gre_key, ElementsAre(0, 0, 0xAB, 0xCD));
    EXPECT_THAT(packet.fields.inner.ipv4_destination, ElementsAre(10, 0, 0, 2));

    const FrameHeaders bridged = parse_frame(with_ip_length(frame_of(
        {kMacs, kGreOver4, "2000 6558 00001200", "020000000003 020000000004 88b5 00000000"})));
    EXPECT_TRUE(bridged.layers.contains(inner(FrameLayer::kEthernet)));
    EXPECT_THAT(bridged.fields.inner.ether_type, ElementsAre(0x88, 0xB5));

    const FrameHeaders labelled =
        parse_frame(with_ip_length(frame_of({kMacs, kGreOver4, "0000 8847 00064140"})));
    EXPECT_TRUE(labelled.layers.contains(FrameLayer::kGre | FrameLayer::kMplsOverGre));
    EXPECT_THAT(labelled.fields.tunnel.mpls_entry, ElementsAre(0x00, 0x06, 0x41, 0x40));
}

// Flags that promise more bytes than there are, source routes and version 1.
TEST(Tunnels, GreThatIsNotUnderstoodCarriesNothing) {
    for (const std::string_view header :
         {"b000 0800 00000000", "4000 0800 00000000", "0001 0800"}) {
        const FrameHeaders headers = parse_frame(with_ip_length(frame_of(
            {kMacs, kGreOver4, header, header == "b000 0800 00000000" ? "" : "4500 0014"})));
        EXPECT_TRUE(headers.layers.contains(FrameLayer::kGre)) << header;
        EXPECT_FALSE(headers.layers.intersects(inner(FrameLayer::kIpv4))) << header;
        EXPECT_FALSE(headers.layers.contains(FrameLayer::kGreKey)) << header;
    }
}

TEST(Tunnels, MplsOverUdpHasItsPort) {
    std::vector<std::byte> frame = with_ip_length(frame_of({kMacs, kVxlan, "00064140"}));
    frame[36] = std::byte{0x19};
    frame[37] = std::byte{0xEB};
    const FrameHeaders headers = parse_frame(frame);
    EXPECT_TRUE(headers.layers.contains(FrameLayer::kMplsOverUdp));
    EXPECT_THAT(headers.fields.tunnel.mpls_entry, ElementsAre(0x00, 0x06, 0x41, 0x40));
}

// The check value of CRC-32 (as of zlib and IEEE 802.3) is that of these nine digits.
TEST(FrameCheckSequence, IsTheCrcLowByteFirst) {
    EXPECT_THAT(frame_check_sequence(frame_of({"313233343536373839"})),
                ElementsAre(std::byte{0x26}, std::byte{0x39}, std::byte{0xF4}, std::byte{0xCB}));
}

TEST(EthernetHeaders, MatchesTheBitsThatAreAskedFor) {
    const FrameFields fields = parse_frame(udp_frame("0000")).fields;
    FrameFields value;
    FrameFields mask;
    EXPECT_TRUE(fields_match(fields, value, mask));
    value.outer.ipv4_source = {127, 77, 9, 9};
    mask.outer.ipv4_source = {255, 255, 0, 0};
    EXPECT_TRUE(fields_match(fields, value, mask));
    mask.outer.ipv4_source[3] = 1;
    EXPECT_FALSE(fields_match(fields, value, mask));
}

TEST(Checksums, OfAKnownHeader) {
    std::vector<std::byte> frame = frame_of({kMacs, kIpv4});
    frame.resize(14 + 0x73);
    frame[14 + 6] = std::byte{0x40};
    std::vector<std::byte> fresh = frame;
    fresh[24] = fresh[25] = std::byte{0};
    fill_checksums(fresh);
    EXPECT_EQ(fresh[24], std::byte{0xB8});
    EXPECT_EQ(fresh[25], std::byte{0x61});
}

// By hand: ~(7f4d+0000+7f4d+0001 + 11+000c + 1f90+1f91+000c + 0102+0304) = ~(1 41f6+...) = bb24.
TEST(Checksums, AreWrittenAndHold) {
    std::vector<std::byte> frame = udp_frame("0000");
    fill_checksums(frame);
    std::uint32_t sum =
        0x7F4D + 0x7F4D + 0x0001 + 0x11 + 0x0C + 0x1F90 + 0x1F91 + 0x0C + 0x0102 + 0x0304;
    sum = (sum & 0xFFFF) + (sum >> 16);
    const auto expected = static_cast<std::uint16_t>(~sum);
    EXPECT_EQ(frame[40], static_cast<std::byte>(expected >> 8));
    EXPECT_EQ(frame[41], static_cast<std::byte>(expected & 0xFFU));
    EXPECT_TRUE(checksums_hold(frame));
    frame[45] ^= std::byte{1};
    EXPECT_FALSE(checksums_hold(frame));
}

TEST(Checksums, AnUdpChecksumOfZeroIsNone) {
    std::vector<std::byte> frame = udp_frame("0000");
    fill_checksums(frame);
    frame[40] = frame[41] = std::byte{0};
    EXPECT_TRUE(checksums_hold(frame));
}

TEST(Checksums, OfAnOddTcpSegmentCoverItsLastByte) {
    std::vector<std::byte> frame =
        frame_of({kMacs, "0800", "4500 0029 0001 0000 4006 0000 7f4d 0000 7f4d 0001",
                  "0050 1f91 00000000 00000000 5000 0000 0000 0000", "ff"});
    fill_checksums(frame);
    EXPECT_TRUE(checksums_hold(frame));
    frame.back() = std::byte{0xFE};
    EXPECT_FALSE(checksums_hold(frame));
}

TEST(Checksums, BytesThatPadTheFrameDoNotCount) {
    std::vector<std::byte> frame = udp_frame("0000");
    fill_checksums(frame);
    frame.resize(60, std::byte{0xEE});
    EXPECT_TRUE(checksums_hold(frame));
}

TEST(TcpHeader, IsWholeAndNothingElse) {
    const std::vector<std::byte> ipv4 =
        frame_of({kMacs, "0800", "4500 0000 0001 4000 4006 0000 7f4d0000 7f4d0001",
                  "0050 1f91 00000000 00000000 5018 0000 0000 0000"});
    EXPECT_TRUE(is_tcp_header(ipv4));
    EXPECT_FALSE(is_tcp_header(std::span(ipv4).first(ipv4.size() - 1)));
    EXPECT_FALSE(is_tcp_header(std::span(ipv4).first(20)));
    std::vector<std::byte> longer = ipv4;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(is_tcp_header(longer));
    std::vector<std::byte> udp = ipv4;
    udp[23] = std::byte{17};
    EXPECT_FALSE(is_tcp_header(udp));
}

TEST(TcpHeader, OfAPartOverIpv6) {
    std::vector<std::byte> header =
        frame_of({kMacs, "86dd", "60000000 0000 06 40",
                  "fe800000 00000000 00000000 00000001 fe800000 00000000 00000000 00000002",
                  "0050 1f91 fffffff0 00000000 5099 0000 0000 0000"});
    ASSERT_TRUE(is_tcp_header(header));
    adjust_tcp_header(header, {.number = 2, .offset = 0x20, .length = 0x10, .is_last = false});
    const std::vector<std::byte> expected =
        frame_of({kMacs, "86dd", "60000000 0024 06 40",
                  "fe800000 00000000 00000000 00000001 fe800000 00000000 00000000 00000002",
                  "0050 1f91 00000010 00000000 5010 0000 0000 0000"});
    EXPECT_EQ(header, expected);
}

TEST(Checksums, OfATaggedFrame) {
    std::vector<std::byte> plain = udp_frame("0000");
    std::vector<std::byte> tagged = plain;
    const std::vector<std::byte> tag = frame_of({"8100 0005"});
    tagged.insert(tagged.begin() + 12, tag.begin(), tag.end());
    fill_checksums(plain);
    fill_checksums(tagged);
    EXPECT_TRUE(checksums_hold(tagged));
    EXPECT_TRUE(std::equal(plain.begin() + 12, plain.end(), tagged.begin() + 16));
}

TEST(TcpHeader, MayHaveATag) {
    std::vector<std::byte> header =
        frame_of({kMacs, "8100 0005 0800", "4500 0000 0001 4000 4006 0000 7f4d0000 7f4d0001",
                  "0050 1f91 00000000 00000000 5018 0000 0000 0000"});
    ASSERT_TRUE(is_tcp_header(header));
    adjust_tcp_header(header, {.number = 1, .offset = 0x10, .length = 0x10, .is_last = true});
    EXPECT_EQ(header,
              frame_of({kMacs, "8100 0005 0800", "4500 0038 0002 4000 4006 0000 7f4d0000 7f4d0001",
                        "0050 1f91 00000010 00000000 5018 0000 0000 0000"}));
}

TEST(Checksums, AFrameWithoutIpv4HasNone) {
    std::vector<std::byte> frame = frame_of({kMacs, "88b5 01020304"});
    const std::vector<std::byte> before = frame;
    fill_checksums(frame);
    EXPECT_EQ(frame, before);
    EXPECT_FALSE(checksums_hold(frame));
}

}  // namespace
}  // namespace simverbs
