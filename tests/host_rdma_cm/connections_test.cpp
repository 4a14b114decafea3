#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simverbs/host_rdma_cm/host_rdma_cm.hpp"
#include "simverbs/rdma_cm/socket_address.hpp"
#include "simverbs/rdma_cm/ucma_abi.hpp"
#include "simverbs/rdma_cm/ucma_file.hpp"

namespace simverbs::rdma_cm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr std::uint32_t kHost0 = 0x7F4D'0000;  // 127.77.0.0
constexpr std::uint16_t kPort = 7471;
constexpr std::uint16_t kInetBytes = 16;  // of a sockaddr_in
constexpr std::uint32_t kTimeoutMs = 2000;

// A program of a host.
class Program final : private UcmaObserver {
  public:
    explicit Program(HostRdmaCm& host) : file_(host.ucma(), *this) {}

    template <class T>
    UcmaReply write(std::uint32_t command, const T& payload, std::uint16_t out = 0) {
        std::vector<std::uint8_t> bytes;
        const rdma_ucm_cmd_hdr header{command, sizeof payload, out};
        for (const auto& part : {bytes_of(header), bytes_of(payload)}) {
            bytes.insert(bytes.end(), part.begin(), part.end());
        }
        return file_.write(bytes);
    }
    std::uint32_t create(std::uint16_t space = RDMA_PS_TCP) {
        const UcmaReply reply =
            write(RDMA_USER_CM_CMD_CREATE_ID, rdma_ucm_create_id{.uid = 1, .ps = space},
                  sizeof(rdma_ucm_create_id_resp));
        return read_command<rdma_ucm_create_id_resp>(reply.bytes)->id;
    }
    int bind(std::uint32_t id, std::uint32_t ip) {
        rdma_ucm_bind command{.id = id, .addr_size = kInetBytes};
        put(SocketAddress::inet(ip, kPort), command.addr);
        return write(RDMA_USER_CM_CMD_BIND, command).error;
    }
    int listen(std::uint32_t id) {
        return write(RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{.id = id}).error;
    }
    int resolve(std::uint32_t id, std::uint32_t ip) {
        rdma_ucm_resolve_addr command{.id = id, .timeout_ms = kTimeoutMs, .dst_size = kInetBytes};
        put(SocketAddress::inet(ip, kPort), command.dst_addr);
        return write(RDMA_USER_CM_CMD_RESOLVE_ADDR, command).error;
    }
    int route(std::uint32_t id) {
        return write(RDMA_USER_CM_CMD_RESOLVE_ROUTE, rdma_ucm_resolve_route{id, kTimeoutMs}).error;
    }
    int connect(std::uint32_t id) {
        rdma_ucm_connect command{.id = id};
        command.conn_param = {.qp_num = 7, .retry_count = 7, .valid = 1};
        return write(RDMA_USER_CM_CMD_CONNECT, command).error;
    }
    int join(std::uint32_t id, std::uint32_t group) {
        rdma_ucm_join_mcast command{.uid = 2,
                                    .id = id,
                                    .addr_size = kInetBytes,
                                    .join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER};
        put(SocketAddress::inet(group, 0), command.addr);
        return write(RDMA_USER_CM_CMD_JOIN_MCAST, command, sizeof(rdma_ucm_create_id_resp)).error;
    }
    void destroy(std::uint32_t id) {
        write(RDMA_USER_CM_CMD_DESTROY_ID, rdma_ucm_destroy_id{.id = id},
              sizeof(rdma_ucm_destroy_id_resp));
    }
    // The kinds of all events that wait, and their statuses.
    std::vector<std::pair<std::uint32_t, std::int32_t>> events() {
        std::vector<std::pair<std::uint32_t, std::int32_t>> found;
        while (file_.has_event()) {
            const UcmaReply reply = write(RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{},
                                          sizeof(rdma_ucm_event_resp));
            const auto event = read_command<rdma_ucm_event_resp>(reply.bytes).value();
            found.emplace_back(event.event, static_cast<std::int32_t>(event.status));
        }
        return found;
    }

