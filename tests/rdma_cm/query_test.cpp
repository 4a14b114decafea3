// Answers to queries and events, byte by byte: offsets are counted in <rdma/rdma_user_cm.h>, not
// taken from it.
#include <cerrno>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rdma_cm/rdma_net.hpp"

namespace simverbs::rdma_cm::test {
namespace {

using testing::ElementsAreArray;

using Bytes = std::vector<std::uint8_t>;

Bytes part(const Bytes& bytes, std::size_t at, std::size_t size) {
    EXPECT_LE(at + size, bytes.size());
    return {bytes.begin() + static_cast<std::ptrdiff_t>(at),
            bytes.begin() + static_cast<std::ptrdiff_t>(at + size)};
}
std::uint32_t word(const Bytes& bytes, std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, part(bytes, at, 4).data(), 4);
    return value;
}
std::uint16_t half(const Bytes& bytes, std::size_t at) {
    return static_cast<std::uint16_t>(word(bytes, at));
}
Bytes bytes_of(const Gid& gid) {
    return {gid.bytes.begin(), gid.bytes.end()};
}

const Bytes kNodeGuid = {1, 2, 3, 4, 5, 6, 7, 0};
const Bytes kClient = {2, 0, 0x80, 0x00, 127, 77, 0, 1};  // AF_INET, port 32768
const Bytes kServer = {2, 0, 0x1D, 0x2F, 127, 77, 0, 2};

Bytes query(Program& program, std::uint32_t command, std::uint32_t id, std::uint32_t option,
            std::size_t out) {
    const UcmaReply reply = program.write(command, rdma_ucm_query{0xABCD, id, option}, out);
    EXPECT_EQ(reply.error, 0);
    EXPECT_EQ(reply.address, 0xABCDU);
    return reply.bytes;
}

TEST(Query, AddressesOfAnId) {
    Pair pair;
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    const Bytes bytes = query(pair.client, 19, id, 0, 4096);
    ASSERT_EQ(bytes.size(), 280U);
    EXPECT_EQ(part(bytes, 0, 8), kNodeGuid);
    EXPECT_EQ(bytes[8], 1) << "the port";
    EXPECT_EQ(part(bytes, 10, 2), (Bytes{0xFF, 0xFF})) << "the P_Key";
    EXPECT_EQ(half(bytes, 12), 16);
    EXPECT_EQ(half(bytes, 14), 16);
    EXPECT_EQ(part(bytes, 16, 8), kClient);
    EXPECT_EQ(part(bytes, 144, 8), kServer);
    EXPECT_EQ(word(bytes, 272), 0U) << "the device's index";
    EXPECT_EQ(query(pair.client, 19, id, 0, 272).size(), 272U) << "as older programs read it";
}

TEST(Query, GidsOfAnId) {
    Pair pair;
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    const Bytes bytes = query(pair.client, 19, id, 2, 4096);
    ASSERT_EQ(bytes.size(), 280U);
    EXPECT_EQ(part(bytes, 0, 8), kNodeGuid);
    EXPECT_EQ(half(bytes, 12), 48);
    EXPECT_EQ(half(bytes, 14), 48);
    EXPECT_EQ(half(bytes, 16), 27) << "AF_IB";
    EXPECT_EQ(part(bytes, 18, 2), (Bytes{0xFF, 0xFF}));
    EXPECT_EQ(part(bytes, 24, 16), bytes_of(pair.client_host.gid()));
    EXPECT_EQ(part(bytes, 40, 8), (Bytes{0, 0, 0, 0, 1, 6, 0x80, 0}));
    EXPECT_EQ(half(bytes, 144), 27);
    EXPECT_EQ(part(bytes, 152, 16), bytes_of(pair.server_host.gid()));
    EXPECT_EQ(part(bytes, 168, 8), (Bytes{0, 0, 0, 0, 1, 6, 0x1D, 0x2F}));
}

TEST(Query, AnIdThatIsNotBoundHasNothing) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    EXPECT_EQ(query(pair.client, 19, id, 0, 280), Bytes(280));
    EXPECT_EQ(query(pair.client, 5, id, 0, 208), Bytes(208));
    EXPECT_EQ(query(pair.client, 19, id, 1, 8), Bytes(8));
    const Bytes gids = query(pair.client, 19, id, 2, 288);
    EXPECT_EQ(part(gids, 24, 16), Bytes(16));
    EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_QUERY, rdma_ucm_query{0, id, 3}, 288).error,
              ENOSYS);
    EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_QUERY, rdma_ucm_query{0, id, 1}, 7).error, ENOSPC);
    EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_QUERY, rdma_ucm_query{0, id, 2}, 271).error,
              ENOSPC);
}

TEST(Query, PathsOfAnId) {
    Pair pair;
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    EXPECT_EQ(query(pair.client, 19, id, 1, 8 + 72).size(), 8U) << "the kernel wants more room";
    const Bytes bytes = query(pair.client, 19, id, 1, 8 + 72 + 1);
    ASSERT_EQ(bytes.size(), 80U);
    EXPECT_EQ(word(bytes, 0), 1U);
    EXPECT_EQ(word(bytes, 8), 1U | 2U | 8U | 32U) << "GMP, primary, both directions";
    const Bytes record = part(bytes, 16, 64);
    EXPECT_EQ(part(record, 8, 16), bytes_of(pair.server_host.gid()));
    EXPECT_EQ(part(record, 24, 16), bytes_of(pair.client_host.gid()));
    EXPECT_EQ(part(record, 40, 4), (Bytes{0, 2, 0, 1})) << "LIDs";
    EXPECT_EQ(part(record, 48, 4), (Bytes{0, 0x81, 0xFF, 0xFF})) << "reversible, 1, P_Key";
    EXPECT_EQ(part(record, 52, 5), (Bytes{0, 3, 0x84, 0x87, 0x8E})) << "SL, MTU, rate, life time";
}

