// The ends of ids: destroying, closing, migrating, devices that come and go.
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rdma_cm/rdma_net.hpp"

namespace simverbs::rdma_cm::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::pair<int, std::uint32_t> migrate(Program& to, std::uint32_t id, const UcmaInputs& inputs) {
    const UcmaReply reply =
        to.write(RDMA_USER_CM_CMD_MIGRATE_ID, rdma_ucm_migrate_id{0, id, 3}, 4, inputs);
    std::uint32_t reported = 0;
    if (reply.error == 0) {
        std::memcpy(&reported, reply.bytes.data(), sizeof reported);
    }
    return {reply.error, reported};
}
std::pair<int, std::uint32_t> migrate(Program& to, std::uint32_t id, Program& from) {
    return migrate(to, id, {.descriptor_is_open = true, .file = from.file.get()});
}

// Tells the host as many times that a port has lost its GIDs, and gives them back.
void change_address(Host& host, std::size_t times) {
    std::vector<fabric::GidEntry>& gids = host.infos[0].ports[0].gids;
    const std::vector<fabric::GidEntry> before = std::exchange(gids, {});
    for (std::size_t i = 0; i < times; ++i) {
        host.ucma.rdma_cm().address_changed(DeviceIndex(0), fabric::PortNumber(1));
    }
    gids = before;
}

TEST(Life, NumbersAreTheLowestFreeOnesOfTheHost) {
    Pair pair;
    Program other(pair.client_host);
    EXPECT_EQ(pair.client.create(RDMA_PS_TCP), 0U);
    EXPECT_EQ(other.create(RDMA_PS_TCP), 1U);
    EXPECT_EQ(pair.client.create(RDMA_PS_TCP), 2U);
    EXPECT_EQ(other.destroy(1).first, 0);
    EXPECT_EQ(pair.client.destroy(0).first, 0);
    EXPECT_EQ(other.create(RDMA_PS_TCP), 0U);
    EXPECT_EQ(other.create(RDMA_PS_TCP), 1U);
    EXPECT_EQ(other.create(RDMA_PS_TCP), 3U);
    EXPECT_EQ(pair.server.create(RDMA_PS_TCP), 0U) << "another host";
}

TEST(Life, DestroyingForgetsEventsThatNobodyHasRead) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    const std::uint32_t kept = pair.client.create(RDMA_PS_TCP);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, 1)), 0);
    ASSERT_EQ(pair.client.resolve(kept, address_of(1, 1)), 0);
    ASSERT_TRUE(pair.client.event());
    ASSERT_EQ(pair.client.route(id), 0);
    pair.net.run_for(1_ms);
    EXPECT_EQ(pair.client.destroy(id), std::pair(0, 1U)) << "one of two was read";
    const auto event = pair.client.event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->id, kept);
    EXPECT_FALSE(pair.client.event());
}

TEST(Life, AListenerTakesRequestsThatNobodyHasReadWithIt) {
    Pair pair;
    pair.listener = pair.server.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort));
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    ASSERT_EQ(pair.client.connect(id, connection_parameters(1)), 0);
    pair.net.run_for(1_ms);
    EXPECT_EQ(pair.server_host.ucma.size(), 2U);
    EXPECT_EQ(pair.server.destroy(pair.listener), std::pair(0, 0U));
    EXPECT_EQ(pair.server_host.ucma.size(), 0U);
    EXPECT_FALSE(pair.server.event());
    pair.net.run_for(1_ms);
    EXPECT_THAT(pair.client.events(), ElementsAre("REJECTED 28"));
}

TEST(Life, ARequestThatWasReadOutlivesItsListener) {
    Pair pair;
    pair.request();
    EXPECT_EQ(pair.server.destroy(pair.listener), std::pair(0, 1U));
    ASSERT_EQ(pair.server.accept(pair.peer, connection_parameters(2)), 0);
    pair.net.run_for(1_ms);
    EXPECT_THAT(pair.client.events(), ElementsAre("CONNECT_RESPONSE"));
}

