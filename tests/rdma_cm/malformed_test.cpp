// Commands as no library writes them. Lengths and errors are those of Linux's ucma.c, but for
// commands that end early: there the kernel reads on.
#include <cerrno>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/core/random.hpp"

#include "tests/rdma_cm/rdma_net.hpp"

namespace simverbs::rdma_cm::test {
namespace {

// A command: its number, the bytes of its struct, the byte of its id, and the bytes that its answer
// needs, as of rdma_user_cm.h.
struct Shape {
    const char* name;
    std::uint32_t number;
    std::size_t bytes;
    std::optional<std::size_t> id_at;
    std::size_t answer;
    int too_short = EFAULT;
};

// The bytes that QUERY_ROUTE, QUERY and GET_EVENT need at least leave out what later kernels added.
const std::vector<Shape>& shapes() {
    static const std::vector<Shape> kShapes = {
        {"CreateId", 0, 24, std::nullopt, 4},
        {"DestroyId", 1, 16, 8, 4},
        {"BindIp", 2, 40, 36, 0},
        {"ResolveIp", 3, 64, 56, 0},
        {"ResolveRoute", 4, 8, 0, 0},
        {"QueryRoute", 5, 16, 8, 200},
        {"Connect", 6, 288, 272, 0, EINVAL},
        {"Listen", 7, 8, 0, 0},
        {"Accept", 8, 296, 280, 0, EINVAL},
        {"Reject", 9, 264, 0, 0},
        {"Disconnect", 10, 4, 0, 0},
        {"InitQpAttr", 11, 16, 8, 144},
        {"GetEvent", 12, 8, std::nullopt, 324},
        {"SetOption", 14, 24, 8, 0},
        {"Notify", 15, 8, 0, 0},
        {"JoinIpMcast", 16, 48, 44, 4},
        {"LeaveMcast", 17, 16, 8, 4},
        {"MigrateId", 18, 16, 8, 0},
        {"Query", 19, 16, 8, 272},
        {"Bind", 20, 136, 0, 0},
        {"ResolveAddr", 21, 272, 0, 0},
        {"JoinMcast", 22, 152, 16, 4},
    };
    return kShapes;
}

// A command that is well formed, for an id.
std::vector<std::uint8_t> valid(const Shape& shape, std::uint32_t id) {
    std::vector<std::uint8_t> bytes(shape.bytes);
    const auto put = [&bytes](std::size_t at, const auto& value) {
        std::memcpy(bytes.data() + at, &value, sizeof value);
    };
    const auto put_address = [&bytes](std::size_t at) {
        const SocketAddress address = address_of(0, 0);
        std::memcpy(bytes.data() + at, address.bytes().data(), 16);
    };
    if (shape.id_at) {
        put(*shape.id_at, id);
    }
    switch (shape.number) {
        case 0:
            put(16, std::uint16_t{0x0106});
            break;
        case 2:
            put_address(8);
            break;
        case 3:
            put_address(28);
            break;
        case 6:
            put(271, std::uint8_t{1});
            break;
        case 8:
            put(279, std::uint8_t{1});
            break;
        case 16:
            put_address(16);
            break;
        case 20:
            put(4, std::uint16_t{16});
            put_address(8);
            break;
        case 21:
            put(10, std::uint16_t{16});
            put_address(144);
            break;
        case 22:
            put(20, std::uint16_t{16});
            put_address(24);
            break;
        default:
            break;
    }
    return bytes;
}

class Malformed : public testing::TestWithParam<Shape> {
  protected:
    int write(const std::vector<std::uint8_t>& bytes, std::size_t out) {
        return program.write_bytes(GetParam().number, bytes.data(), bytes.size(), out, inputs)
            .error;
    }

