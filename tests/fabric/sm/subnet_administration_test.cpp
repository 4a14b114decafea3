#include "fabric/sm/subnet_administration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fabric/sm/swept_fabric.hpp"

namespace fabric {
namespace {

using mad::Datagram;
using mad::Method;
using mad::SaAttribute;
using test::RecordingClient;
using test::SweptFabric;
namespace member = mad::mc_member_record;
namespace path = mad::path_record;

// A client at the last host of a star of 16.
class Queries : public testing::Test {
  protected:
    struct Reply {
        std::uint64_t status;
        std::vector<std::vector<std::uint8_t>> records;
    };
    // `edit` fills in the record to look for.
    template <class F>
    Reply ask(Method method, SaAttribute attribute, std::uint64_t mask, F&& edit,
              std::uint64_t sm_key = 0) {
        Datagram request = test::make_datagram(mad::Class::kSubnAdm, method,
                                               static_cast<std::uint16_t>(attribute));
        request.set(mad::header::kTransactionId, ++asked_);
        request.set(mad::sa::kComponentMask, mask);
        request.set(mad::sa::kSmKey, sm_key);
        edit(request.from(mad::sa::kDataOffset));
        client.received.clear();
        EXPECT_EQ(client.send(request, {.lid = fabric.port_of(15).attributes().sm_lid,
                                        .qp = kGeneralServicesQp,
                                        .qkey = kWellKnownQkey}),
                  0);
        fabric.run();
        EXPECT_EQ(client.received.size(), 1U);
        return client.received.empty() ? Reply{0xFFFF, {}} : reply_of(client.received[0].bytes);
    }
    Reply ask(Method method, SaAttribute attribute) {
        return ask(method, attribute, 0, [](mad::Bytes) {});
    }
    static Reply reply_of(mad::ConstBytes bytes) {
        Reply reply{mad::get(bytes, mad::header::kStatus), {}};
        const std::size_t stride = 8 * mad::get(bytes, mad::sa::kAttributeOffset);
        const mad::ConstBytes data = bytes.subspan(mad::sa::kDataOffset);
        const auto method = static_cast<Method>(mad::get(bytes, mad::header::kMethod));
        const bool is_table = method == Method::kGetTableResp || method == Method::kGetMultiResp;
        for (std::size_t at = 0; stride != 0 && at + stride <= data.size(); at += stride) {
            const mad::ConstBytes record = data.subspan(at, stride);
            reply.records.emplace_back(record.begin(), record.end());
            if (!is_table) {
                break;
            }
        }
        return reply;
    }
    [[nodiscard]] Gid gid_of(std::size_t host) const {
        return fabric.port_of(host).attributes().gids[0].gid;
    }
    [[nodiscard]] Lid lid_of(std::size_t host) const {
        return fabric.port_of(host).attributes().lid;
    }

    SweptFabric fabric{"star:16"};
    RecordingClient client{
        fabric, fabric.port(15), {.management_class = 3, .class_version = 2, .joins_rmpp = true}};

