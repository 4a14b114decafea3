// Ports and listeners: the rules of cma_check_port(), cma_port_is_unique() and cma_find_listener()
// of Linux, told as cases.
#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rdma_cm/rdma_net.hpp"

namespace simverbs::rdma_cm::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const SocketAddress kAny4 = SocketAddress::inet(0, kPort);
const SocketAddress kAny6 = SocketAddress::inet6(Gid{}, kPort);

struct Option {
    bool reuse = false;
    std::optional<bool> family_only;
};

class Ports : public testing::Test {
  protected:
    int bind(const SocketAddress& address, Option option = {}, std::uint16_t space = RDMA_PS_TCP) {
        id = program.create(space);
        if (option.reuse) {
            EXPECT_EQ(set(1, 1), 0);
        }
        if (option.family_only) {
            EXPECT_EQ(set(2, *option.family_only ? 1 : 0), 0);
        }
        return program.bind(id, address);
    }
    int set(std::uint32_t name, int value) {
        std::array<std::uint8_t, sizeof value> bytes{};
        std::memcpy(bytes.data(), &value, sizeof value);
        return program.set_option(id, 0, name, bytes);
    }
    std::uint16_t port() {
        const rdma_ucm_query_addr_resp response = program.query(id, RDMA_USER_CM_QUERY_ADDR);
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&response.src_addr);
        return static_cast<std::uint16_t>(bytes[2] << 8 | bytes[3]);
    }

    Net net;
    Host host{net, 0, LinkLayer::kInfiniband, 2};
    Program program{host};
    std::uint32_t id = 0;
};

TEST_F(Ports, OneAddressOneOwner) {
    EXPECT_EQ(bind(address_of(0, kPort)), 0);
    EXPECT_EQ(bind(address_of(0, kPort)), EADDRINUSE);
    EXPECT_EQ(bind(address_of(0, kPort, 1)), 0) << "the other device's address";
    EXPECT_EQ(bind(address_of(0, kPort + 1)), 0);
    EXPECT_EQ(bind(kAny4), EADDRNOTAVAIL) << "Linux's error where any address is concerned";
    EXPECT_EQ(bind(address_of(0, kPort), {}, RDMA_PS_UDP), 0) << "another port space";
}

TEST_F(Ports, AnyAddressCoversAll) {
    EXPECT_EQ(bind(kAny4), 0);
    EXPECT_EQ(bind(address_of(0, kPort)), EADDRNOTAVAIL);
    EXPECT_EQ(bind(kAny4), EADDRNOTAVAIL);
    EXPECT_EQ(program.destroy(0).first, 0);
    EXPECT_EQ(bind(address_of(0, kPort)), 0) << "the port is free again";
}

TEST_F(Ports, BothMustAllowReuse) {
    EXPECT_EQ(bind(kAny4, {.reuse = true}), 0);
    EXPECT_EQ(bind(kAny4), EADDRNOTAVAIL);
    EXPECT_EQ(bind(kAny4, {.reuse = true}), 0);
    EXPECT_EQ(program.listen(id), EADDRNOTAVAIL) << "a listener must be alone";
    const std::uint32_t second = id;
    EXPECT_EQ(program.destroy(0).first, 0);
    EXPECT_EQ(program.listen(second), 0);
    EXPECT_EQ(bind(kAny4, {.reuse = true}), EADDRNOTAVAIL) << "and nobody joins it";
    EXPECT_EQ(set(1, 0), 0) << "an id that is not bound may change its mind";
}

TEST_F(Ports, ReuseCannotBeTakenBackFromABoundId) {
    EXPECT_EQ(bind(kAny4), 0);
    EXPECT_EQ(set(1, 0), EINVAL);
    EXPECT_EQ(set(1, 1), 0);
    EXPECT_EQ(set(2, 1), 0) << "AFONLY";
    EXPECT_EQ(program.listen(id), 0);
    EXPECT_EQ(set(1, 1), EINVAL);
    EXPECT_EQ(set(2, 1), EINVAL);
}