  private:
    void event_available(UcmaFile& /*file*/) override {}
    static void put(const SocketAddress& address, __kernel_sockaddr_storage& to) {
        static_assert(sizeof to == SocketAddress::kStorageBytes);
        std::memcpy(&to, address.bytes().data(), sizeof to);
    }

    UcmaFile file_;
};

// The values of enum rdma_cm_event_type.
constexpr std::uint32_t kAddrResolved = 0;
constexpr std::uint32_t kAddrError = 1;
constexpr std::uint32_t kRouteResolved = 2;
constexpr std::uint32_t kRouteError = 3;
constexpr std::uint32_t kConnectRequest = 4;
constexpr std::uint32_t kRejected = 8;
constexpr std::uint32_t kMulticastJoin = 12;
constexpr std::uint32_t kMulticastError = 13;

struct Fabric {
    std::string topology;
    SubnetManagement management;
};

class World {
  public:
    explicit World(const Fabric& fabric)
        : simulation(std::move(*Simulation::make(
              {.topology = fabric.topology, .subnet_management = fabric.management}))),
          hosts(*simulation),
          server(hosts.host("h0")),
          client(hosts.host("h1")) {}

    // Until nothing happens any more.
    void run() {
        while (simulation->step() != 0) {
        }
    }
    void run_for(std::int64_t milliseconds) {
        simulation->run_for(std::chrono::milliseconds(milliseconds));
    }
    // An id of the client with address and route.
    std::uint32_t routed() {
        const std::uint32_t id = client.create();
        EXPECT_EQ(client.resolve(id, kHost0), 0);
        EXPECT_THAT(client.events(), ElementsAre(Pair(kAddrResolved, 0)));
        EXPECT_EQ(client.route(id), 0);
        run_for(10);
        EXPECT_THAT(client.events(), ElementsAre(Pair(kRouteResolved, 0)));
        return id;
    }

    std::unique_ptr<Simulation> simulation;
    RdmaCmHosts hosts;
    Program server;
    Program client;
};

class OnEveryFabric : public testing::TestWithParam<Fabric> {
  protected:
    World world{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Fabrics, OnEveryFabric,
                         testing::Values(Fabric{"pair", SubnetManagement::kStartup},
                                         Fabric{"star:2", SubnetManagement::kSweep},
                                         Fabric{"eth-star:2", SubnetManagement::kStartup}));

TEST_P(OnEveryFabric, ARequestReachesItsListener) {
    const std::uint32_t listener = world.server.create();
    EXPECT_EQ(world.server.bind(listener, 0), 0);
    EXPECT_EQ(world.server.listen(listener), 0);
    EXPECT_EQ(world.client.connect(world.routed()), 0);
    world.run_for(1);
    EXPECT_THAT(world.server.events(), ElementsAre(Pair(kConnectRequest, 0)));
}

TEST_P(OnEveryFabric, AHostWithoutListenersRejects) {
    EXPECT_EQ(world.client.connect(world.routed()), 0);
    world.run_for(1);
    constexpr std::int32_t kInvalidServiceId = 8;
    EXPECT_THAT(world.client.events(), ElementsAre(Pair(kRejected, kInvalidServiceId)));
}

TEST_P(OnEveryFabric, ANeighbourThatIsDownIsAnErrorWhenTheTimeIsOver) {
    world.simulation->network().link(0).set_state(fabric::LinkState::kDown);
    EXPECT_EQ(world.client.resolve(world.client.create(), kHost0), 0);
    EXPECT_THAT(world.client.events(), IsEmpty());
    world.run_for(kTimeoutMs + 1);
    EXPECT_THAT(world.client.events(), ElementsAre(Pair(kAddrError, -ETIMEDOUT)));
}

TEST(Routes, SilenceIsAnErrorWhenTheTimeIsOver) {
    World world({"star:3", SubnetManagement::kStartup});
    const std::uint32_t id = world.client.create();
    EXPECT_EQ(world.client.resolve(id, kHost0 + 2), 0);
    world.client.events();
    world.simulation->network().link("h0-s0").set_state(fabric::LinkState::kDown);
    EXPECT_EQ(world.client.route(id), 0);
    world.run_for(kTimeoutMs * 9 / 10);
    EXPECT_THAT(world.client.events(), IsEmpty());
    world.run_for(kTimeoutMs);
    EXPECT_THAT(world.client.events(), ElementsAre(Pair(kRouteError, -ETIMEDOUT)));
}

// The port of a subnet manager that has ended answers that it knows no such class, as Linux does.
TEST(Routes, ARefusalIsAnErrorAtOnce) {
    World world({"star:2", SubnetManagement::kStartup});
    const std::uint32_t id = world.client.create();
    EXPECT_EQ(world.client.resolve(id, kHost0), 0);
    world.client.events();
    world.simulation->stop_subnet_manager();
    EXPECT_EQ(world.client.route(id), 0);
    world.run_for(1);
    EXPECT_THAT(world.client.events(), ElementsAre(Pair(kRouteError, -EINVAL)));
}

TEST(Routes, AnIdThatIsGoneHearsNothing) {
    World world({"star:2", SubnetManagement::kStartup});
    const std::uint32_t id = world.client.create();
    EXPECT_EQ(world.client.resolve(id, kHost0), 0);
    EXPECT_EQ(world.client.route(id), 0);
    world.client.destroy(id);
    world.run();
    EXPECT_THAT(world.client.events(), IsEmpty());
}

class Groups : public testing::TestWithParam<SubnetManagement> {
  protected:
    static constexpr std::uint32_t kGroup = 0xE001'0203;  // 224.1.2.3

