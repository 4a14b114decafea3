#include "fabric/mad/subnet_agent.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fabric/mad/managed_fabric.hpp"

namespace fabric {
namespace {

using mad::Attribute;
using mad::Datagram;
using mad::Method;
using test::make_directed;
using test::make_smp;
using test::ManagedFabric;
using test::RecordingClient;
using test::smp_agent;
using testing::ElementsAre;
using testing::IsEmpty;
namespace info = mad::port_info;

using Path = std::vector<std::uint8_t>;

constexpr std::uint64_t kOk = 0;
constexpr std::uint64_t kUnsupported = 0x0C;
constexpr std::uint64_t kBadValue = 0x1C;

// star:2, seen from h0: {1} is the switch, {1, 2} is h1.
class Agents : public testing::Test {
  protected:
    Datagram get(const Path& path, Attribute attribute, std::uint32_t modifier = 0) {
        const auto answer = client.ask(make_directed(Method::kGet, attribute, path, modifier));
        EXPECT_TRUE(answer.has_value());
        return answer.value_or(Datagram{});
    }
    // Writes what is there, with changes.
    template <class F>
    std::uint64_t change(const Path& path, Attribute attribute, std::uint32_t modifier, F&& edit) {
        Datagram request = make_directed(Method::kSet, attribute, path, modifier);
        const Datagram before = get(path, attribute, modifier);
        std::ranges::copy(before.smp_data(), request.smp_data().begin());
        if (attribute == Attribute::kPortInfo) {
            mad::set(request.smp_data(), info::kState, 0);
            mad::set(request.smp_data(), info::kPhysicalState, 0);
        }
        edit(request.smp_data());
        request.set(mad::smp::kMkey, key);
        const auto answer = client.ask(request);
        EXPECT_TRUE(answer.has_value());
        return answer ? answer->get(mad::smp::kStatus) : 0xFFFF;
    }
    std::uint64_t set_port(const Path& path, std::uint32_t port, mad::Field field,
                           std::uint64_t value) {
        return change(path, Attribute::kPortInfo, port,
                      [&](mad::Bytes data) { mad::set(data, field, value); });
    }
    Node& switch_node() { return fabric.network.switch_at(0); }