// A stage that the client's id is in when its file is closed, and what the server hears.
struct Stage {
    const char* name;
    std::function<void(Pair&)> reach;
    std::vector<std::string> server_hears;
};

class Closing : public testing::TestWithParam<Stage> {};

const std::vector<Stage>& stages() {
    static const std::vector<Stage> kStages = {
        {"Idle", [](Pair& pair) { pair.client.create(RDMA_PS_TCP); }, {}},
        {"AddrBound",
         [](Pair& pair) { pair.client.bind(pair.client.create(RDMA_PS_TCP), address_of(0, 0)); },
         {}},
        {"AddrQuery",
         [](Pair& pair) {
             pair.client.resolve(pair.client.create(RDMA_PS_TCP),
                                 SocketAddress::inet(0x7F4D'0009, 1));
         },
         {}},
        {"AddrResolved",
         [](Pair& pair) { pair.client.resolve(pair.client.create(RDMA_PS_TCP), address_of(1, 1)); },
         {}},
        {"RouteQuery",
         [](Pair& pair) {
             const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
             pair.client.resolve(id, address_of(1, 1));
             pair.client.route(id);
         },
         {}},
        {"RouteResolved",
         [](Pair& pair) { pair.client.resolved(RDMA_PS_TCP, address_of(1, 1)); },
         {}},
        {"Listen",
         [](Pair& pair) { pair.client.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort)); },
         {}},
        {"ConnectAsked", [](Pair& pair) { pair.request(); }, {}},
        {"ConnectAnswered",
         [](Pair& pair) {
             pair.request();
             pair.server.accept(pair.peer, connection_parameters(2));
             pair.net.run_for(1_ms);
         },
         {"REJECTED 28"}},
        {"Established", [](Pair& pair) { pair.establish(); }, {"DISCONNECTED"}},
        {"Disconnecting",
         [](Pair& pair) {
             pair.establish();
             pair.client.disconnect(pair.id);
         },
         {"DISCONNECTED"}},
        {"Disconnected",
         [](Pair& pair) {
             pair.establish();
             pair.server.disconnect(pair.peer);
             pair.net.run_for(1_ms);
         },
         {"DISCONNECTED", "TIMEWAIT_EXIT"}},
    };
    return kStages;
}

INSTANTIATE_TEST_SUITE_P(Stages, Closing, testing::ValuesIn(stages()),
                         [](const auto& stage) { return std::string(stage.param.name); });

TEST_P(Closing, EndsEverythingAndTellsThePeer) {
    Pair pair;
    GetParam().reach(pair);
    pair.server.events();
    pair.client.file.reset();
    EXPECT_EQ(pair.client_host.ucma.size(), 0U);
    EXPECT_EQ(pair.client_host.ucma.rdma_cm().size(), 0U);
    EXPECT_EQ(pair.client_host.infos[0].cm->size(), 0U);
    pair.net.run();
    EXPECT_EQ(pair.server.events(), GetParam().server_hears);
    EXPECT_EQ(pair.client_host.cancelled.size(),
              std::string(GetParam().name) == "RouteQuery" ? 1U : 0U);
}

// An established connection is there as before, and its peer goes on.
TEST_P(Closing, OfTheServerEndsItsConnections) {
    Pair pair;
    GetParam().reach(pair);
    pair.server.file.reset();
    pair.net.run();
    EXPECT_EQ(pair.server_host.infos[0].cm->size(), 0U);
    EXPECT_EQ(pair.server_host.ucma.size(), 0U);
}

TEST(Life, AConnectionThatIsNotAcceptedYetTellsNothing) {
    Pair pair;
    pair.request();
    pair.client.file.reset();  // gives up its REQ
    pair.net.run();
    EXPECT_THAT(pair.server.events(), IsEmpty()) << "it has no uid yet";
    EXPECT_EQ(pair.server.accept(pair.peer, connection_parameters(2)), EINVAL);
}