  private:
    std::uint64_t asked_ = 0;
};

TEST_F(Queries, TablesLongerThanADatagramArrive) {
    const Reply nodes = ask(Method::kGetTable, SaAttribute::kNode);
    EXPECT_EQ(nodes.status, 0U);
    ASSERT_EQ(nodes.records.size(), 17U);
    EXPECT_GT(client.received[0].bytes.size(), 5 * mad::kDatagramBytes);
    EXPECT_STREQ(
        reinterpret_cast<const char*>(nodes.records[3].data() + mad::node_record::kDescription),
        "h3");
    EXPECT_EQ(ask(Method::kGetTable, SaAttribute::kPortInfo).records.size(), 16U + 17U);
    EXPECT_EQ(ask(Method::kGetTable, SaAttribute::kLink).records.size(), 32U);
    EXPECT_EQ(ask(Method::kGetTable, SaAttribute::kSwitchInfo).records.size(), 1U);
    EXPECT_EQ(ask(Method::kGetTable, SaAttribute::kLinearForwardingTable).records.size(), 1U);
    EXPECT_EQ(ask(Method::kGetTable, SaAttribute::kPkeyTable).records.size(), 17U);
    EXPECT_EQ(ask(Method::kGetTable, SaAttribute::kGuidInfo).records.size(), 17U);
    EXPECT_EQ(ask(Method::kGetTable, SaAttribute::kSmInfo).records.size(), 1U);
    EXPECT_TRUE(fabric.loop.empty());
}

TEST_F(Queries, SelectByComponents) {
    const auto by_guid = [this](mad::Bytes record) {
        mad::set(record.subspan(4), mad::node_info::kNodeGuid,
                 fabric.network.host(7).guid().value());
    };
    const Reply one = ask(Method::kGet, SaAttribute::kNode, 1U << 7, by_guid);
    ASSERT_EQ(one.records.size(), 1U);
    EXPECT_EQ(mad::get(one.records[0], {0, 16}), lid_of(7).value());
    const auto by_type = [](mad::Bytes record) {
        mad::set(record.subspan(4), mad::node_info::kNodeType, 2);
    };
    EXPECT_EQ(ask(Method::kGetTable, SaAttribute::kNode, 1U << 4, by_type).records.size(), 1U);
    EXPECT_EQ(ask(Method::kGet, SaAttribute::kNode).status, 0x0400U) << "too many records";
    const auto nobody = [](mad::Bytes record) { mad::set(record, {0, 16}, 999); };
    EXPECT_EQ(ask(Method::kGet, SaAttribute::kNode, 1, nobody).status, 0x0300U);
    const Reply none = ask(Method::kGetTable, SaAttribute::kNode, 1, nobody);
    EXPECT_EQ(none.status, 0U);
    EXPECT_TRUE(none.records.empty());
}

TEST_F(Queries, FindPaths) {
    const auto between = [this](mad::Bytes record) {
        mad::set_gid(record, path::kSgid, gid_of(15));
        mad::set_gid(record, path::kDgid, gid_of(2));
    };
    const Reply one = ask(Method::kGet, SaAttribute::kPath, 0b1100, between);
    ASSERT_EQ(one.records.size(), 1U);
    const auto& record = one.records[0];
    EXPECT_EQ(mad::get(record, path::kSlid), lid_of(15).value());
    EXPECT_EQ(mad::get(record, path::kDlid), lid_of(2).value());
    EXPECT_EQ(mad::get(record, path::kMtu), 5U);
    EXPECT_EQ(mad::get(record, path::kRate), 16U) << "100 Gb/s";
    EXPECT_EQ(mad::get(record, path::kPkey), 0xFFFFU);
    EXPECT_EQ(mad::get(record, path::kReversible), 1U);

    const auto from_here = [this](mad::Bytes query) {
        mad::set(query, path::kSlid, lid_of(15).value());
    };
    EXPECT_EQ(
        ask(Method::kGetTable, SaAttribute::kPath, 1U << path::kHasSlid, from_here).records.size(),
        17U);
    const auto in_partition = [&](mad::Bytes query) {
        between(query);
        mad::set(query, path::kPkey, 0x8055);
    };
    EXPECT_EQ(
        ask(Method::kGet, SaAttribute::kPath, 0b1100 | 1U << path::kHasPkey, in_partition).status,
        0x0300U);
    const auto many = [this](mad::Bytes query) {
        mad::set(query, mad::multi_path_record::kSourceCount, 1);
        mad::set(query, mad::multi_path_record::kDestinationCount, 2);
        mad::set_gid(query, 24, gid_of(15));
        mad::set_gid(query, 40, gid_of(0));
        mad::set_gid(query, 56, gid_of(1));
    };
    EXPECT_EQ(ask(Method::kGetMulti, SaAttribute::kMultiPath, 0, many).records.size(), 2U);
}

TEST_F(Queries, JoinAndLeaveGroups) {
    const Gid mgid{{0xFF, 0x12, 0, 1}};
    const auto group = [&](std::size_t host, std::uint8_t state) {
        return [this, mgid, host, state](mad::Bytes record) {
            mad::set_gid(record, member::kMgid, mgid);
            mad::set_gid(record, member::kPortGid, gid_of(host));
            mad::set(record, member::kQkey, 0x1111);
            mad::set(record, member::kPkey, 0xFFFF);
            mad::set(record, member::kJoinState, state);
        };
    };
    EXPECT_EQ(ask(Method::kSet, SaAttribute::kMcMember, member::kJoin, group(3, 1)).status, 0x0600U)
        << "what does not exist is not joined without saying what it is";
    const Reply made = ask(Method::kSet, SaAttribute::kMcMember, member::kCreate, group(3, 1));
    ASSERT_EQ(made.records.size(), 1U);
    EXPECT_EQ(mad::get(made.records[0], member::kMlid), 0xC000U);
    EXPECT_EQ(mad::get(made.records[0], member::kQkey), 0x1111U);
    const Reply joined = ask(Method::kSet, SaAttribute::kMcMember, member::kJoin, group(5, 1));
    ASSERT_EQ(joined.records.size(), 1U);
    EXPECT_EQ(mad::get(joined.records[0], member::kQkey), 0x1111U) << "as it was made";

    const Reply tables = ask(Method::kGetTable, SaAttribute::kMulticastForwardingTable);
    ASSERT_EQ(tables.records.size(), 1U);
    EXPECT_EQ(mad::get(tables.records[0], {64, 16}), 1U << 4 | 1U << 6) << "ports of h3 and h5";

    fabric.send_to_lid(3, Lid{0xC000}, 99);
    fabric.run();
    ASSERT_EQ(fabric.hosts[5]->arrivals.size(), 1U);
    EXPECT_EQ(fabric.hosts[5]->arrivals[0].number, 99U);
    EXPECT_TRUE(fabric.hosts[4]->arrivals.empty()) << "no member";

    const auto all = [](mad::Bytes) {};
    EXPECT_EQ(ask(Method::kGetTable, SaAttribute::kMcMember, 0, all).records.size(), 1U);
    EXPECT_EQ(ask(Method::kGetTable, SaAttribute::kMcMember, 0, all, 1).records.size(), 2U)
        << "one who is trusted sees members";
    EXPECT_EQ(ask(Method::kDelete, SaAttribute::kMcMember, member::kJoin, group(3, 1)).status, 0U);
    EXPECT_EQ(ask(Method::kDelete, SaAttribute::kMcMember, member::kJoin, group(3, 1)).status,
              0x0200U);
    EXPECT_EQ(ask(Method::kDelete, SaAttribute::kMcMember, member::kJoin, group(5, 1)).status, 0U);
    EXPECT_TRUE(ask(Method::kGetTable, SaAttribute::kMcMember).records.empty());
    EXPECT_TRUE(ask(Method::kGetTable, SaAttribute::kMulticastForwardingTable).records.empty());
}

// IBA 15.2.5.17; OpenSM 3.3.24 osm_multicast.c.
TEST_F(Queries, FullMembersThatOnlySendMakeAGroupAndGetNothing) {
    const Gid mgid{{0xFF, 0x12, 0, 1}};
    const auto ask_group = [&](Method method, std::size_t host, std::uint8_t state) {
        return ask(method, SaAttribute::kMcMember, member::kCreate,
                   [this, mgid, host, state](mad::Bytes record) {
                       mad::set_gid(record, member::kMgid, mgid);
                       mad::set_gid(record, member::kPortGid, gid_of(host));
                       mad::set(record, member::kQkey, 0x1111);
                       mad::set(record, member::kPkey, 0xFFFF);
                       mad::set(record, member::kJoinState, state);
                   });
    };
    const auto ports = [this] {
        const Reply tables = ask(Method::kGetTable, SaAttribute::kMulticastForwardingTable);
        return tables.records.empty() ? 0 : mad::get(tables.records[0], {64, 16});
    };
    EXPECT_EQ(ask_group(Method::kSet, 3, 4).status, 0x0200U) << "no full member";
    const Reply made = ask_group(Method::kSet, 3, 8);
    ASSERT_EQ(made.records.size(), 1U);
    EXPECT_EQ(mad::get(made.records[0], member::kJoinState), 8U);
    EXPECT_EQ(ports(), 0U) << "it only sends";
    EXPECT_EQ(ask_group(Method::kSet, 5, 1).status, 0U);
    EXPECT_EQ(ports(), 1U << 6) << "the port of h5";
    fabric.send_to_lid(3, Lid{0xC000}, 99);
    fabric.send_to_lid(5, Lid{0xC000}, 98);
    fabric.run();
    EXPECT_EQ(fabric.hosts[5]->arrivals.size(), 1U);
    EXPECT_TRUE(fabric.hosts[3]->arrivals.empty());
    EXPECT_EQ(ask_group(Method::kDelete, 5, 1).status, 0U);
    EXPECT_EQ(ask(Method::kGetTable, SaAttribute::kMcMember).records.size(), 1U);
    EXPECT_EQ(ask_group(Method::kSet, 5, 4).status, 0U);
    EXPECT_EQ(ask_group(Method::kDelete, 3, 8).status, 0U);
    EXPECT_TRUE(ask(Method::kGetTable, SaAttribute::kMcMember).records.empty())
        << "the group goes with its last full member";
}

TEST_F(Queries, KeepServicesForTheirLease) {
    const auto service = [this](mad::Bytes record) {
        mad::set(record, mad::service_record::kId, 42);
        mad::set_gid(record, mad::service_record::kGid, gid_of(15));
        mad::set(record, mad::service_record::kLease, 10);
    };
    EXPECT_EQ(ask(Method::kSet, SaAttribute::kService, 0b11, service).records.size(), 1U);
    EXPECT_EQ(ask(Method::kGetTable, SaAttribute::kService, 1, service).records.size(), 1U);
    EXPECT_TRUE(fabric.loop.empty()) << "a lease is no event";
    EXPECT_EQ(ask(Method::kDelete, SaAttribute::kService, 0b11, service).status, 0U);
    EXPECT_EQ(ask(Method::kGetTable, SaAttribute::kService, 1, service).records.size(), 0U);
}

TEST_F(Queries, TellSubscribersWhoCameAndWent) {
    AgentSpec spec{.management_class = 3, .class_version = 2};
    spec.methods.set(static_cast<std::size_t>(Method::kReport));
    RecordingClient reports(fabric, fabric.port(15), spec);
    const auto everything = [](mad::Bytes record) {
        mad::set(record, mad::inform_info::kIsGeneric, 1);
        mad::set(record, mad::inform_info::kSubscribe, 1);
        mad::set(record, mad::inform_info::kType, 0xFFFF);
        mad::set(record, mad::inform_info::kTrapNumber, 65);
        mad::set(record, mad::inform_info::kProducerType, 0xFFFFFF);
    };
    EXPECT_EQ(ask(Method::kSet, SaAttribute::kInformInfo, 0, everything).status, 0U);
    EXPECT_EQ(ask(Method::kGetTable, SaAttribute::kInformInfoRecord).records.size(), 1U);
    fabric.network.link("h4-s0").set_state(LinkState::kDown);
    fabric.run();
    ASSERT_FALSE(reports.received.empty());
    const auto notice = std::span(reports.received[0].bytes).subspan(mad::sa::kDataOffset);
    EXPECT_EQ(mad::get(notice, mad::notice::kTrapNumber), 65U);
    EXPECT_EQ(mad::get_gid(notice, mad::notice::kGidOffset), gid_of(4));
}

TEST_F(Queries, RefuseWhatTheyDoNotHave) {
    EXPECT_EQ(ask(Method::kGet, static_cast<SaAttribute>(0x99)).status, 0x0CU);
    EXPECT_EQ(ask(Method::kSet, SaAttribute::kNode).status, 0x0CU);
    EXPECT_EQ(ask(Method::kGet, SaAttribute::kClassPortInfo).records.size(), 1U);
}

}  // namespace
}  // namespace fabric