TEST_F(Ports, FamiliesShareAPortWhereBothAreAlone) {
    EXPECT_EQ(bind(kAny4), 0) << "IPv4 ids are alone by default";
    EXPECT_EQ(bind(kAny6), EADDRNOTAVAIL) << "IPv6 ids are not";
    EXPECT_EQ(bind(kAny6, {.family_only = true}), 0);
    EXPECT_EQ(bind(SocketAddress::inet(0, kPort + 1), {.family_only = false}), 0);
    EXPECT_EQ(bind(SocketAddress::inet6(Gid{}, kPort + 1), {.family_only = true}), EADDRNOTAVAIL);
}

TEST_F(Ports, EphemeralPortsRise) {
    EXPECT_EQ(bind(SocketAddress::inet(0, 32769)), 0);
    EXPECT_EQ(bind(address_of(0, 0)), 0);
    EXPECT_EQ(port(), 32768);
    EXPECT_EQ(bind(address_of(0, 0)), 0);
    EXPECT_EQ(port(), 32770) << "32769 is taken";
    EXPECT_EQ(program.destroy(id).first, 0);
    EXPECT_EQ(bind(address_of(0, 0), {}, RDMA_PS_UDP), 0);
    EXPECT_EQ(port(), 32771) << "one sequence for all spaces, and none is used again soon";
}