TEST(Migration, TakesEventsAlong) {
    Pair pair;
    Program other(pair.client_host);
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, 1)), 0);
    ASSERT_TRUE(pair.client.event());
    ASSERT_EQ(pair.client.route(id), 0);
    pair.net.run_for(1_ms);
    EXPECT_EQ(migrate(other, id, pair.client), std::pair(0, 1U));
    EXPECT_EQ(other.wake_ups, 1);
    EXPECT_FALSE(pair.client.file->has_event());
    EXPECT_TRUE(other.file->has_event());
    EXPECT_THAT(other.events(), ElementsAre("ROUTE_RESOLVED"));
    EXPECT_EQ(pair.client.connect(id, connection_parameters(1)), EINVAL) << "of another file";
    EXPECT_EQ(pair.client.destroy(id).first, EINVAL);
    EXPECT_EQ(other.connect(id, connection_parameters(1)), 0);
    pair.client.file.reset();
    EXPECT_EQ(pair.client_host.ucma.size(), 1U) << "it belongs to the other file";
    EXPECT_EQ(other.destroy(id), std::pair(0, 2U));
}

TEST(Migration, PutsEventsBehindThoseOfTheNewFile) {
    Pair pair;
    Program other(pair.client_host);
    const std::uint32_t first = pair.client.create(RDMA_PS_TCP);
    ASSERT_EQ(pair.client.resolve(first, address_of(1, 1)), 0);
    const std::uint32_t second = other.create(RDMA_PS_TCP);
    ASSERT_EQ(other.resolve(second, address_of(1, 1)), 0);
    EXPECT_EQ(migrate(other, first, pair.client).first, 0);
    EXPECT_EQ(other.event()->id, second);
    EXPECT_EQ(other.event()->id, first);
}

TEST(Migration, TakesRequestsThatNobodyHasReadAlong) {
    Pair pair;
    Program other(pair.server_host);
    pair.listener = pair.server.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort));
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    ASSERT_EQ(pair.client.connect(id, connection_parameters(1)), 0);
    pair.net.run_for(1_ms);
    EXPECT_EQ(migrate(other, pair.listener, pair.server).first, 0);
    const auto event = other.event();
    ASSERT_TRUE(event);
    EXPECT_EQ(other.accept(event->id, connection_parameters(2)), 0);
    pair.server.file.reset();
    EXPECT_EQ(pair.server_host.ucma.size(), 2U);
}

TEST(Migration, ToTheSameFileChangesNothing) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, 1)), 0);
    EXPECT_EQ(migrate(pair.client, id, pair.client), std::pair(0, 0U));
    EXPECT_THAT(pair.client.events(), ElementsAre("ADDR_RESOLVED"));
    EXPECT_EQ(pair.client.destroy(id), std::pair(0, 1U));
}

TEST(Migration, ChecksTheDescriptor) {
    Pair pair;
    Program other(pair.client_host);
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    EXPECT_EQ(migrate(other, id, UcmaInputs{}).first, ENOENT) << "not open";
    EXPECT_EQ(migrate(other, id, {.descriptor_is_open = true}).first, EINVAL) << "another device";
    EXPECT_EQ(migrate(other, id, pair.server).first, EINVAL) << "another host";
    EXPECT_EQ(migrate(other, id, other).first, EINVAL) << "the id is not there";
    EXPECT_EQ(migrate(other, 99, pair.client).first, ENOENT);
    EXPECT_EQ(migrate(other, id, pair.client).first, 0);
}

TEST(Devices, ADeviceThatGoesTakesItsIdsAlong) {
    Pair pair;
    pair.establish();
    pair.client_host.ucma.rdma_cm().device_removed(DeviceIndex(0));
    EXPECT_THAT(pair.client.events(), ElementsAre("DEVICE_REMOVAL"));
    EXPECT_EQ(pair.client.disconnect(pair.id), EIO);
    EXPECT_EQ(pair.client.query(pair.client.create(RDMA_PS_TCP), 0).src_size, 0)
        << "new ids are not concerned";
    EXPECT_EQ(migrate(pair.client, pair.id, pair.client).first, EIO);
    EXPECT_EQ(pair.client.destroy(pair.id), std::pair(0, 4U));
    EXPECT_EQ(pair.client.destroy(pair.id).first, ENOENT);
    pair.net.run_for(1_ms);
    EXPECT_THAT(pair.server.events(), ElementsAre("DISCONNECTED"));
}