    Net net;
    Host host{net, 0};
    Program program{host};
    UcmaInputs inputs{.option = std::span<const std::uint8_t>(),
                      .descriptor_is_open = true,
                      .file = program.file.get()};
};

INSTANTIATE_TEST_SUITE_P(Commands, Malformed, testing::ValuesIn(shapes()),
                         [](const auto& shape) { return std::string(shape.param.name); });

TEST_P(Malformed, EndsEarly) {
    const std::vector<std::uint8_t> bytes = valid(GetParam(), 0);
    // CONNECT and ACCEPT may leave out the ECE options at the end.
    const std::size_t needed = bytes.size() - (GetParam().too_short == EINVAL ? 8 : 0);
    for (std::size_t size = 0; size < needed; ++size) {
        const std::vector<std::uint8_t> part(bytes.begin(),
                                             bytes.begin() + static_cast<std::ptrdiff_t>(size));
        EXPECT_EQ(write(part, 4096), GetParam().too_short) << size;
    }
    EXPECT_EQ(host.ucma.size(), 0U);
}

TEST_P(Malformed, NamesAnIdThatIsNone) {
    if (GetParam().id_at) {
        EXPECT_EQ(write(valid(GetParam(), 5), 4096), ENOENT);
    }
}

TEST_P(Malformed, NamesAnIdOfAnotherFile) {
    Program other(host);
    const std::uint32_t id = other.create(RDMA_PS_UDP);
    ASSERT_EQ(other.bind(id, address_of(0, 0)), 0);
    ASSERT_EQ(other.join(id, SocketAddress::inet(0xE000'0001, 0)).second, id);
    if (GetParam().id_at) {
        EXPECT_EQ(write(valid(GetParam(), id), 4096), EINVAL);
    }
    EXPECT_EQ(host.ucma.rdma_cm().find(RdmaIdNumber(1))->state(), RdmaCmState::kAddrBound);
}

TEST_P(Malformed, HasNoRoomForTheAnswer) {
    if (GetParam().answer == 0) {
        return;
    }
    program.create(RDMA_PS_TCP);
    EXPECT_EQ(write(valid(GetParam(), 0), GetParam().answer - 1), ENOSPC);
    EXPECT_EQ(host.ucma.size(), 1U) << "nothing is created or destroyed";
}

TEST_P(Malformed, SaysThatItIsLongerThanItIs) {
    const std::vector<std::uint8_t> bytes = valid(GetParam(), 0);
    std::vector<std::uint8_t> written(8 + bytes.size());
    const rdma_ucm_cmd_hdr header{GetParam().number, static_cast<std::uint16_t>(bytes.size() + 1),
                                  4096};
    std::memcpy(written.data(), &header, sizeof header);
    EXPECT_EQ(program.file->write(written).error, EINVAL);
}

TEST_P(Malformed, CarriesMoreThanItsStruct) {
    std::vector<std::uint8_t> bytes = valid(GetParam(), 5);
    bytes.resize(bytes.size() + 100, 0xFF);
    const int error = write(bytes, 4096);
    EXPECT_EQ(error, GetParam().id_at ? ENOENT : GetParam().number == 0 ? 0 : EAGAIN);
}

TEST(MalformedHeader, IsRefused) {
    Pair pair;
    const std::array<std::uint8_t, 8> bytes{};
    for (std::size_t size = 0; size < 8; ++size) {
        EXPECT_EQ(pair.client.file->write(std::span(bytes).first(size)).error, EINVAL);
    }
    const auto command = [&pair](std::uint32_t number) {
        return pair.client.write_bytes(number, nullptr, 0, 0).error;
    };
    EXPECT_EQ(command(13), ENOSYS) << "GET_OPTION";
    EXPECT_EQ(command(23), EINVAL);
    EXPECT_EQ(command(0xFFFF'FFFF), EINVAL);
}

TEST(MalformedFields, PortSpaces) {
    Pair pair;
    for (const unsigned space : {0U, 1U, 0x0105U, 0xFFFFU}) {
        rdma_ucm_create_id command{};
        command.ps = static_cast<std::uint16_t>(space);
        EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_CREATE_ID, command, 4).error, EINVAL);
    }
    EXPECT_EQ(pair.client_host.ucma.size(), 0U);
}

TEST(MalformedFields, AddressSizes) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_UDP);
    rdma_ucm_bind bind{};
    bind.id = id;
    const SocketAddress address = address_of(0, 0);
    std::memcpy(&bind.addr, address.bytes().data(), 16);
    for (const int size : {0, 15, 17, 28, 128}) {
        bind.addr_size = static_cast<std::uint16_t>(size);
        EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_BIND, bind).error, EINVAL) << size;
    }
    bind.addr_size = 16;
    bind.reserved = 1;
    EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_BIND, bind).error, EINVAL);
    bind.reserved = 0;
    bind.addr.ss_family = 1;
    EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_BIND, bind).error, EINVAL) << "AF_UNIX";
    rdma_ucm_bind_ip bind_ip{};
    bind_ip.id = id;
    bind_ip.addr.sin6_family = 27;
    EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_BIND_IP, bind_ip).error, EINVAL)
        << "an AF_IB address does not fit there";
    rdma_ucm_resolve_ip resolve_ip{};
    resolve_ip.id = id;
    resolve_ip.src_addr.sin6_family = 1;
    std::memcpy(&resolve_ip.dst_addr, address.bytes().data(), 16);
    EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_RESOLVE_IP, resolve_ip).error, EINVAL);
    rdma_ucm_resolve_addr resolve{};
    resolve.id = id;
    resolve.dst_size = 16;
    std::memcpy(&resolve.dst_addr, address.bytes().data(), 16);
    resolve.src_size = 16;
    EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_RESOLVE_ADDR, resolve).error, EINVAL);
    resolve.src_size = 0;
    resolve.reserved = 1;
    EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_RESOLVE_ADDR, resolve).error, EINVAL);
    EXPECT_EQ(pair.client.bind(id, address), 0) << "nothing of this has bound the id";
    EXPECT_EQ(pair.client.join(id, SocketAddress::inet(0xE000'0001, 0), 2).first, EINVAL)
        << "a flag that is reserved";
    rdma_ucm_join_mcast join{};
    join.id = id;
    join.addr_size = 28;
    std::memcpy(&join.addr, address.bytes().data(), 16);
    EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_JOIN_MCAST, join, 4).error, EINVAL);
}

