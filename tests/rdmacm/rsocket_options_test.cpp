// The options that rsocket(7) lists, and what librdmacm's rsocket.c makes of them.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <infiniband/sa.h>

#include "rsockets.hpp"

namespace rdmacm_test {
namespace {

using simverbs::host_address;

class SocketOptions : public Rsockets {
  protected:
    void SetUp() override { client = make(); }
    void expect_flag(int level, int name) {
        EXPECT_EQ(option(client, level, name), 0) << name;
        for (const int value : {1, 0}) {
            set_option(client, level, name, value);
            EXPECT_EQ(option(client, level, name), value) << name;
        }
    }
};

TEST_P(SocketOptions, ThatAreFlags) {
    expect_flag(SOL_SOCKET, SO_REUSEADDR);
    expect_flag(SOL_SOCKET, SO_OOBINLINE);
    expect_flag(SOL_SOCKET, SO_KEEPALIVE);
    expect_flag(IPPROTO_TCP, TCP_NODELAY);
    expect_flag(IPPROTO_IPV6, IPV6_V6ONLY);
}

// "Invert value so default so_opt = 0 is on."
TEST_P(SocketOptions, LingeringIsOnAtFirst) {
    linger value{};
    socklen_t size = sizeof value;
    ASSERT_EQ(rgetsockopt(client, SOL_SOCKET, SO_LINGER, &value, &size), 0);
    EXPECT_EQ(value.l_onoff, 1);
    value = {.l_onoff = 0, .l_linger = 0};
    ASSERT_EQ(rsetsockopt(client, SOL_SOCKET, SO_LINGER, &value, sizeof value), 0);
    ASSERT_EQ(rgetsockopt(client, SOL_SOCKET, SO_LINGER, &value, &size), 0);
    EXPECT_EQ(value.l_onoff, 0);
}

// As Linux does, librdmacm doubles what it is asked for.
TEST_P(SocketOptions, BuffersAreTwiceAsLargeAndFixedOnceConnected) {
    set_option(client, SOL_SOCKET, SO_RCVBUF, 16384);
    set_option(client, SOL_SOCKET, SO_SNDBUF, 8192);
    EXPECT_EQ(option(client, SOL_SOCKET, SO_RCVBUF), 32768);
    EXPECT_EQ(option(client, SOL_SOCKET, SO_SNDBUF), 16384);
    ASSERT_NO_FATAL_FAILURE(connect());
    set_option(client, SOL_SOCKET, SO_RCVBUF, 65536);
    set_option(client, SOL_SOCKET, SO_SNDBUF, 65536);
    EXPECT_EQ(option(client, SOL_SOCKET, SO_RCVBUF), 32768);
    EXPECT_EQ(option(client, SOL_SOCKET, SO_SNDBUF), 16384);
    // The peer never sends more than half of what it is offered at once.
    ASSERT_NO_FATAL_FAILURE(set_nonblocking(server));
    const std::string much(1 << 18, 'x');
    EXPECT_EQ(rsend(server, much.data(), much.size(), 0), 16384);
}

TEST_P(SocketOptions, KeepAliveTimes) {
    set_option(client, IPPROTO_TCP, TCP_KEEPIDLE, 90);
    EXPECT_EQ(option(client, IPPROTO_TCP, TCP_KEEPIDLE), 90);
    int value = 0;
    EXPECT_EQ(rsetsockopt(client, IPPROTO_TCP, TCP_KEEPIDLE, &value, sizeof value), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(option(client, IPPROTO_TCP, TCP_KEEPCNT), 1);
}

TEST_P(SocketOptions, TheSegmentSizeIsTheMtuOfThePath) {
    EXPECT_EQ(option(client, IPPROTO_TCP, TCP_MAXSEG), 2048);
    ASSERT_NO_FATAL_FAILURE(connect());
    EXPECT_EQ(option(client, IPPROTO_TCP, TCP_MAXSEG), 4096);
}

TEST_P(SocketOptions, QueueSizesAreForBeforeAConnection) {
    set_option(client, SOL_RDMA, RDMA_SQSIZE, 32);
    set_option(client, SOL_RDMA, RDMA_RQSIZE, 64);
    set_option(client, SOL_RDMA, RDMA_INLINE, 48);
    set_option(client, SOL_RDMA, RDMA_IOMAPSIZE, 8);
    ASSERT_NO_FATAL_FAILURE(connect());
    EXPECT_EQ(option(client, SOL_RDMA, RDMA_SQSIZE), 32);
    EXPECT_EQ(option(client, SOL_RDMA, RDMA_RQSIZE), 64);
    EXPECT_GE(option(client, SOL_RDMA, RDMA_INLINE), 48);
    EXPECT_EQ(option(client, SOL_RDMA, RDMA_IOMAPSIZE), 8);
    int value = 128;
    EXPECT_EQ(rsetsockopt(client, SOL_RDMA, RDMA_SQSIZE, &value, sizeof value), -1);
    EXPECT_EQ(errno, EINVAL);
    ASSERT_NO_FATAL_FAILURE(send(client, "x"));
    EXPECT_EQ(receive(server, 1), "x");
}

// "struct ibv_path_data of path record for connection": that of one connects another.
TEST_P(SocketOptions, TheRouteOfAConnectionServesAnother) {
    ASSERT_NO_FATAL_FAILURE(connect());
    ibv_path_data path{};
    socklen_t size = sizeof path;
    ASSERT_EQ(rgetsockopt(client, SOL_RDMA, RDMA_ROUTE, &path, &size), 0) << std::strerror(errno);
    ASSERT_EQ(size, sizeof path);
    path.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
    const int other = make();
    ASSERT_EQ(rsetsockopt(other, SOL_RDMA, RDMA_ROUTE, &path, size), 0) << std::strerror(errno);
    const sockaddr_in to = host_address(0, kStreamPort);
    ASSERT_EQ(rconnect(other, generic(to), sizeof to), 0) << std::strerror(errno);
    const int accepted = raccept(listener, nullptr, nullptr);
    ASSERT_GE(accepted, 0) << std::strerror(errno);
    ASSERT_NO_FATAL_FAILURE(send(other, "x"));
    EXPECT_EQ(receive(accepted, 1), "x");
    EXPECT_EQ(rclose(other), 0);
    EXPECT_EQ(rclose(accepted), 0);
}

TEST_P(SocketOptions, ThatNobodyKnowsAreNotSupported) {
    int value = 1;
    socklen_t size = sizeof value;
    for (const int level : {int{SOL_SOCKET}, int{IPPROTO_TCP}, int{IPPROTO_IPV6}, SOL_RDMA, 4711}) {
        EXPECT_EQ(rsetsockopt(client, level, 4711, &value, sizeof value), -1);
        EXPECT_EQ(errno, ENOTSUP);
        EXPECT_EQ(rgetsockopt(client, level, 4711, &value, &size), -1);
        EXPECT_EQ(errno, ENOTSUP);
    }
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, SocketOptions, testing::Values("star:2", "eth-star:2"));

}  // namespace
}  // namespace rdmacm_test