TEST(Devices, GroupsOfADeviceThatWentCannotBeLeft) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_UDP);
    ASSERT_EQ(pair.client.bind(id, address_of(0, 0)), 0);
    const std::uint32_t group = pair.client.join(id, SocketAddress::inet(0xE000'0001, 0)).second;
    pair.client_host.ucma.rdma_cm().device_removed(DeviceIndex(0));
    EXPECT_EQ(pair.client.leave(group).first, ENXIO);
    EXPECT_EQ(pair.client.destroy(id).first, 0);
    EXPECT_EQ(pair.client.leave(group).first, ENOENT);
}

TEST(Devices, AListenerForAllDevicesFollowsThem) {
    Net net;
    Host client_host(net, 0);
    Host server_host(net, 1, LinkLayer::kInfiniband, 2);
    Program client(client_host);
    Program server(server_host);
    const std::uint32_t listener = server.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort));
    RdmaCm& rdma_cm = server_host.ucma.rdma_cm();
    rdma_cm.device_removed(DeviceIndex(1));
    EXPECT_EQ(server_host.infos[1].cm->size(), 0U);
    EXPECT_THAT(server.events(), IsEmpty());
    rdma_cm.device_added(DeviceIndex(1));
    EXPECT_EQ(server_host.infos[1].cm->size(), 1U);
    const std::uint32_t id = client.resolved(RDMA_PS_TCP, address_of(1, kPort, 1));
    ASSERT_EQ(client.connect(id, connection_parameters(1)), 0);
    net.run_for(1_ms);
    EXPECT_THAT(server.events(), ElementsAre("CONNECT_REQUEST"));
    EXPECT_EQ(server.destroy(listener).first, 0);
    EXPECT_EQ(server_host.infos[0].cm->size(), 0U);
}

TEST(Devices, AChangedAddressIsReported) {
    Pair pair;
    pair.establish();
    pair.client.create(RDMA_PS_TCP);
    RdmaCm& rdma_cm = pair.client_host.ucma.rdma_cm();
    rdma_cm.address_changed(DeviceIndex(0), fabric::PortNumber(1));
    EXPECT_THAT(pair.client.events(), IsEmpty()) << "its own is still there";
    change_address(pair.client_host, 1);
    EXPECT_THAT(pair.client.events(), ElementsAre("ADDR_CHANGE"));
    rdma_cm.address_changed(DeviceIndex(0), fabric::PortNumber(2));
    EXPECT_THAT(pair.client.events(), IsEmpty());
}

TEST(Devices, AnswersThatComeTooLateAreDropped) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_TCP);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, 1)), 0);
    ASSERT_EQ(pair.client.route(id), 0);
    ASSERT_EQ(pair.client.destroy(id).first, 0);
    RdmaCm& rdma_cm = pair.client_host.ucma.rdma_cm();
    rdma_cm.path_found(PathQueryId(1), {});
    rdma_cm.path_failed(PathQueryId(1), EIO);
    rdma_cm.joined(MembershipId(1), {});
    rdma_cm.membership_failed(MembershipId(1), EIO);
    EXPECT_THAT(pair.client.events(), IsEmpty());
}

TEST(Life, WithoutUidNothingIsReported) {
    Pair pair;
    rdma_ucm_create_id command{};
    command.ps = RDMA_PS_TCP;
    ASSERT_EQ(pair.client.write(RDMA_USER_CM_CMD_CREATE_ID, command, 4).error, 0);
    ASSERT_EQ(pair.client.resolve(0, address_of(1, 1)), 0);
    EXPECT_FALSE(pair.client.event());
}