TEST(MalformedFields, OldCommandsTakeAddresses) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_UDP);
    rdma_ucm_resolve_ip resolve{};
    resolve.id = id;
    resolve.timeout_ms = 1000;
    const SocketAddress to = address_of(1, kPort);
    std::memcpy(&resolve.dst_addr, to.bytes().data(), 16);
    EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_RESOLVE_IP, resolve).error, 0);
    EXPECT_THAT(pair.client.events(), testing::ElementsAre("ADDR_RESOLVED"));
    const std::uint32_t other = pair.client.create(RDMA_PS_UDP);
    rdma_ucm_bind_ip bind{};
    bind.id = other;
    std::memcpy(&bind.addr, address_of(0, 5).bytes().data(), 16);
    EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_BIND_IP, bind).error, 0);
    rdma_ucm_join_ip_mcast join{};
    join.id = other;
    join.uid = 5;
    std::memcpy(&join.addr, SocketAddress::inet(0xE000'0001, 0).bytes().data(), 16);
    EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_JOIN_IP_MCAST, join, 4).error, 0);
    pair.net.run();
    EXPECT_EQ(pair.client.event()->uid, 5U);
}

TEST(MalformedFields, Options) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    const std::array<std::uint8_t, 8> bytes{1};
    const std::span<const std::uint8_t> value(bytes);
    for (const std::uint32_t name : {0U, 1U, 2U, 3U}) {
        const std::size_t right = name == 1 || name == 2 ? 4 : 1;
        for (std::size_t size = 0; size <= value.size(); ++size) {
            EXPECT_EQ(pair.client.set_option(id, 0, name, value.first(size)),
                      size == right ? 0 : EINVAL)
                << name << " of " << size;
        }
    }
    EXPECT_EQ(pair.client.set_option(id, 0, 4, value), ENOSYS);
    EXPECT_EQ(pair.client.set_option(id, 7, 0, value), ENOSYS);
    EXPECT_EQ(pair.client.set_option(pair.client.create(RDMA_PS_UDP), 0, 3, value.first(1)), EINVAL)
        << "datagrams are not acknowledged";
}

