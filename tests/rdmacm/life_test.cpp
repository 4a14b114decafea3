// Ends of the world, of a process and of a thread while channels and ids are open.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <simverbs/rdmacm_gtest.hpp>

namespace rdmacm_test {
namespace {

using simverbs::expect_event;
using simverbs::host_address;

void resolve(rdma_cm_id* id) {
    sockaddr_in to = host_address(0, 7471);
    ASSERT_EQ(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000), 0)
        << std::strerror(errno);
    ASSERT_EQ(expect_event(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED), id);
}

// Resolves an address by a channel of its own; the number of the device that the id is on.
int use_rdma_cm() {
    rdma_event_channel* const channel = rdma_create_event_channel();
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
    resolve(id);
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(id->verbs, 1, &port), 0) << simverbs_last_error();
    const int number = ibv_get_device_index(id->verbs->device);
    EXPECT_EQ(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
    return number;
}

TEST(World, MayEndThoughLibrdmacmKeepsDevicesOpen) {
    int before = -1;
    for (int i = 0; i < 3; ++i) {
        const simverbs::World world({.topology = i == 1 ? "eth-star:3" : "star:2"});
        const int number = use_rdma_cm();
        EXPECT_GT(number, before);
        before = number;
    }
    ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
}

// librdmacm knows devices by their numbers, which go on once it has had some open. One that it has
// only listed does not come back with its old number then.
TEST(World, MayHaveDevicesThatWereOnlyListed) {
    {
        const simverbs::World world({.topology = "eth-star:2"});
        ibv_free_device_list(ibv_get_device_list(nullptr));
    }
    for (const char* topology : {"star:2", "eth-star:2"}) {
        const simverbs::World world({.topology = topology});
        use_rdma_cm();
    }
}

TEST(World, DoesNotEndWhileAnIdHasAQueuePair) {
    const simverbs::World world;
    rdma_event_channel* const channel = rdma_create_event_channel();
    rdma_cm_id* id = nullptr;
    ASSERT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
    resolve(id);
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    ASSERT_EQ(rdma_create_qp(id, nullptr, &init), 0) << std::strerror(errno);
    EXPECT_EQ(simverbs_restart(), EBUSY);
    rdma_destroy_qp(id);
    EXPECT_EQ(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

TEST(World, EndsAfterDevicesWereClosedUnderAnId) {
    {
        const simverbs::World world;
        rdma_event_channel* const channel = rdma_create_event_channel();
        rdma_cm_id* id = nullptr;
        ASSERT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
        resolve(id);
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_RC;
        init.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
        ASSERT_EQ(rdma_create_qp(id, nullptr, &init), 0) << std::strerror(errno);
        EXPECT_EQ(simverbs_close_devices(), 1U);
        ibv_port_attr port{};
        EXPECT_EQ(ibv_query_port(id->verbs, 1, &port), EIO);
        rdma_destroy_event_channel(channel);
    }
    const simverbs::World next;
    use_rdma_cm();
}

TEST(World, EndsOpenChannels) {
    rdma_event_channel* channel = nullptr;
    rdma_cm_id* id = nullptr;
    {
        const simverbs::World world;
        channel = rdma_create_event_channel();
        ASSERT_NE(channel, nullptr);
        ASSERT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
    }
    pollfd look{channel->fd, POLLIN, 0};
    EXPECT_EQ(poll(&look, 1, 0), 1);
    EXPECT_NE(look.revents & POLLHUP, 0);
    rdma_cm_id* other = nullptr;
    EXPECT_EQ(rdma_create_id(channel, &other, nullptr, RDMA_PS_TCP), -1);
    EXPECT_EQ(errno, EIO);
    const simverbs::World next;
    use_rdma_cm();
    EXPECT_EQ(rdma_destroy_id(id), -1);
    std::free(id);  // librdmacm keeps what it could not destroy
    rdma_destroy_event_channel(channel);
}

TEST(World, StaysWhileAThreadWaitsForAnEvent) {
    const simverbs::World world;
    rdma_event_channel* const channel = rdma_create_event_channel();
    rdma_cm_id* id = nullptr;
    ASSERT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
    std::promise<void> begun;
    std::thread waiting([&] {
        begun.set_value();
        expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    });
    begun.get_future().wait();
    simverbs::advance(std::chrono::milliseconds(1));  // the others wait meanwhile
    EXPECT_EQ(simverbs_restart(), EBUSY);
    sockaddr_in to = host_address(0, 7471);
    ASSERT_EQ(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000), 0);
    waiting.join();
    EXPECT_EQ(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

TEST(Fork, AChildLeavesTheChannelOfItsParentAlone) {
    const simverbs::World world;
    rdma_event_channel* const channel = rdma_create_event_channel();
    rdma_cm_id* id = nullptr;
    ASSERT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
    const pid_t child = fork();
    if (child == 0) {
        rdma_cm_id* other = nullptr;
        const bool refused =
            rdma_create_id(channel, &other, nullptr, RDMA_PS_TCP) == -1 && errno == EIO;
        _exit(close(channel->fd) == 0 && refused ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    resolve(id);
    EXPECT_EQ(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

TEST(Signal, EndsAWaitForAnEvent) {
    struct sigaction action {};
    struct sigaction before {};
    action.sa_handler = [](int) {};
    ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
    const simverbs::World world;
    rdma_event_channel* const channel = rdma_create_event_channel();
    ASSERT_NE(channel, nullptr);
    ualarm(20'000, 0);
    rdma_cm_event* event = nullptr;
    EXPECT_EQ(rdma_get_cm_event(channel, &event), -1);
    EXPECT_EQ(errno, EINTR);
    rdma_destroy_event_channel(channel);
    sigaction(SIGALRM, &before, nullptr);
}

}  // namespace
}  // namespace rdmacm_test