TEST(Life, IdsOfAHostAreBounded) {
    Pair pair;
    rdma_ucm_create_id command{};
    command.ps = RDMA_PS_TCP;
    for (std::size_t i = 0; i < RdmaCm::kMaxIds; ++i) {
        ASSERT_EQ(pair.client.write(RDMA_USER_CM_CMD_CREATE_ID, command, 4).error, 0);
    }
    EXPECT_EQ(pair.client.write(RDMA_USER_CM_CMD_CREATE_ID, command, 4).error, ENOMEM);
    EXPECT_EQ(pair.client.destroy(7).first, 0);
    EXPECT_EQ(pair.client.create(RDMA_PS_TCP), 7U);
}

// The communication managers of a host with two devices; the second one has no room.
TEST(Life, AListenerThatFindsNoRoomListensNowhere) {
    Net net;
    Host host(net, 0, LinkLayer::kInfiniband, 2);
    Program program(host);
    while (host.infos[1].cm->create()) {
    }
    const std::uint32_t id = program.create(RDMA_PS_TCP);
    ASSERT_EQ(program.bind(id, SocketAddress::inet(0, kPort)), 0);
    EXPECT_EQ(program.listen(id), ENOMEM);
    EXPECT_EQ(host.infos[0].cm->size(), 0U);
    host.infos[1].cm->destroy(cm::ConnectionId(5));
    EXPECT_EQ(program.listen(id), 0);
    EXPECT_EQ(host.infos[0].cm->size(), 1U);
}

TEST(Life, AConnectionThatFindsNoRoomIsRefused) {
    Pair pair;
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    while (pair.client_host.infos[0].cm->create()) {
    }
    EXPECT_EQ(pair.client.connect(id, connection_parameters(1)), ENOMEM);
    pair.client_host.infos[0].cm->destroy(cm::ConnectionId(5));
    EXPECT_EQ(pair.client.connect(id, connection_parameters(1)), 0);
}

TEST(Migration, NeedsRoomForTheEvents) {
    Pair pair;
    Program other(pair.client_host);
    const std::uint32_t id = pair.client.create(RDMA_PS_UDP);
    const std::uint32_t full = other.create(RDMA_PS_UDP);
    ASSERT_EQ(other.bind(full, address_of(0, 0)), 0);
    change_address(pair.client_host, UcmaFile::kMaxEvents);
    ASSERT_EQ(pair.client.resolve(id, address_of(1, 1)), 0);
    EXPECT_EQ(migrate(other, id, pair.client).first, ENOMEM);
    EXPECT_EQ(migrate(other, full, other).first, 0);
    ASSERT_TRUE(other.event());
    EXPECT_EQ(migrate(other, id, pair.client).first, 0);
}

TEST(Life, ARequestWithoutRoomForItsEventComesAgain) {
    Pair pair;
    const std::uint32_t full = pair.server.create(RDMA_PS_UDP);
    ASSERT_EQ(pair.server.bind(full, address_of(1, 0)), 0);
    change_address(pair.server_host, UcmaFile::kMaxEvents);
    pair.listener = pair.server.listening(RDMA_PS_TCP, SocketAddress::inet(0, kPort), 1);
    const std::uint32_t id = pair.client.resolved(RDMA_PS_TCP, address_of(1, kPort));
    ASSERT_EQ(pair.client.connect(id, connection_parameters(1)), 0);
    pair.net.run_for(1_ms);
    EXPECT_EQ(pair.server_host.ucma.size(), 2U);
    pair.server.events();
    pair.net.run_for(5_s);
    EXPECT_THAT(pair.server.events(), ElementsAre("CONNECT_REQUEST"));
}

TEST(Life, EventsOfAFileAreBounded) {
    Pair pair;
    const std::uint32_t id = pair.client.create(RDMA_PS_UDP);
    ASSERT_EQ(pair.client.bind(id, address_of(0, 0)), 0);
    change_address(pair.client_host, UcmaFile::kMaxEvents + 5);
    EXPECT_EQ(pair.client.events().size(), UcmaFile::kMaxEvents);
}

}  // namespace
}  // namespace simverbs::rdma_cm::test