    std::uint32_t joined(Program& program, std::uint32_t ip) {
        const std::uint32_t id = program.create(RDMA_PS_UDP);
        EXPECT_EQ(program.bind(id, ip), 0);
        EXPECT_EQ(program.join(id, kGroup), 0);
        world.run();
        EXPECT_THAT(program.events(), ElementsAre(Pair(kMulticastJoin, 0)));
        return id;
    }
    [[nodiscard]] std::size_t members() {
        const auto& table = world.simulation->network().switch_at(0).multicast_table();
        return table.empty() ? 0 : table.begin()->second.size();
    }

    World world{{"star:2", GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Managers, Groups,
                         testing::Values(SubnetManagement::kStartup, SubnetManagement::kSweep));

TEST_P(Groups, APortLeavesWithItsLastId) {
    joined(world.server, kHost0);
    const std::uint32_t first = joined(world.client, kHost0 + 1);
    Program another(world.hosts.host("h1"));
    const std::uint32_t second = another.create(RDMA_PS_UDP);
    EXPECT_EQ(another.resolve(second, kHost0), 0);
    another.events();
    EXPECT_EQ(another.join(second, kGroup), 0);
    world.run();
    EXPECT_THAT(another.events(), ElementsAre(Pair(kMulticastJoin, 0)));
    EXPECT_EQ(members(), 2U);
    world.client.destroy(first);
    world.run();
    EXPECT_EQ(members(), 2U);
    another.destroy(second);
    world.run();
    EXPECT_EQ(members(), 1U);
}

TEST_P(Groups, AnIdThatIsGoneBeforeTheAnswerIsNoMember) {
    const std::uint32_t id = world.client.create(RDMA_PS_UDP);
    EXPECT_EQ(world.client.bind(id, kHost0 + 1), 0);
    EXPECT_EQ(world.client.join(id, kGroup), 0);
    world.client.destroy(id);
    world.run();
    EXPECT_EQ(members(), 0U);
}

TEST(GroupsWithoutManager, AreAnErrorWhenTheTimeIsOver) {
    World world({"star:3", SubnetManagement::kStartup});
    world.simulation->network().link("h0-s0").set_state(fabric::LinkState::kDown);
    const std::uint32_t id = world.client.create(RDMA_PS_UDP);
    EXPECT_EQ(world.client.bind(id, kHost0 + 1), 0);
    EXPECT_EQ(world.client.join(id, 0xE001'0203), 0);
    world.run();
    EXPECT_THAT(world.client.events(), ElementsAre(Pair(kMulticastError, -ETIMEDOUT)));
}

}  // namespace
}  // namespace simverbs::rdma_cm
