// Connections by real frames, on InfiniBand and Ethernet: what both sides learn, and exactly when.
#include "simverbs/cm/cm_ports.hpp"

#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/faults/frame_actions.hpp"

#include "tests/cm/cm_fabric.hpp"

namespace simverbs::cm {
namespace {

using fabric::SimDuration;
using fabric::test::RecordingClient;
using test::CmFabric;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using namespace fabric::literals;

constexpr SimDuration kRequestTime = 4'429'185'024_ns;
constexpr SimDuration kTimewait = 134'217'728_ns;

// A frame of `wire_bytes` takes 80 ps a byte on each of two links at 100 Gb/s and 500 ns of each
// link's latency, the switch 100 ns, the manager of the node 1 us.
constexpr SimDuration message_time(int wire_bytes) {
    return 2 * wire_bytes * 80_ps + 2 * 500_ns + 100_ns + 1_us;
}

struct Way {
    std::string name;
    std::string topology;
    std::optional<std::uint8_t> gid_index;
    SimDuration message;
};

class CmPortsOn : public testing::TestWithParam<Way> {
  protected:
    CmPortsOn() { fabric.hosts[1]->listen(); }
    [[nodiscard]] Address to(std::size_t host) const {
        return fabric.address(host, GetParam().gid_index);
    }
    [[nodiscard]] static SimDuration messages(int count) { return count * GetParam().message; }