    ManagedFabric fabric{"star:2"};
    RecordingClient client{fabric, fabric.port(0), smp_agent()};
    std::uint64_t key = 0;
    const Path kHome{};
    const Path kSwitch{1};
    const Path kOther{1, 2};
};

TEST_F(Agents, SayWhoTheyAre) {
    const Datagram own = get(kHome, Attribute::kNodeInfo);
    EXPECT_EQ(mad::get(own.smp_data(), mad::node_info::kNodeType), 1U);
    EXPECT_EQ(mad::get(own.smp_data(), mad::node_info::kVendorId), 0x1234U);
    const Datagram far = get(kSwitch, Attribute::kNodeInfo);
    EXPECT_EQ(mad::get(far.smp_data(), mad::node_info::kNodeType), 2U);
    EXPECT_EQ(mad::get(far.smp_data(), mad::node_info::kPortCount), switch_node().port_count());
    EXPECT_EQ(mad::get(far.smp_data(), mad::node_info::kNodeGuid), switch_node().guid().value());
    EXPECT_EQ(mad::get(far.smp_data(), mad::node_info::kLocalPort), 1U) << "it came in there";
    const Datagram text = get(kOther, Attribute::kNodeDescription);
    EXPECT_STREQ(reinterpret_cast<const char*>(text.smp_data().data()), "h1");
}

TEST_F(Agents, AnswerWhatTheyDoNotHaveWithAStatus) {
    EXPECT_EQ(get(kOther, Attribute::kSwitchInfo).get(mad::smp::kStatus), kUnsupported);
    EXPECT_EQ(get(kOther, static_cast<Attribute>(0xFF90)).get(mad::smp::kStatus), kUnsupported);
    EXPECT_EQ(get(kOther, Attribute::kSmInfo).get(mad::smp::kStatus), kUnsupported);
    EXPECT_EQ(get(kSwitch, Attribute::kPortInfo, 99).get(mad::smp::kStatus), kBadValue);
    EXPECT_EQ(get(kOther, Attribute::kPkeyTable, 9).get(mad::smp::kStatus), kBadValue);
    Datagram old = make_directed(Method::kGet, Attribute::kNodeInfo, kOther);
    old.set(mad::header::kClassVersion, 9);
    EXPECT_EQ(client.ask(old)->get(mad::smp::kStatus), 0x04U);
}

TEST_F(Agents, SetAPortsAddressesAndTellItsConsumer) {
    fabric.hosts[1]->events.clear();
    EXPECT_EQ(change(kOther, Attribute::kPortInfo, 1,
                     [](mad::Bytes data) {
                         mad::set(data, info::kLid, 7);
                         mad::set(data, info::kSmLid, 3);
                         mad::set(data, info::kLmc, 1);
                         mad::set(data, info::kClientReregister, 1);
                     }),
              kOk);
    EXPECT_EQ(fabric.port_of(1).attributes().lid, Lid{7});
    EXPECT_EQ(fabric.port_of(1).attributes().lmc, 1);
    EXPECT_THAT(fabric.hosts[1]->events, ElementsAre(PortEvent::kLidChange, PortEvent::kSmChange,
                                                     PortEvent::kClientReregister));
    EXPECT_THAT(fabric.hosts[0]->events, IsEmpty());

    fabric.hosts[1]->events.clear();
    EXPECT_EQ(set_port(kOther, 1, info::kSubnetTimeout, 17), kOk);
    EXPECT_THAT(fabric.hosts[1]->events, IsEmpty()) << "nothing that it is told of has changed";
    EXPECT_EQ(set_port(kOther, 1, info::kGidPrefix, 0xFEC0'0000'0000'0001), kOk);
    EXPECT_THAT(fabric.hosts[1]->events, ElementsAre(PortEvent::kGidChange));
    EXPECT_EQ(fabric.port_of(1).attributes().gids[0].gid.subnet_prefix(), 0xFEC0'0000'0000'0001);
}

TEST_F(Agents, MovePortsThroughTheirStates) {
    EXPECT_EQ(set_port(kOther, 1, info::kState, 4), kBadValue) << "ACTIVE from INIT";
    EXPECT_EQ(set_port(kOther, 1, info::kState, 2), kBadValue) << "nobody sets INIT";
    EXPECT_EQ(fabric.port_of(1).state(), PortState::kInit);
    EXPECT_EQ(set_port(kOther, 1, info::kState, 3), kOk);
    EXPECT_EQ(fabric.port_of(1).state(), PortState::kArmed);
    EXPECT_EQ(set_port(kSwitch, 2, info::kState, 3), kOk);
    EXPECT_EQ(set_port(kSwitch, 2, info::kState, 4), kOk);
    EXPECT_EQ(set_port(kOther, 1, info::kState, 4), kOk);
    EXPECT_THAT(fabric.hosts[1]->events, ElementsAre(PortEvent::kPortActive));
    EXPECT_EQ(mad::get(get(kOther, Attribute::kPortInfo, 1).smp_data(), info::kState), 4U);
}

TEST_F(Agents, DisableAndEnableALink) {
    EXPECT_EQ(set_port(kSwitch, 2, info::kPhysicalState, 3), kOk);
    EXPECT_EQ(fabric.port_of(1).state(), PortState::kDown);
    EXPECT_EQ(mad::get(get(kSwitch, Attribute::kPortInfo, 2).smp_data(), info::kPhysicalState), 3U);
    fabric.network.link("h1-s0").set_state(LinkState::kUp);
    EXPECT_EQ(fabric.port_of(1).state(), PortState::kDown) << "plugged in, yet disabled";
    EXPECT_EQ(set_port(kSwitch, 2, info::kPhysicalState, 2), kOk);
    EXPECT_EQ(fabric.port_of(1).state(), PortState::kInit);
    EXPECT_EQ(mad::get(get(kSwitch, Attribute::kPortInfo, 2).smp_data(), info::kPhysicalState), 5U);
}

TEST_F(Agents, TakeEnabledSpeedsWhenTheLinkTrainsAgain) {
    EXPECT_EQ(change(kSwitch, Attribute::kPortInfo, 2,
                     [](mad::Bytes data) {
                         mad::set(data, info::kExtendedSpeedEnabled, 1);
                         mad::set(data, info::kWidthEnabled, 1);
                     }),
              kOk);
    EXPECT_EQ(fabric.port_of(1).attributes().speed, LinkSpeed::kEdr);
    EXPECT_EQ(set_port(kSwitch, 2, info::kState, 1), kOk) << "down: it trains again";
    EXPECT_EQ(fabric.port_of(1).attributes().speed, LinkSpeed::kFdr);
    EXPECT_EQ(fabric.port_of(1).attributes().width, LinkWidth::k1x);
    const Datagram seen = get(kOther, Attribute::kPortInfo, 1);
    EXPECT_EQ(mad::get(seen.smp_data(), info::kExtendedSpeedActive), 1U);
    EXPECT_EQ(mad::get(seen.smp_data(), info::kExtendedSpeedSupported), 3U);
    EXPECT_EQ(mad::get(seen.smp_data(), info::kWidthActive), 1U);
}

TEST_F(Agents, SupportARateThatALinkWasGivenLater) {
    const auto enable_all = [](mad::Bytes data) {
        mad::set(data, info::kWidthEnabled, 255);
        mad::set(data, info::kExtendedSpeedEnabled, 31);
    };
    EXPECT_EQ(change(kOther, Attribute::kPortInfo, 1, enable_all), kOk);
    fabric.port_of(1).link()->set_rate(LinkWidth::k12x, LinkSpeed::kHdr);
    const Datagram seen = get(kOther, Attribute::kPortInfo, 1);
    EXPECT_EQ(mad::get(seen.smp_data(), info::kExtendedSpeedActive), 4U);
    EXPECT_EQ(mad::get(seen.smp_data(), info::kExtendedSpeedSupported), 7U);
    EXPECT_EQ(mad::get(seen.smp_data(), info::kExtendedSpeedEnabled), 7U);
    EXPECT_EQ(mad::get(seen.smp_data(), info::kWidthActive), 8U);
    EXPECT_EQ(mad::get(seen.smp_data(), info::kWidthSupported), 11U) << "1x, 4x and 12x";
    EXPECT_EQ(mad::get(seen.smp_data(), info::kWidthEnabled), 11U);
}

TEST_F(Agents, KeepTheKeyOfASubnet) {
    EXPECT_EQ(change(kOther, Attribute::kPortInfo, 1,
                     [](mad::Bytes data) {
                         mad::set(data, info::kMkey, 0xABCD);
                         mad::set(data, info::kMkeyProtection, 1);
                     }),
              kOk);
    EXPECT_EQ(mad::get(get(kOther, Attribute::kPortInfo, 1).smp_data(), info::kMkey), 0U)
        << "not shown to one who does not know it";
    Datagram set = make_directed(Method::kSet, Attribute::kPortInfo, kOther, 1);
    EXPECT_FALSE(client.ask(set)) << "no answer at all";
    EXPECT_EQ(mad::get(get(kOther, Attribute::kPortInfo, 1).smp_data(), info::kMkeyViolations), 1U);
    key = 0xABCD;
    EXPECT_EQ(change(kOther, Attribute::kPortInfo, 1,
                     [](mad::Bytes data) {
                         mad::set(data, info::kMkey, 0xABCD);
                         mad::set(data, info::kMkeyProtection, 2);
                     }),
              kOk);
    EXPECT_FALSE(client.ask(make_directed(Method::kGet, Attribute::kNodeInfo, kOther)));
}

TEST_F(Agents, SetPkeysWithoutAHole) {
    const auto pkeys = [this](std::uint16_t first, std::uint16_t second) {
        return change(kOther, Attribute::kPkeyTable, 0, [=](mad::Bytes data) {
            mad::set(data, {0, 16}, first);
            mad::set(data, {16, 16}, second);
        });
    };
    EXPECT_EQ(pkeys(0xFFFF, 0x8001), kOk);
    EXPECT_THAT(fabric.port_of(1).attributes().pkeys, ElementsAre(0xFFFF, 0x8001));
    EXPECT_THAT(fabric.hosts[1]->events, ElementsAre(PortEvent::kPkeyChange));
    EXPECT_EQ(pkeys(0xFFFF, 0x8001), kOk);
    EXPECT_EQ(fabric.hosts[1]->events.size(), 1U);
    EXPECT_EQ(pkeys(0xFFFF, 0), kOk);
    EXPECT_THAT(fabric.port_of(1).attributes().pkeys, ElementsAre(0xFFFF, 0));
}

TEST_F(Agents, SetGuidsButTheirOwn) {
    EXPECT_EQ(change(kOther, Attribute::kGuidInfo, 0,
                     [](mad::Bytes data) {
                         mad::set(data, {0, 64}, 5);
                         mad::set(data, {64, 64}, 6);
                     }),
              kOk);
    const auto& gids = fabric.port_of(1).attributes().gids;
    ASSERT_EQ(gids.size(), 2U);
    EXPECT_EQ(gids[0].gid.interface_id(), fabric.port_of(1).attributes().guid.value());
    EXPECT_EQ(gids[1].gid, make_gid(kDefaultSubnetPrefix, Guid(6)));
    EXPECT_THAT(fabric.hosts[1]->events, ElementsAre(PortEvent::kGidChange));
}

TEST_F(Agents, FillForwardingTables) {
    EXPECT_EQ(change(kSwitch, Attribute::kLinearForwardingTable, 0,
                     [](mad::Bytes data) {
                         std::ranges::fill(data, std::uint8_t{0xFF});
                         data[1] = 1;
                         data[2] = 2;
                     }),
              kOk);
    EXPECT_EQ(fabric.network.switch_at(0).route(Lid{2}), 2);
    EXPECT_EQ(fabric.network.switch_at(0).route(Lid{3}), Switch::kNoRoute);
    EXPECT_TRUE(fabric.network.switch_at(0).multicast_table().empty());
    EXPECT_EQ(change(kSwitch, Attribute::kMulticastForwardingTable, 0,
                     [](mad::Bytes data) {
                         mad::set(data, {16, 16}, 0b110);
                     }),
              kOk);
    EXPECT_EQ(mad::get(get(kSwitch, Attribute::kMulticastForwardingTable).smp_data(), {16, 16}),
              0b110U);
}

TEST_F(Agents, AnswerByLidToo) {
    set_port(kHome, 1, info::kLid, 1);
    set_port(kOther, 1, info::kLid, 2);
    change(kSwitch, Attribute::kPortInfo, 0,
           [](mad::Bytes data) { mad::set(data, info::kLid, 3); });
    change(kSwitch, Attribute::kLinearForwardingTable, 0, [](mad::Bytes data) {
        data[1] = 1;
        data[2] = 2;
        data[3] = 0;
    });
    const auto far = client.ask(make_smp(Method::kGet, Attribute::kNodeInfo), {.lid = Lid{2}});
    ASSERT_TRUE(far);
    EXPECT_EQ(mad::get(far->smp_data(), mad::node_info::kNodeGuid),
              fabric.network.host(1).guid().value());
    const auto near = client.ask(make_smp(Method::kGet, Attribute::kNodeInfo), {.lid = Lid{3}});
    ASSERT_TRUE(near);
    EXPECT_EQ(mad::get(near->smp_data(), mad::node_info::kNodeType), 2U);
    EXPECT_TRUE(client.ask(make_smp(Method::kGet, Attribute::kNodeInfo), {.lid = Lid{1}}))
        << "its own";

    // The switch by its LID, then by the route: combined.
    Datagram both = make_directed(Method::kGet, Attribute::kNodeInfo, {2});
    both.set(mad::smp::kDrSlid, 1);
    const auto further = client.ask(both, {.lid = Lid{3}});
    ASSERT_TRUE(further);
    EXPECT_EQ(mad::get(further->smp_data(), mad::node_info::kNodeGuid),
              fabric.network.host(1).guid().value());
}

class Traps : public Agents {
  protected:
    Traps() {
        set_port(kHome, 1, info::kLid, 1);
        change(kSwitch, Attribute::kPortInfo, 0, [](mad::Bytes data) {
            mad::set(data, info::kLid, 3);
            mad::set(data, info::kSmLid, 1);
            mad::set(data, info::kSubnetTimeout, 10);
        });
        change(kSwitch, Attribute::kLinearForwardingTable, 0, [](mad::Bytes data) {
            data[1] = 1;
            data[3] = 0;
        });
        AgentSpec spec{.qp = kSubnetManagementQp, .management_class = 1};
        spec.methods.set(static_cast<std::size_t>(Method::kTrap));
        sm.emplace(fabric, fabric.port(0), spec);
        fabric.managed.send_traps();
    }
    std::optional<RecordingClient> sm;
};

TEST_F(Traps, TellOfALinkUntilTheyAreRepressed) {
    fabric.network.link("h1-s0").set_state(LinkState::kDown);
    while (sm->received.size() < 2) {
        fabric.loop.run_instant();
    }
    Datagram trap;
    std::ranges::copy(sm->received[0].bytes, trap.bytes.begin());
    EXPECT_EQ(mad::get(trap.smp_data(), mad::notice::kTrapNumber), 128U);
    EXPECT_EQ(mad::get(trap.smp_data(), mad::notice::kLinkStateLid), 3U);
    trap.set(mad::header::kMethod, static_cast<std::uint64_t>(Method::kTrapRepress));
    ASSERT_EQ(sm->send(trap, sm->received[0].from, {}), 0);
    fabric.run();
    EXPECT_EQ(sm->received.size(), 2U);
    EXPECT_EQ(mad::get(get(kSwitch, Attribute::kSwitchInfo).smp_data(),
                       mad::switch_info::kPortStateChange),
              1U);
}

TEST_F(Traps, GiveUpWhenNobodyAnswers) {
    fabric.network.link("h1-s0").set_state(LinkState::kDown);
    fabric.run();
    EXPECT_EQ(sm->received.size(), SubnetAgent::kTrapRepeats);
    EXPECT_TRUE(fabric.loop.empty());
}

TEST_F(Traps, TellOfABadKeyAndOfADescription) {
    set_port(kSwitch, 0, info::kMkey, 5);
    client.ask(make_directed(Method::kSet, Attribute::kPortInfo, kSwitch, 0));
    ASSERT_FALSE(sm->received.empty());
    EXPECT_EQ(mad::get(std::span(sm->received[0].bytes).subspan(64), mad::notice::kTrapNumber),
              256U);
    sm->received.clear();
    fabric.managed.find(switch_node().id())->subnet().set_description("renamed");
    fabric.run();
    ASSERT_FALSE(sm->received.empty());
    const auto notice = std::span(sm->received[0].bytes).subspan(64);
    EXPECT_EQ(mad::get(notice, mad::notice::kTrapNumber), 144U);
    EXPECT_EQ(mad::get(notice, mad::notice::kLocalChangeBits), 1U);
}

}  // namespace
}  // namespace fabric
