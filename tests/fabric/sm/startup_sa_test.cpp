#include "fabric/sm/startup_sa.hpp"

#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/sm/startup_sm.hpp"

#include "tests/fabric/mad/managed_fabric.hpp"

namespace fabric {
namespace {

using mad::Datagram;
using mad::Method;
using mad::SaAttribute;
using test::ManagedFabric;
using test::RecordingClient;
using testing::ElementsAre;
using testing::IsEmpty;
namespace member = mad::mc_member_record;
namespace path = mad::path_record;

constexpr std::uint64_t kOk = 0;
constexpr std::uint64_t kByGids = 1U << path::kHasDgid | 1U << path::kHasSgid;
constexpr Gid kGroup{{0xFF, 0x12, 0x40, 0x1B, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

// The last host of a fabric asks.
class StartupSaTest : public testing::Test {
  protected:
    void SetUp() override { build("star:4"); }
    void build(std::string_view topology) {
        fabric.emplace(topology);
        sm.emplace(fabric->network);
        sm->bring_up();
        sm->answer_queries(fabric->port(0));
        last = fabric->network.host_count() - 1;
        client.emplace(*fabric, fabric->port(last),
                       AgentSpec{.management_class = 3, .class_version = 2});
    }
    template <class F>
    std::uint64_t ask(Method method, SaAttribute attribute, std::uint64_t mask, F&& edit) {
        Datagram request = test::make_datagram(mad::Class::kSubnAdm, method,
                                               static_cast<std::uint16_t>(attribute));
        request.set(mad::header::kTransactionId, ++asked_);
        request.set(mad::sa::kComponentMask, mask);
        edit(request.from(mad::sa::kDataOffset));
        client->received.clear();
        EXPECT_EQ(client->send(request, {.lid = fabric->port_of(last).attributes().sm_lid,
                                         .qp = kGeneralServicesQp,
                                         .qkey = kWellKnownQkey}),
                  0);
        fabric->run();
        EXPECT_EQ(client->received.size(), 1U);
        return mad::get(client->received.at(0).bytes, mad::header::kStatus);
    }
    std::uint64_t ask_path(const Gid& from, const Gid& to) {
        return ask(Method::kGet, SaAttribute::kPath, kByGids, [&](mad::Bytes record) {
            mad::set_gid(record, path::kSgid, from);
            mad::set_gid(record, path::kDgid, to);
        });
    }
    std::uint64_t ask_group(Method method, std::size_t host, std::uint8_t state,
                            const Gid& group = kGroup) {
        return ask(method, SaAttribute::kMcMember, member::kCreate, [&](mad::Bytes record) {
            mad::set_gid(record, member::kMgid, group);
            mad::set_gid(record, member::kPortGid, gid_of(host));
            mad::set(record, member::kQkey, 0x0B1B);
            mad::set(record, member::kPkey, 0xFFFF);
            mad::set(record, member::kJoinState, state);
        });
    }
    [[nodiscard]] std::uint64_t answered(mad::Field field) const {
        return mad::get(mad::ConstBytes(client->received.at(0).bytes).subspan(mad::sa::kDataOffset),
                        field);
    }
    [[nodiscard]] Gid gid_of(std::size_t host) const {
        return fabric->port_of(host).attributes().gids[0].gid;
    }
    [[nodiscard]] const Switch::MulticastTable& table(std::size_t index = 0) const {
        return fabric->network.switch_at(index).multicast_table();
    }

    std::optional<ManagedFabric> fabric;
    std::optional<StartupSm> sm;
    std::optional<RecordingClient> client;
    std::size_t last = 0;

  private:
    std::uint64_t asked_ = 0;
};

TEST_F(StartupSaTest, NamesThePathBetweenTwoPorts) {
    EXPECT_EQ(ask_path(gid_of(3), gid_of(1)), kOk);
    EXPECT_EQ(answered(path::kDlid), fabric->port_of(1).attributes().lid.value());
    EXPECT_EQ(answered(path::kSlid), fabric->port_of(3).attributes().lid.value());
    EXPECT_EQ(answered(path::kPkey), 0xFFFFU);
    EXPECT_EQ(answered(path::kMtu), static_cast<std::uint64_t>(Mtu::k4096));
    EXPECT_EQ(answered(path::kRate), 16U) << "100 Gb/s";
    EXPECT_EQ(answered(path::kReversible), 1U);
}

TEST_F(StartupSaTest, NamesThePathToThePortThatAsks) {
    EXPECT_EQ(ask_path(gid_of(3), gid_of(3)), kOk);
    EXPECT_EQ(answered(path::kDlid), answered(path::kSlid));
}

TEST_F(StartupSaTest, APathHasTheLeastOfItsLinks) {
    fabric->network.link("h1-s0").set_rate(LinkWidth::k1x, LinkSpeed::kEdr);
    fabric->port_of(1).peer()->mutable_attributes().active_mtu = Mtu::k1024;
    EXPECT_EQ(ask_path(gid_of(3), gid_of(1)), kOk);
    EXPECT_EQ(answered(path::kRate), 15U) << "25 Gb/s";
    EXPECT_EQ(answered(path::kMtu), static_cast<std::uint64_t>(Mtu::k1024));
}

TEST_F(StartupSaTest, KnowsNoPathWhereNothingLeads) {
    EXPECT_EQ(ask_path(gid_of(3), Gid{{0xFE, 0x80, 1}}), 0x0300U);
    fabric->network.link("h1-s0").set_state(LinkState::kDown);
    EXPECT_EQ(ask_path(gid_of(1), gid_of(3)), 0x0300U);
    fabric->port_of(2).mutable_attributes().pkeys = {0x8001};
    EXPECT_EQ(ask_path(gid_of(3), gid_of(2)), 0x0300U) << "no partition in common";
}

TEST_F(StartupSaTest, RefusesOtherQueries) {
    EXPECT_EQ(ask(Method::kGet, SaAttribute::kNode, 0, [](mad::Bytes) {}), 0x000CU);
}

TEST_F(StartupSaTest, TheFirstFullMemberMakesAGroupAndTheLastEndsIt) {
    EXPECT_EQ(ask_group(Method::kSet, 3, 4), 0x0200U) << "no full member, as OpenSM";
    EXPECT_EQ(ask_group(Method::kSet, 3, 1), kOk);
    EXPECT_EQ(answered(member::kMlid), 0xC000U);
    EXPECT_EQ(answered(member::kQkey), 0x0B1BU);
    EXPECT_EQ(ask_group(Method::kSet, 1, 1), kOk);
    EXPECT_THAT(table().at(Lid{0xC000}), ElementsAre(2, 4));
    EXPECT_EQ(ask_group(Method::kDelete, 3, 1), kOk);
    EXPECT_THAT(table().at(Lid{0xC000}), ElementsAre(2));
    EXPECT_EQ(ask_group(Method::kDelete, 3, 1), 0x0200U) << "no member any more";
    EXPECT_EQ(ask_group(Method::kDelete, 1, 1), kOk);
    EXPECT_THAT(table(), IsEmpty());
}

TEST_F(StartupSaTest, FullMembersThatOnlySendMakeAGroupAndGetNothing) {
    EXPECT_EQ(ask_group(Method::kSet, 3, 8), kOk);
    EXPECT_EQ(answered(member::kJoinState), 8U);
    EXPECT_THAT(table(), IsEmpty());
    EXPECT_EQ(ask_group(Method::kSet, 1, 2), kOk);
    EXPECT_THAT(table().at(Lid{0xC000}), ElementsAre(2)) << "who is no member receives";
    EXPECT_EQ(ask_group(Method::kSet, 3, 1), kOk);
    EXPECT_EQ(answered(member::kJoinState), 9U);
    EXPECT_THAT(table().at(Lid{0xC000}), ElementsAre(2, 4));
    EXPECT_EQ(ask_group(Method::kDelete, 3, 1), kOk);
    EXPECT_THAT(table().at(Lid{0xC000}), ElementsAre(2));
    EXPECT_EQ(ask_group(Method::kDelete, 3, 8), kOk);
    EXPECT_THAT(table(), IsEmpty()) << "the group goes with its last full member";
    EXPECT_EQ(ask_group(Method::kDelete, 1, 2), 0x0200U);
}

TEST_F(StartupSaTest, GivesEveryGroupALidAndMakesUpGids) {
    EXPECT_EQ(ask_group(Method::kSet, 3, 1), kOk);
    EXPECT_EQ(ask_group(Method::kSet, 3, 1, Gid{}), kOk);
    EXPECT_EQ(answered(member::kMlid), 0xC001U);
    EXPECT_EQ(answered({0, 8}), 0xFFU);
    EXPECT_EQ(ask_group(Method::kSet, 3, 1, Gid{{0xFE}}), 0x0200U) << "no group";
}

TEST_F(StartupSaTest, WhoJoinsAgreesWithTheGroup) {
    EXPECT_EQ(ask_group(Method::kSet, 3, 1), kOk);
    const auto other_qkey = [&](mad::Bytes record) {
        mad::set_gid(record, member::kMgid, kGroup);
        mad::set_gid(record, member::kPortGid, gid_of(1));
        mad::set(record, member::kQkey, 1);
        mad::set(record, member::kPkey, 0xFFFF);
        mad::set(record, member::kJoinState, 1);
    };
    EXPECT_EQ(ask(Method::kSet, SaAttribute::kMcMember, member::kCreate, other_qkey), 0x0200U);
}

TEST_F(StartupSaTest, ATreeReachesMembersAtOtherSwitches) {
    build("fat-tree:4");
    EXPECT_EQ(ask_group(Method::kSet, last, 1), kOk);
    EXPECT_EQ(ask_group(Method::kSet, 0, 1), kOk);
    std::size_t with_group = 0;
    for (std::size_t i = 0; i < fabric->network.switch_count(); ++i) {
        with_group += table(i).size();
    }
    EXPECT_EQ(with_group, 5U) << "two leaves, two above them, one at the top";
}

}  // namespace
}  // namespace fabric