    CmFabric fabric{GetParam().topology};
};
// BTH, DETH, datagram and ICRC are 280 bytes. LRH and VCRC, GRH, Ethernet with IPv4 and UDP, and
// Ethernet with GRH are before and behind them.
INSTANTIATE_TEST_SUITE_P(
    Each, CmPortsOn,
    testing::Values(Way{"InfinibandByLid", "star:2", std::nullopt, message_time(10 + 280)},
                    Way{"InfinibandByGid", "star:2", 0, message_time(10 + 40 + 280)},
                    Way{"RoceV1", "eth-star:2", 2, message_time(38 + 40 + 280)},
                    Way{"RoceV2", "eth-star:2", 3, message_time(38 + 28 + 280)},
                    Way{"RoceV2LinkLocal", "eth-star:2", 1, message_time(38 + 48 + 280)}),
    [](const auto& way) { return way.param.name; });

TEST_P(CmPortsOn, AConnectionIsEstablishedAndEnded) {
    Connection& active = fabric.hosts[0]->connect(to(1));
    fabric.run();
    EXPECT_EQ(active.state(), CmState::kEstablished);
    EXPECT_THAT(fabric.hosts[0]->events(), ElementsAre(Pair("REP_RECEIVED", messages(2))));
    EXPECT_THAT(fabric.hosts[1]->events(),
                ElementsAre(Pair("REQ_RECEIVED", messages(1)), Pair("RTU_RECEIVED", messages(3))));
    const auto& reply = std::get<Rep>(*fabric.hosts[0]->seen[0].event.message);
    EXPECT_EQ(reply.transaction_id >> 32U, fabric.hosts[0]->ports.transaction_id_high())
        << "the active side's, since a reply keeps it";

    for (const auto& host : fabric.hosts) {
        host->seen.clear();
    }
    ASSERT_EQ(active.send_dreq({}), 0);
    fabric.run();
    EXPECT_THAT(fabric.hosts[0]->events(),
                ElementsAre(Pair("DREP_RECEIVED", messages(5)),
                            Pair("TIMEWAIT_EXIT", messages(5) + kTimewait)));
    EXPECT_THAT(fabric.hosts[1]->events(),
                ElementsAre(Pair("DREQ_RECEIVED", messages(4)),
                            Pair("TIMEWAIT_EXIT", messages(4) + kTimewait)));
}

TEST_P(CmPortsOn, ARequestThatIsLostIsRepeated) {
    const fabric::FrameFault lost(
        fabric.fabric.bus, fabric::FaultId(1), std::make_unique<fabric::EveryFrame>(),
        fabric::OccasionRules{.nth = 1}, std::make_unique<fabric::DropFrame>(),
        {&fabric.fabric.network.link("h0-s0").direction_from(fabric.fabric.port_of(0))});
    const Connection& active = fabric.hosts[0]->connect(to(1));
    fabric.run();
    EXPECT_EQ(active.state(), CmState::kEstablished);
    EXPECT_THAT(fabric.hosts[1]->events(),
                ElementsAre(Pair("REQ_RECEIVED", kRequestTime + messages(1)),
                            Pair("RTU_RECEIVED", kRequestTime + messages(3))));
}

// Datagrams to the own port take the time of its node alone.
TEST_P(CmPortsOn, AHostConnectsToItself) {
    const Connection& active = fabric.hosts[1]->connect(to(1));
    fabric.run();
    EXPECT_EQ(active.state(), CmState::kEstablished);
    EXPECT_THAT(fabric.hosts[1]->events(),
                ElementsAre(Pair("REQ_RECEIVED", 1_us), Pair("REP_RECEIVED", 2_us),
                            Pair("RTU_RECEIVED", 3_us)));
    EXPECT_EQ(fabric.fabric.port_of(1).counters().xmit_packets, 0U);
}

TEST(CmPorts, ArrivedMessagesNameTheirSenderAndTheirPort) {
    CmFabric fabric("eth-star:2");
    fabric.hosts[1]->listen();
    fabric.hosts[0]->connect(fabric.address(1, 3));
    fabric.run();
    const Address& from = fabric.hosts[1]->seen.at(0).event.from.value();
    EXPECT_EQ(from.port, fabric::PortNumber{1});
    EXPECT_EQ(from.remote.qp, fabric::kGeneralServicesQp);
    ASSERT_TRUE(from.remote.global);
    EXPECT_EQ(from.remote.global->gid, fabric.fabric.port_of(0).attributes().gids[3].gid);
    EXPECT_EQ(from.remote.global->gid_index, 3);
}

TEST(CmPorts, ARequestThatNoPortTakesTimesOut) {
    CmFabric fabric("eth-star:2");
    Address nowhere = fabric.address(1, 3);
    nowhere.remote.global.reset();
    fabric.hosts[0]->connect(nowhere);
    nowhere = fabric.address(1, 3);
    nowhere.port = fabric::PortNumber{2};
    fabric.hosts[0]->connect(nowhere);
    fabric.run();
    EXPECT_THAT(fabric.hosts[0]->events(), ElementsAre(Pair("REQ_ERROR", 4 * kRequestTime),
                                                       Pair("REQ_ERROR", 4 * kRequestTime)));
    EXPECT_EQ(fabric.fabric.port_of(0).counters().xmit_packets, 0U);
}

TEST(CmPorts, APortHasOneTakerOfTheseMessages) {
    CmFabric fabric("star:2");
    fabric::AgentSpec spec{.management_class = 7, .class_version = 2};
    spec.methods.set(static_cast<std::size_t>(fabric::mad::Method::kSend));
    fabric.hosts.pop_back();
    const RecordingClient first(fabric.fabric, fabric.fabric.port(1), spec);
    const test::Host second(fabric.fabric.managed, fabric.fabric.network.host(1));
    EXPECT_EQ(second.ports.transaction_id_high(), 0U) << "not registered";
    fabric.hosts[0]->connect(fabric.address(1, std::nullopt));
    fabric.run();
    EXPECT_EQ(first.received.size(), 4U) << "three retries";
    EXPECT_THAT(second.events(), IsEmpty());
}

TEST(CmPorts, WithoutAManagerNothingIsAnswered) {
    CmFabric fabric("star:2");
    fabric.hosts[1]->listen();
    fabric.hosts[1]->ports.set_manager(nullptr);
    fabric.hosts[0]->connect(fabric.address(1, std::nullopt));
    fabric.run();
    EXPECT_THAT(fabric.hosts[1]->events(), IsEmpty());
}

}  // namespace
}  // namespace simverbs::cm
