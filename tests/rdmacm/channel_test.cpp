// The descriptor of an event channel: what poll(2) and its like say of it, and system calls on it.
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <simverbs/rdmacm_gtest.hpp>

namespace rdmacm_test {
namespace {

using simverbs::expect_event;
using simverbs::host_address;

// CREATE_ID with its header: <rdma/rdma_user_cm.h> and <rdma/rdma_cma.h> exclude each other.
struct CreateId {
    std::uint32_t command = 0;
    std::uint16_t bytes_in;
    std::uint16_t bytes_out;
    std::uint64_t uid = 0;
    std::uint64_t response;
    std::uint16_t port_space;
    std::uint8_t qp_type = 0;
    std::array<std::uint8_t, 5> reserved{};
};

bool is_readable(int descriptor) {
    pollfd look{descriptor, POLLIN, 0};
    return poll(&look, 1, 0) == 1 && (look.revents & POLLIN) != 0;
}

class Channel : public testing::Test {
  protected:
    void SetUp() override {
        channel = rdma_create_event_channel();
        ASSERT_NE(channel, nullptr);
        ASSERT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
    }
    void TearDown() override {
        EXPECT_EQ(rdma_destroy_id(id), 0);
        rdma_destroy_event_channel(channel);
    }
    // Makes an event wait.
    void resolve() {
        sockaddr_in to = host_address(0, 7471);
        ASSERT_EQ(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000), 0);
    }

    simverbs::World world;
    rdma_event_channel* channel = nullptr;
    rdma_cm_id* id = nullptr;
};

TEST_F(Channel, IsReadableWhileAnEventWaits) {
    EXPECT_FALSE(is_readable(channel->fd));
    resolve();
    EXPECT_TRUE(is_readable(channel->fd));
    EXPECT_TRUE(is_readable(channel->fd));
    EXPECT_EQ(expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED), id);
    EXPECT_FALSE(is_readable(channel->fd));
}

TEST_F(Channel, IsNotReadableOnceTheIdOfItsEventHasGone) {
    rdma_cm_id* other = nullptr;
    ASSERT_EQ(rdma_create_id(channel, &other, nullptr, RDMA_PS_TCP), 0);
    std::swap(id, other);
    resolve();
    std::swap(id, other);
    EXPECT_TRUE(is_readable(channel->fd));
    EXPECT_EQ(rdma_destroy_id(other), 0);
    EXPECT_FALSE(is_readable(channel->fd));
}

TEST_F(Channel, EpollSeesAnEvent) {
    const int set = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLIN;
    ASSERT_EQ(epoll_ctl(set, EPOLL_CTL_ADD, channel->fd, &event), 0);
    EXPECT_EQ(epoll_wait(set, &event, 1, 0), 0);
    resolve();
    EXPECT_EQ(epoll_wait(set, &event, 1, -1), 1);
    expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    close(set);
}

TEST_F(Channel, WithoutBlockingAsksAgainAfterAStep) {
    ASSERT_EQ(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
    rdma_cm_event* event = nullptr;
    EXPECT_EQ(rdma_get_cm_event(channel, &event), -1);
    EXPECT_EQ(errno, EAGAIN);
    resolve();
    ASSERT_EQ(rdma_get_cm_event(channel, &event), 0);
    rdma_ack_cm_event(event);
    ASSERT_EQ(rdma_resolve_route(id, 1000), 0);
    int polls = 0;
    while (rdma_get_cm_event(channel, &event) != 0 && errno == EAGAIN && polls < 1000) {
        ++polls;
    }
    ASSERT_LT(polls, 1000);
    EXPECT_EQ(event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
    rdma_ack_cm_event(event);
}

TEST_F(Channel, IsACharacterDeviceToFstat) {
    struct stat about {};
    ASSERT_EQ(fstat(channel->fd, &about), 0);
    EXPECT_TRUE(S_ISCHR(about.st_mode));
    ASSERT_EQ(stat("/dev/infiniband/rdma_cm", &about), 0);
    EXPECT_TRUE(S_ISCHR(about.st_mode));
    EXPECT_EQ(access("/dev/infiniband/rdma_cm", R_OK | W_OK), 0);
}

TEST_F(Channel, LivesUntilItsLastDescriptorIsClosed) {
    const int copy = dup(channel->fd);
    const int other = fcntl(copy, F_DUPFD_CLOEXEC, 100);
    EXPECT_GE(other, 100);
    EXPECT_EQ(close(copy), 0);
    EXPECT_EQ(close(other), 0);
    resolve();
    expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
}

TEST_F(Channel, RefusesWhatTheKernelRefuses) {
    static volatile const std::uint64_t kBadAddress = 8;  // volatile: no compiler complains
    std::array<char, 8> bytes{};
    EXPECT_EQ(write(channel->fd, bytes.data(), 4), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(write(channel->fd, reinterpret_cast<const void*>(kBadAddress), 8), -1);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(read(channel->fd, bytes.data(), bytes.size()), -1);
    EXPECT_EQ(errno, EINVAL);
    const CreateId create{
        .bytes_in = 24, .bytes_out = 4, .response = kBadAddress, .port_space = RDMA_PS_TCP};
    EXPECT_EQ(write(channel->fd, &create, sizeof create), -1);
    EXPECT_EQ(errno, EFAULT);
}

TEST_F(Channel, AnotherFileByItsNumberIsThatFile) {
    rdma_event_channel* const second = rdma_create_event_channel();
    ASSERT_NE(second, nullptr);
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    ASSERT_EQ(dup2(ends[1], second->fd), second->fd);
    EXPECT_EQ(write(second->fd, "x", 1), 1);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
    rdma_destroy_event_channel(second);
    close(ends[0]);
    close(ends[1]);
}

}  // namespace
}  // namespace rdmacm_test
