// The header in private data, path records and socket addresses against bytes written by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simverbs/rdma_cm/cma_header.hpp"
#include "simverbs/rdma_cm/path_record.hpp"

namespace simverbs::rdma_cm {
namespace {

using fabric::Gid;
using fabric::Lid;
using testing::ElementsAreArray;

Gid counting_gid(std::uint8_t first) {
    Gid gid;
    for (std::uint8_t& byte : gid.bytes) {
        byte = first++;
    }
    return gid;
}

// struct cma_hdr: version, IP version in the high bits, port, two addresses of 16 bytes.
TEST(CmaHeader, HasIpv4AddressesInTheLastBytes) {
    std::array<std::uint8_t, 36> bytes{};
    bytes.fill(0xEE);
    write_cma_header(bytes, SocketAddress::inet(0x7F4D'0001, 0x1234),
                     SocketAddress::inet(0x7F4D'0002, 0x5678));
    std::array<std::uint8_t, 36> wanted{0, 0x40, 0x12, 0x34};
    wanted[16] = wanted[32] = 127;
    wanted[17] = wanted[33] = 77;
    wanted[19] = 1;
    wanted[35] = 2;
    EXPECT_THAT(bytes, ElementsAreArray(wanted));
    const CmaHeader header = read_cma_header(bytes);
    EXPECT_EQ(header.source, SocketAddress::inet(0x7F4D'0001, 0x1234));
    EXPECT_EQ(header.destination, SocketAddress::inet(0x7F4D'0002, 0));
}

TEST(CmaHeader, HasIpv6Addresses) {
    std::array<std::uint8_t, 36> bytes{};
    write_cma_header(bytes, SocketAddress::inet6(counting_gid(1), 7),
                     SocketAddress::inet6(counting_gid(0x80), 0));
    EXPECT_EQ(bytes[1], 0x60);
    EXPECT_EQ(bytes[3], 7);
    EXPECT_EQ(bytes[4], 1);
    EXPECT_EQ(bytes[20], 0x80);
    const CmaHeader header = read_cma_header(bytes);
    EXPECT_EQ(header.source, SocketAddress::inet6(counting_gid(1), 7));
    EXPECT_EQ(header.destination, SocketAddress::inet6(counting_gid(0x80), 0));
}

TEST(CmaHeader, OfAnotherIpVersionHasNoAddresses) {
    std::array<std::uint8_t, 36> bytes{};
    bytes.fill(0xFF);
    const CmaHeader header = read_cma_header(bytes);
    EXPECT_EQ(header.version, 0xFF);
    EXPECT_EQ(header.ip_version, 15);
    EXPECT_EQ(header.port, 0xFFFF);
    EXPECT_EQ(header.source, SocketAddress());
}

TEST(PathRecord, HasTheLayoutOfTheSubnetAdministration) {
    const PathRecord record{.service_id = 0x0102'0304'0506'0708,
                            .dgid = counting_gid(0x10),
                            .sgid = counting_gid(0x30),
                            .dlid = Lid(0x1234),
                            .slid = Lid(0x5678),
                            .raw_traffic = true,
                            .flow_label = 0xABCDE,
                            .hop_limit = 0x9A,
                            .traffic_class = 0x5B,
                            .reversible = true,
                            .numb_path = 0x55,
                            .pkey = 0x8001,
                            .qos_class = 0xABC,
                            .sl = 0xD,
                            .mtu_selector = 2,
                            .mtu = 5,
                            .rate_selector = 1,
                            .rate = 0x2A,
                            .life_time_selector = 3,
                            .life_time = 0x12,
                            .preference = 0x77};
    std::array<std::uint8_t, 64> wanted{1, 2, 3, 4, 5, 6, 7, 8};
    for (std::uint8_t i = 0; i < 16; ++i) {
        wanted[8 + i] = static_cast<std::uint8_t>(0x10 + i);
        wanted[24 + i] = static_cast<std::uint8_t>(0x30 + i);
    }
    const std::array<std::uint8_t, 18> rest{0x12, 0x34, 0x56, 0x78, 0x8A, 0xBC, 0xDE, 0x9A, 0x5B,
                                            0xD5, 0x80, 0x01, 0xAB, 0xCD, 0x85, 0x6A, 0xD2, 0x77};
    std::ranges::copy(rest, wanted.begin() + 40);
    EXPECT_THAT(pack(record), ElementsAreArray(wanted));
    EXPECT_EQ(unpack_path_record(wanted), record);
}

TEST(PathRecord, CutsValuesToTheirFields) {
    PathRecord record{
        .flow_label = 0xFFFF'FFFF, .numb_path = 0xFF, .qos_class = 0xFFFF, .sl = 0xFF};
    record.mtu = record.rate = record.life_time = 0xFF;
    const PathRecord cut = unpack_path_record(pack(record));
    EXPECT_EQ(cut.flow_label, 0xF'FFFFU);
    EXPECT_EQ(cut.numb_path, 0x7F);
    EXPECT_EQ(cut.qos_class, 0xFFF);
    EXPECT_EQ(cut.sl, 0xF);
    EXPECT_EQ(cut.mtu, 0x3F);
    EXPECT_EQ(cut.mtu_selector, 0);
    EXPECT_EQ(cut.life_time, 0x3F);
}

TEST(PathRecord, LeavesTheSubnetWithPermissiveLids) {
    PathRecord record{.dlid = Lid(2), .slid = Lid(1), .hop_limit = 1, .rate = 3};
    EXPECT_TRUE(to_cm_path(record).subnet_local);
    EXPECT_EQ(to_cm_path(record).remote_lid, Lid(2));
    EXPECT_EQ(to_cm_path(record).packet_rate, 3);
    record.hop_limit = 2;
    EXPECT_FALSE(to_cm_path(record).subnet_local);
    EXPECT_EQ(to_cm_path(record).remote_lid, fabric::kPermissiveLid);
    EXPECT_EQ(to_cm_path(record).local_lid, fabric::kPermissiveLid);
}

TEST(PathRecord, OfARequestIsReversible) {
    cm::QpParameters qp;
    qp.pkey = 0x8001;
    qp.path_mtu = 4;
    const cm::Path path{
        .local_lid = Lid(1), .remote_lid = Lid(2), .sl = 6, .local_ack_timeout = 15};
    const PathRecord record = from_cm_path(path, qp, 99);
    EXPECT_EQ(record.dlid, Lid(2));
    EXPECT_EQ(record.slid, Lid(1));
    EXPECT_TRUE(record.reversible);
    EXPECT_EQ(record.life_time, 14);
    EXPECT_EQ(record.mtu, 4);
    EXPECT_EQ(record.pkey, 0x8001);
    EXPECT_EQ(record.service_id, 99U);
    EXPECT_EQ(from_cm_path({}, qp, 0).life_time, 0);
}

TEST(PathRecord, GoesToProgramsInTheirFormat) {
    const ib_user_path_rec user = to_user({.dlid = Lid(0x1234), .flow_label = 0x1'2345});
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&user);
    EXPECT_EQ(bytes[32], 0x12);
    EXPECT_EQ(bytes[33], 0x34);
    EXPECT_THAT(std::vector<std::uint8_t>(bytes + 40, bytes + 44),
                ElementsAreArray({0x00, 0x01, 0x23, 0x45}));
}

TEST(SocketAddress, KeepsTheBytesOfItsFamilyAndNoMore) {
    std::array<std::uint8_t, 200> bytes{};
    bytes.fill(0x11);
    const auto size_of_family = [&bytes](std::uint8_t low, std::uint8_t high) {
        bytes[0] = low;
        bytes[1] = high;
        const SocketAddress address(bytes);
        const std::size_t kept = std::max<std::size_t>(address.size(), 2);
        EXPECT_EQ(address.bytes()[kept - 1], kept == 2 ? high : 0x11);
        EXPECT_EQ(address.bytes()[kept], 0);
        return address.size();
    };
    EXPECT_EQ(size_of_family(2, 0), 16U);
    EXPECT_EQ(size_of_family(10, 0), 28U);
    EXPECT_EQ(size_of_family(27, 0), 48U);
    EXPECT_EQ(size_of_family(1, 0), 0U);
    EXPECT_EQ(size_of_family(2, 1), 0U);
    EXPECT_EQ(SocketAddress(std::span(bytes).first(0)), SocketAddress());
}

TEST(SocketAddress, KnowsAnyAddress) {
    EXPECT_TRUE(SocketAddress::inet(0, 1).is_any());
    EXPECT_TRUE(SocketAddress::inet(0x0000'0005, 1).is_zero()) << "0.0.0.0/8";
    EXPECT_TRUE(SocketAddress::inet(0x7F00'0001, 1).is_loopback());
    EXPECT_FALSE(SocketAddress::inet(0x7F4D'0001, 1).is_any()) << "a simulated host";
    EXPECT_FALSE(SocketAddress::inet(0x0A00'0001, 1).is_any());
    Gid one;
    one.bytes[15] = 1;
    EXPECT_TRUE(SocketAddress::inet6(one, 1).is_loopback());
    EXPECT_TRUE(SocketAddress::inet6(Gid{}, 1).is_zero());
    EXPECT_FALSE(SocketAddress::inet6(counting_gid(1), 1).is_any());
    EXPECT_TRUE(SocketAddress::infiniband(Gid{}, 1, 2, 3).is_zero());
    EXPECT_FALSE(SocketAddress().is_any()) << "it has no family";
}

TEST(SocketAddress, HasThePortOfItsServiceId) {
    SocketAddress address = SocketAddress::infiniband(counting_gid(1), 0x8001, 0x0106'1234, 0xFF);
    EXPECT_EQ(address.port(), 0x34);
    EXPECT_EQ(address.pkey(), 0x8001);
    EXPECT_EQ(address.bytes()[2], 0x80);
    EXPECT_EQ(address.bytes()[8], 1);
    EXPECT_EQ(address.bytes()[31], 0x34);
    EXPECT_EQ(address.bytes()[39], 0xFF);
    SocketAddress flow = SocketAddress::inet6(counting_gid(1), 5);
    EXPECT_EQ(flow.bytes()[3], 5);
    EXPECT_EQ(flow.traffic_class(), 0);
    flow.set_flow_label(0x0AB0'0000);
    EXPECT_EQ(flow.traffic_class(), 0xAB);
}

}  // namespace
}  // namespace simverbs::rdma_cm