TEST(Query, RouteOfAnId) {
    Pair pair;
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    const Bytes bytes = query(pair.client, 5, id, 0, 4096);
    ASSERT_EQ(bytes.size(), 208U);
    EXPECT_EQ(part(bytes, 0, 8), kNodeGuid);
    EXPECT_EQ(part(bytes, 8, 16), bytes_of(pair.server_host.gid()));
    EXPECT_EQ(part(bytes, 24, 16), bytes_of(pair.client_host.gid()));
    EXPECT_EQ(part(bytes, 40, 4), (Bytes{0, 2, 0, 1})) << "dlid, slid";
    EXPECT_EQ(word(bytes, 52), 1U) << "reversible";
    EXPECT_EQ(word(bytes, 56), 4U) << "the MTU";
    EXPECT_EQ(part(bytes, 60, 2), (Bytes{0xFF, 0xFF}));
    EXPECT_EQ(part(bytes, 64, 8), (Bytes{1, 3, 2, 2, 7, 2, 14, 0}));
    EXPECT_EQ(part(bytes, 136, 8), kClient);
    EXPECT_EQ(part(bytes, 164, 8), kServer);
    EXPECT_EQ(word(bytes, 192), 1U) << "paths";
    EXPECT_EQ(bytes[196], 1) << "the port";
    EXPECT_EQ(word(bytes, 200), 0U);
    EXPECT_EQ(query(pair.client, 5, id, 0, 200).size(), 200U);
}

TEST(Query, RouteOfAnIdWithoutPath) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, kPort)), 0);
    const Bytes bytes = query(pair.client, 5, id, 0, 224);
    EXPECT_EQ(part(bytes, 8, 16), bytes_of(pair.server_host.gid()));
    EXPECT_EQ(part(bytes, 24, 16), bytes_of(pair.client_host.gid()));
    EXPECT_EQ(part(bytes, 60, 2), (Bytes{0xFF, 0xFF}));
    EXPECT_EQ(word(bytes, 192), 0U);
}

TEST(Query, ADeviceIndexIsReported) {
    Net net;
    Host host(net, 0, LinkLayer::kInfiniband, 2);
    Program program(host);
    const std::uint32_t id = program.create(RDMA_PS_TCP);
    ASSERT_EQ(program.bind(id, address_of(0, 5, 1)), 0);
    EXPECT_EQ(word(query(program, 19, id, 0, 288), 272), 1U);
    EXPECT_EQ(word(query(program, 5, id, 0, 208), 200), 1U);
    EXPECT_EQ(query(program, 19, id, 0, 288)[7], 1) << "its GUID";
}

TEST(EventBytes, OfAConnection) {
    Pair pair;
    pair.listener = pair.server.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort));
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    rdma_ucm_connect command{};
    command.id = id;
    command.conn_param = connection_parameters(0x123456, "abc");
    command.ece = {.vendor_id = 0x15B3, .attr_mod = 9};
    ASSERT_EQ(pair.client.write(RDMA_USER_CM_CMD_CONNECT, command).error, 0);
    pair.net.run_for(1_ms);
    const UcmaReply reply = pair.server.write(12, rdma_ucm_get_event{0x5555}, 4096);
    EXPECT_EQ(reply.address, 0x5555U);
    const Bytes& bytes = reply.bytes;
    ASSERT_EQ(bytes.size(), 336U);
    EXPECT_EQ(word(bytes, 0), 1U) << "uid of the listener";
    EXPECT_EQ(word(bytes, 8), 1U) << "id of the connection";
    EXPECT_EQ(word(bytes, 12), 4U) << "CONNECT_REQUEST";
    EXPECT_EQ(word(bytes, 16), 0U);
    EXPECT_EQ(word(bytes, 20), 0x123456U);
    EXPECT_EQ(part(bytes, 28, 4), (Bytes{'a', 'b', 'c', 0}));
    EXPECT_EQ(part(bytes, 284, 7), (Bytes{56, 0, 8, 4, 1, 7, 6})) << "lengths and depths";
    EXPECT_EQ(word(bytes, 328), 0x15B3U) << "ECE";
    EXPECT_EQ(word(bytes, 332), 9U);
}

TEST(EventBytes, OfADatagram) {
    Pair pair(LinkLayer::kInfiniband, RDMA_PS_UDP);
    pair.request();
    ASSERT_EQ(pair.server.accept(pair.peer, connection_parameters(0x200, "x")), 0);
    pair.net.run();
    const Bytes bytes = pair.client.write(12, rdma_ucm_get_event{0}, 324).bytes;
    ASSERT_EQ(bytes.size(), 324U) << "as older programs read it";
    EXPECT_EQ(word(bytes, 12), 9U);
    EXPECT_EQ(word(bytes, 20), 0x200U);
    EXPECT_EQ(word(bytes, 24), 0x0123'4567U);
    EXPECT_EQ(half(bytes, 52), 2) << "dlid";
    EXPECT_EQ(part(bytes, 54, 5), (Bytes{3, 0, 7, 0, 1})) << "SL, bits, rate, global, port";
    EXPECT_EQ(bytes[60], 'x');
    EXPECT_EQ(bytes[316], 136);
}

TEST(EventBytes, WithoutRoomTheEventStays) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, 1)), 0);
    EXPECT_EQ(pair.client.write(12, rdma_ucm_get_event{0}, 323).error, ENOSPC);
    EXPECT_TRUE(pair.client.file->has_event());
    EXPECT_EQ(pair.client.wake_ups, 1);
}

}  // namespace
}  // namespace simverbs::rdma_cm::test