TEST(MalformedFields, OptionsNeedTheirMemory) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    const auto set = [&](std::uint32_t bytes, const UcmaInputs& inputs) {
        return pair.client
            .write(RDMA_USER_CM_CMD_SET_OPTION, rdma_ucm_set_option{0x1234, id, 0, 0, bytes}, 0,
                   inputs)
            .error;
    };
    const std::array<std::uint8_t, 2> memory{};
    EXPECT_EQ(set(1, {}), EFAULT);
    EXPECT_EQ(set(1, {.option = std::span<const std::uint8_t>(memory)}), EFAULT)
        << "it is not the memory that was asked for";
    EXPECT_EQ(set(UcmaFile::kMaxOptionBytes + 1, {}), EINVAL);
    EXPECT_EQ(set(0xFFFF'FFFF, {}), EINVAL);
}

TEST(MalformedFields, CommandsSayWhatTheyNeed) {
    const auto needs = [](std::uint32_t number, const auto& command) {
        std::vector<std::uint8_t> bytes(8 + sizeof command);
        const rdma_ucm_cmd_hdr header{number, sizeof command, 0};
        std::memcpy(bytes.data(), &header, sizeof header);
        std::memcpy(bytes.data() + 8, &command, sizeof command);
        return UcmaFile::needs(bytes);
    };
    const UcmaNeeds option = needs(14, rdma_ucm_set_option{0x1234, 1, 0, 0, 77});
    EXPECT_EQ(option.option_address, 0x1234U);
    EXPECT_EQ(option.option_bytes, 77U);
    EXPECT_FALSE(option.descriptor);
    EXPECT_EQ(needs(14, rdma_ucm_set_option{0x1234, 1, 0, 0, 0xFFFF'FFFF}).option_bytes, 0U);
    EXPECT_EQ(needs(18, rdma_ucm_migrate_id{0, 1, 9}).descriptor, 9U);
    EXPECT_FALSE(needs(1, rdma_ucm_destroy_id{0, 1, 9}).descriptor);
    EXPECT_FALSE(needs(18, std::uint32_t{1}).descriptor) << "it ends early";
    EXPECT_EQ(needs(14, std::uint32_t{1}).option_bytes, 0U);
    EXPECT_EQ(UcmaFile::needs({}).option_bytes, 0U);
}

TEST(MalformedFields, BackOfTheQueuePairStates) {
    Pair pair;
    const std::uint32_t id = pair.client.resolved(RDMA_PS_UDP, address_of(1, kPort));
    EXPECT_EQ(pair.client.qp_attr(id, 6).first, 0) << "datagram ids take any";
    EXPECT_EQ(pair.client.qp_attr(id, 7).first, EINVAL);
    pair.client_host.infos[0].ports[0].pkeys = {0x8001};
    EXPECT_EQ(pair.client.qp_attr(id, 1).first, ENOENT) << "the port has lost the P_Key";
}

TEST(MalformedFields, ConnectNeedsValidParameters) {
    Pair pair;
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    rdma_ucm_conn_param parameters = connection_parameters(1);
    parameters.valid = 0;
    EXPECT_EQ(pair.client.connect(id, parameters), EINVAL);
    rdma_ucm_connect command{};
    command.id = id;
    command.conn_param = connection_parameters(1);
    command.ece = {.vendor_id = 7, .attr_mod = 8};
    EXPECT_EQ(pair.client.write_bytes(RDMA_USER_CM_CMD_CONNECT, &command, 280, 0).error, 0)
        << "as older programs write it";
    EXPECT_EQ(pair.net.last<cm::Req>(0).ece, cm::Ece{});
}

// Writes of any bytes, many of them almost well formed: nothing but an errno may come of it.
TEST(Noise, IsAnswered) {
    Pair pair;
    fabric::RandomStream random(7, "rdma_cm", "noise");
    for (int i = 0; i < 20'000; ++i) {
        const Shape& shape = shapes()[random.below(shapes().size())];
        std::vector<std::uint8_t> bytes = valid(shape, static_cast<std::uint32_t>(random.below(6)));
        for (std::uint64_t changes = random.below(4); changes > 0; --changes) {
            bytes[random.below(bytes.size())] = static_cast<std::uint8_t>(random.next());
        }
        const std::vector<std::uint8_t> option(random.below(100));
        Program& program = random.below(2) == 0 ? pair.client : pair.server;
        program.write_bytes(shape.number, bytes.data(), bytes.size(), random.below(400),
                            {.option = std::span<const std::uint8_t>(option),
                             .descriptor_is_open = random.below(2) == 0,
                             .file = program.file.get()});
        if (random.below(8) == 0) {
            pair.net.run_for(10_ms);
        }
    }
    pair.client.file.reset();
    pair.server.file.reset();
    pair.net.run();
    EXPECT_EQ(pair.client_host.ucma.rdma_cm().size(), 0U);
    EXPECT_EQ(pair.server_host.infos[0].cm->size(), 0U);
}

}  // namespace
}  // namespace simverbs::rdma_cm::test
