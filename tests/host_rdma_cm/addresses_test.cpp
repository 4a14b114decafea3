#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "fabric/net/ethernet.hpp"

#include "simverbs/host_rdma_cm/host_rdma_cm.hpp"
#include "simverbs/rdma_cm/socket_address.hpp"

namespace simverbs::rdma_cm {
namespace {

using fabric::Gid;

constexpr std::uint32_t kHost0 = 0x7F4D'0000;  // 127.77.0.0

struct World {
    explicit World(const std::string& topology)
        : simulation(std::move(*Simulation::make({.topology = topology}))), hosts(*simulation) {}

    HostRdmaCm& host(std::string_view name) { return hosts.host(name); }
    [[nodiscard]] const std::vector<fabric::GidEntry>& gids(std::size_t hca,
                                                            std::uint16_t port = 1) const {
        return simulation->hca(hca).port(port).attributes().gids;
    }

    std::unique_ptr<Simulation> simulation;
    RdmaCmHosts hosts;
};

TEST(Addresses, OfInfinibandPortsAreThoseOfTheirNodes) {
    World world("star:2");
    const std::optional<LocalPort> local = world.host("h1").find_local(mapped_ipv4(kHost0 + 1));
    ASSERT_TRUE(local);
    EXPECT_EQ(local->gid, world.gids(1).front().gid);
    EXPECT_EQ(local->pkey, 0xFFFF);
    EXPECT_EQ(world.host("h1").find_local(world.gids(1).front().gid), local) << "as IPv6";
    EXPECT_FALSE(world.host("h1").find_local(mapped_ipv4(kHost0)));
    EXPECT_EQ(world.host("h1").find_remote(*local, mapped_ipv4(kHost0)), world.gids(0).front().gid);
    EXPECT_FALSE(world.host("h1").find_remote(*local, mapped_ipv4(kHost0 + 2)));
}

TEST(Addresses, OfEthernetPortsAreTheirGids) {
    World world("eth-star:2");
    const Gid own = mapped_ipv4(kHost0 + 1);
    const std::optional<LocalPort> local = world.host("h1").find_local(own);
    ASSERT_TRUE(local);
    EXPECT_EQ(local->gid, own);
    EXPECT_EQ(world.host("h1").find_remote(*local, mapped_ipv4(kHost0)), mapped_ipv4(kHost0));
    world.simulation->network().link("h0-s0").set_state(fabric::LinkState::kDown);
    EXPECT_FALSE(world.host("h1").find_remote(*local, mapped_ipv4(kHost0))) << "nobody answers";
}

TEST(Addresses, InAVlanLeadToThatVlan) {
    World world("eth-star:2,vlans=100");
    constexpr std::uint32_t kVlanHost0 = 0x7F4E'0000;
    HostRdmaCm& host = world.host("h1");
    EXPECT_EQ(host.source_for(mapped_ipv4(kVlanHost0)), mapped_ipv4(kVlanHost0 + 1));
    EXPECT_EQ(host.source_for(mapped_ipv4(kHost0)), mapped_ipv4(kHost0 + 1));
    const LocalPort untagged = host.find_local(mapped_ipv4(kHost0 + 1)).value();
    EXPECT_FALSE(host.find_remote(untagged, mapped_ipv4(kVlanHost0)));
}

TEST(Addresses, ThereIsNoRouteBeyondTheLink) {
    World world("star:2");
    EXPECT_FALSE(world.host("h0").source_for(mapped_ipv4(0x0A00'0001)));
    EXPECT_FALSE(world.host("h0").source_for(Gid{{0x20, 0x01}}));
}

TEST(Addresses, OfAHostWithRailsAreAtThePlaceOfThePeers) {
    World world(SIMVERBS_TOPOLOGIES "/two_rails.yaml");
    const auto to = [&world](std::size_t hca) {
        return mapped_ipv4(kHost0 + world.simulation->hca(hca).node().value());
    };
    ASSERT_EQ(world.simulation->hcas_of("h1").size(), 2U);
    for (const std::size_t place : {0U, 1U}) {
        const std::size_t peer = world.simulation->hcas_of("h1").at(place);
        const std::size_t own = world.simulation->hcas_of("h0").at(place);
        EXPECT_EQ(world.host("h0").source_for(to(peer)), to(own));
    }
}

TEST(Addresses, OfANodeWithBothLayersAreOnEthernet) {
    World world("vpi-pair");
    const LocalPort local = world.host("h0").find_local(mapped_ipv4(kHost0)).value();
    EXPECT_EQ(find_port(world.host("h0"), local)->layer, fabric::LinkLayer::kEthernet);
}

TEST(Addresses, OfGroupsAreMadeOfTheIpAddress) {
    World infiniband("star:2");
    const Gid group = mapped_ipv4(0xE001'0203);
    const LocalPort on_ib = infiniband.host("h0").find_local(mapped_ipv4(kHost0)).value();
    EXPECT_EQ(infiniband.host("h0").source_for(group), mapped_ipv4(kHost0));
    EXPECT_EQ(infiniband.host("h0").find_remote(on_ib, group),
              (Gid{{0xFF, 0x12, 0x40, 0x1B, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3}}));
    World ethernet("eth-star:2");
    const LocalPort on_ethernet = ethernet.host("h0").find_local(mapped_ipv4(kHost0)).value();
    EXPECT_EQ(ethernet.host("h0").find_remote(on_ethernet, group), group);
}

TEST(Devices, AreWhatTheSimulationHasNow) {
    World world("star:2");
    const auto port = [&world]() -> const PortInfo& {
        return world.host("h0").devices().front().ports.front();
    };
    EXPECT_EQ(world.host("h0").devices().front().node_guid, world.simulation->hca(0).guid());
    EXPECT_TRUE(port().is_active);
    EXPECT_EQ(port().mtu, 5);
    EXPECT_EQ(port().rate, 16) << "100 Gb/s";
    world.simulation->network().link("h0-s0").set_state(fabric::LinkState::kDown);
    EXPECT_FALSE(port().is_active);
}

}  // namespace
}  // namespace simverbs::rdma_cm