TEST(PortTable, EphemeralPortsComeRound) {
    PortTable table;
    std::vector<PortOwner> owners(60'999 - 32'768 + 2);
    for (PortOwner& owner : owners) {
        owner.source = SocketAddress::inet(0x7F4D'0001, 0);
        owner.destination = SocketAddress(AddressFamily::kInet);
    }
    for (std::size_t i = 0; i + 1 < owners.size(); ++i) {
        ASSERT_EQ(table.bind(PortSpace::kTcp, owners[i]), 0);
    }
    EXPECT_EQ(owners[owners.size() - 2].source.port(), 60'999);
    EXPECT_EQ(table.bind(PortSpace::kTcp, owners.back()), EADDRNOTAVAIL);
    table.release(PortSpace::kTcp, owners[7]);
    EXPECT_EQ(table.bind(PortSpace::kTcp, owners.back()), 0);
    EXPECT_EQ(owners.back().source.port(), 32'775);
    EXPECT_THAT(table.owners(PortSpace::kTcp, 32'775), ElementsAre(&owners.back()));
    EXPECT_THAT(table.owners(PortSpace::kUdp, 32'775), IsEmpty());
}

TEST(PortTable, DifferentDestinationsShareAnEphemeralPort) {
    PortTable table;
    const auto owner_to = [](std::uint32_t address, std::uint16_t port) {
        return PortOwner{.source = SocketAddress::inet(0x7F4D'0001, 0),
                         .destination = SocketAddress::inet(address, port)};
    };
    std::vector<PortOwner> filling(60'999 - 32'768 + 1, owner_to(0x7F4D'0002, 5));
    for (PortOwner& owner : filling) {
        ASSERT_EQ(table.bind(PortSpace::kTcp, owner), 0);
    }
    PortOwner same = owner_to(0x7F4D'0002, 5);
    EXPECT_EQ(table.bind(PortSpace::kTcp, same), EADDRNOTAVAIL);
    PortOwner other_port = owner_to(0x7F4D'0002, 6);
    EXPECT_EQ(table.bind(PortSpace::kTcp, other_port), 0);
    PortOwner other_host = owner_to(0x7F4D'0003, 5);
    EXPECT_EQ(table.bind(PortSpace::kTcp, other_host), 0);
    EXPECT_NE(other_host.source.port(), 0);
}

TEST_F(Ports, BindingChecksTheAddress) {
    EXPECT_EQ(bind(SocketAddress::inet(0x0A00'0001, 1)), EADDRNOTAVAIL);
    Gid link_local;
    link_local.bytes[0] = 0xFE;
    link_local.bytes[1] = 0x80;
    EXPECT_EQ(bind(SocketAddress::inet6(link_local, 1)), EINVAL) << "it needs a scope";
    EXPECT_EQ(bind(SocketAddress::inet(0x7F00'0001, 1)), 0) << "loopback is any address";
    EXPECT_EQ(program.bind(id, kAny4), EINVAL) << "it is bound";
}

TEST_F(Ports, AListenerThatIsNotBoundBindsItself) {
    id = program.create(RDMA_PS_TCP);
    EXPECT_EQ(program.listen(id), 0);
    EXPECT_EQ(port(), 32768);
    EXPECT_EQ(program.listen(id), EINVAL);
}

TEST_F(Ports, AnIbAddressNamesPortSpaceAndPort) {
    constexpr std::uint64_t kAll = ~std::uint64_t{0};
    const auto ib = [](std::uint64_t service, std::uint64_t mask) {
        return SocketAddress::infiniband(Gid{}, 0xFFFF, service, mask);
    };
    EXPECT_EQ(bind(ib(0x0106'0000 | kPort, kAll)), 0);
    EXPECT_EQ(bind(ib(0x0106'0000 | kPort, kAll)), EADDRNOTAVAIL);
    EXPECT_EQ(bind(ib(0x0111'0000 | kPort, kAll)), EPROTONOSUPPORT) << "of another space";
    EXPECT_EQ(bind(ib(0, 0)), 0) << "any port";
    const auto query = program.query(id, RDMA_USER_CM_QUERY_ADDR);
    SocketAddress got(std::span(reinterpret_cast<const std::uint8_t*>(&query.src_addr), 128));
    EXPECT_EQ(got.service_id(), 0x0106'8000U);
    EXPECT_EQ(got.service_mask(), kAll);
    EXPECT_EQ(bind(ib(0x0106'0000 | kPort, kAll), {}, RDMA_PS_IB), EADDRNOTAVAIL)
        << "the space of all queue pairs may take ports of the others";
    EXPECT_EQ(bind(ib(0x0111'0000 | kPort, kAll), {}, RDMA_PS_IB), 0);
    EXPECT_EQ(bind(SocketAddress::infiniband(host.gid(1), 0xFFFF, 0x0106'0000, 0)), 0);
    EXPECT_EQ(program.query(id, RDMA_USER_CM_QUERY_ADDR).ibdev_index, 1U);
    Gid foreign = host.gid(1);
    foreign.bytes[15] ^= 0xFF;
    EXPECT_EQ(bind(SocketAddress::infiniband(foreign, 0xFFFF, 0, 0)), ENODEV);
}

TEST(IbAddresses, ConnectWithoutHeader) {
    Pair pair;
    const auto ib = [](const Gid& gid, std::uint64_t service) {
        return SocketAddress::infiniband(gid, 0xFFFF, service, ~std::uint64_t{0});
    };
    pair.listener = pair.server.listening(RDMA_PS_TCP, ib(Gid{}, 0x0106'1D2F));
    pair.id = pair.client.resolved(RDMA_PS_TCP, ib(pair.server_host.gid(), 0x0106'1D2F));
    ASSERT_EQ(pair.client.connect(pair.id, connection_parameters(1, std::string(92, 'x'))), 0);
    EXPECT_EQ(pair.client_host.queries[0].traffic_class, 0);
    EXPECT_FALSE(pair.client_host.queries[0].qos_class);
    pair.net.run_for(1_ms);
    const auto asked = pair.server.event();
    ASSERT_TRUE(asked);
    EXPECT_EQ(asked->param.conn.private_data_len, 92);
    EXPECT_EQ(asked->param.conn.private_data[0], 'x');
    const auto query = pair.server.query(asked->id, RDMA_USER_CM_QUERY_ADDR);
    const auto address = [](const auto& storage) {
        return SocketAddress(std::span(reinterpret_cast<const std::uint8_t*>(&storage), 128));
    };
    EXPECT_EQ(address(query.src_addr).gid(), pair.server_host.gid());
    EXPECT_EQ(address(query.src_addr).service_id(), 0x0106'1D2FU);
    EXPECT_EQ(address(query.dst_addr).gid(), pair.client_host.gid());
    EXPECT_EQ(query.port_num, 1);
}

TEST(IbAddresses, ADatagramIdChoosesItsQueueKey) {
    Pair pair;
    const auto ib = [](const Gid& gid) {
        return SocketAddress::infiniband(gid, 0xFFFF, 0x0111'1D2F, ~std::uint64_t{0});
    };
    pair.listener = pair.server.listening(RDMA_PS_UDP, ib(Gid{}));
    pair.id = pair.client.resolved(RDMA_PS_UDP, ib(pair.server_host.gid()));
    ASSERT_EQ(pair.client.connect(pair.id, connection_parameters(1)), 0);
    pair.net.run_for(1_ms);
    rdma_ucm_conn_param parameters = connection_parameters(2);
    parameters.qkey = 0x77;
    ASSERT_EQ(pair.server.accept(pair.server.event()->id, parameters), 0);
    pair.net.run();
    EXPECT_EQ(pair.client.event()->param.ud.qkey, 0x77U);
}

TEST(IbAddresses, AreNotForEthernet) {
    Pair pair(LinkLayer::kEthernet);
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    EXPECT_EQ(pair.client.resolve(
                  id, SocketAddress::infiniband(pair.server_host.gid(), 0xFFFF, 0x0106'0001, 0)),
              ENODEV);
}

TEST(Listeners, AnyAddressListensOnAllDevices) {
    Net net;
    Host client_host(net, 0);
    Host server_host(net, 1, LinkLayer::kInfiniband, 2);
    Program client(client_host);
    Program server(server_host);
    server.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort));
    for (const int device : {0, 1}) {
        const std::uint32_t id = client.resolved(RDMA_PS_TCP, address_of(1, kPort, device));
        ASSERT_EQ(client.connect(id, connection_parameters(static_cast<std::uint32_t>(device + 1))),
                  0);
        net.run_for(1_ms);
        const auto asked = server.event();
        ASSERT_TRUE(asked) << device;
        const auto query = server.query(asked->id, RDMA_USER_CM_QUERY_ADDR);
        EXPECT_EQ(query.ibdev_index, static_cast<std::uint32_t>(device));
    }
}

TEST(Listeners, TwoAddressesOfOneDeviceShareAListener) {
    Net net;
    Host client_host(net, 0);
    Host server_host(net, 1);
    Program client(client_host);
    Program server(server_host);
    const std::uint32_t ipv4 = server.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort));
    const std::uint32_t ipv6 = server.create(RDMA_PS_TCP);
    std::array<std::uint8_t, 4> yes{1, 0, 0, 0};
    ASSERT_EQ(server.set_option(ipv6, 0, 2, yes), 0);
    ASSERT_EQ(server.bind(ipv6, SocketAddress::inet6(Gid{}, kPort)), 0);
    ASSERT_EQ(server.listen(ipv6), 0);
    EXPECT_EQ(server_host.infos[0].cm->size(), 1U);
    EXPECT_EQ(server.destroy(ipv6).first, 0);
    EXPECT_EQ(server_host.infos[0].cm->size(), 1U);
    const std::uint32_t id = client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    ASSERT_EQ(client.connect(id, connection_parameters(1)), 0);
    net.run_for(1_ms);
    EXPECT_THAT(server.events(), ElementsAre("CONNECT_REQUEST"));
    EXPECT_EQ(server.destroy(ipv4).first, 0);
    EXPECT_EQ(server_host.infos[0].cm->size(), 1U) << "of the connection";
}

TEST(Listeners, LoopbackTakesTheFirstActivePort) {
    Net net;
    Host host(net, 0, LinkLayer::kInfiniband, 2);
    host.infos[0].ports[0].is_active = false;
    Program program(host);
    program.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort));
    const std::uint32_t id = program.resolved(RDMA_PS_TCP, SocketAddress::inet(0x7F00'0001, kPort));
    EXPECT_EQ(program.query(id, RDMA_USER_CM_QUERY_ADDR).ibdev_index, 1U);
    ASSERT_EQ(program.connect(id, connection_parameters(1)), 0);
    net.run_for(1_ms);
    EXPECT_THAT(program.events(), ElementsAre("CONNECT_REQUEST"));
    host.infos.clear();
    EXPECT_EQ(program.resolve(program.create(RDMA_PS_TCP), SocketAddress::inet(0, 1)), ENODEV);
}

}  // namespace
}  // namespace simverbs::rdma_cm::test
