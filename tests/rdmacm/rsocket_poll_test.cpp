// rpoll and rselect, of rsockets and of ordinary descriptors together, and connections that do not
// block.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/select.h>
#include <unistd.h>

#include "rsockets.hpp"

namespace rdmacm_test {
namespace {

using simverbs::host_address;

constexpr int kLongMs = 60'000;

class Waits : public Rsockets {
  protected:
    static short poll_one(int socket, short events, int timeout_ms) {
        pollfd one{socket, events, 0};
        const int count = rpoll(&one, 1, timeout_ms);
        EXPECT_EQ(count, one.revents == 0 ? 0 : 1) << std::strerror(errno);
        return one.revents;
    }
    // Returns what rselect says of a socket: 1 readable, 2 writable, 4 exceptional.
    static int select_one(int socket, int wanted, timeval timeout) {
        std::array<fd_set, 3> sets{};
        for (int i = 0; i < 3; ++i) {
            FD_ZERO(&sets.at(static_cast<std::size_t>(i)));
            if ((wanted >> i & 1) != 0) {
                FD_SET(socket, &sets.at(static_cast<std::size_t>(i)));
            }
        }
        EXPECT_GE(rselect(socket + 1, &sets[0], &sets[1], &sets[2], &timeout), 0)
            << std::strerror(errno);
        int said = 0;
        for (int i = 0; i < 3; ++i) {
            said |= FD_ISSET(socket, &sets.at(static_cast<std::size_t>(i))) ? 1 << i : 0;
        }
        return said;
    }
    // Begins to connect `client`, which does not block.
    void begin_connection() {
        client = make();
        ASSERT_NO_FATAL_FAILURE(set_nonblocking(client));
        const sockaddr_in to = host_address(0, kStreamPort);
        ASSERT_EQ(rconnect(client, generic(to), sizeof to), -1);
        ASSERT_EQ(errno, EINPROGRESS);
    }
};

TEST_P(Waits, EndWithAMessage) {
    ASSERT_NO_FATAL_FAILURE(connect());
    EXPECT_EQ(poll_one(server, POLLIN, 0), 0);
    EXPECT_EQ(poll_one(server, POLLIN | POLLOUT, 0), POLLOUT);
    ASSERT_NO_FATAL_FAILURE(send(client, "x"));
    EXPECT_EQ(poll_one(server, POLLIN, kLongMs), POLLIN);
    EXPECT_EQ(receive(server, 1), "x");
    EXPECT_EQ(poll_one(server, POLLIN, 0), 0);
}

// In processes of their own: librdmacm before version 63 counts a call whose time is over as one
// that still waits, and a later one may spin for ever ("Fix rpoll in case of timeout").
TEST_P(Waits, EndWithTheirTime) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto wait = [this](bool by_select) {
        connect();
        const int said =
            by_select ? select_one(server, 1, {0, 20'000}) : poll_one(server, POLLIN, 20);
        _exit(said == 0 && !HasFailure() ? 0 : 1);
    };
    EXPECT_EXIT(wait(false), testing::ExitedWithCode(0), "");
    EXPECT_EXIT(wait(true), testing::ExitedWithCode(0), "");
}

TEST_P(Waits, EndWithThePeer) {
    ASSERT_NO_FATAL_FAILURE(connect());
    close(client);
    const short events = poll_one(server, POLLIN | POLLOUT, kLongMs);
    EXPECT_NE(events & POLLIN, 0);  // the end of the stream can be read
    std::array<char, 1> byte{};
    EXPECT_EQ(rrecv(server, byte.data(), 1, 0), 0);
    EXPECT_NE(poll_one(server, POLLIN, kLongMs) & POLLHUP, 0);
}

TEST_P(Waits, AreForOrdinaryDescriptorsToo) {
    ASSERT_NO_FATAL_FAILURE(connect());
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    std::array<pollfd, 2> both{{{ends[0], POLLIN, 0}, {server, POLLIN, 0}}};
    EXPECT_EQ(rpoll(both.data(), 2, 0), 0);
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_EQ(rpoll(both.data(), 2, kLongMs), 1);
    EXPECT_EQ(both[0].revents, POLLIN);
    EXPECT_EQ(both[1].revents, 0);
    ASSERT_NO_FATAL_FAILURE(send(client, "x"));
    EXPECT_EQ(poll_one(server, POLLIN, kLongMs), POLLIN);
    EXPECT_EQ(rpoll(both.data(), 2, kLongMs), 2);
    EXPECT_EQ(select_one(ends[0], 1, {60, 0}), 1);
    EXPECT_EQ(::close(ends[0]), 0);
    EXPECT_EQ(::close(ends[1]), 0);
}

TEST_P(Waits, OfSelectAreThoseOfPoll) {
    ASSERT_NO_FATAL_FAILURE(connect());
    EXPECT_EQ(select_one(server, 1 | 2, {60, 0}), 2);
    ASSERT_NO_FATAL_FAILURE(send(client, "x"));
    EXPECT_EQ(select_one(server, 1, {60, 0}), 1);
    EXPECT_EQ(select_one(server, 1 | 2 | 4, {60, 0}), 1 | 2);
    close(client);
    EXPECT_EQ(receive(server, 1), "x");
    EXPECT_NE(select_one(server, 1, {60, 0}) & 1, 0);
}

TEST_P(Waits, EndWithAConnection) {
    ASSERT_NO_FATAL_FAILURE(listen());
    ASSERT_NO_FATAL_FAILURE(begin_connection());
    EXPECT_EQ(poll_one(client, POLLOUT, kLongMs), POLLOUT);
    EXPECT_EQ(option(client, SOL_SOCKET, SO_ERROR), 0);
    // Not by one long call: a thread of librdmacm takes the request, and may not wake a caller that
    // waits on the listener before 5 s are over.
    while (poll_one(listener, POLLIN, 0) == 0) {
        simverbs::advance(std::chrono::microseconds(1));
    }
    EXPECT_EQ(select_one(listener, 1, {60, 0}), 1);
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    server = raccept(listener, reinterpret_cast<sockaddr*>(&peer), &size);
    ASSERT_GE(server, 0) << std::strerror(errno);
    EXPECT_EQ(peer.sin_addr.s_addr, host_address(1, 0).sin_addr.s_addr);
    ASSERT_NO_FATAL_FAILURE(send(client, "x"));
    EXPECT_EQ(receive(server, 1), "x");
}

TEST_P(Waits, EndWithARefusal) {
    ASSERT_NO_FATAL_FAILURE(begin_connection());
    EXPECT_NE(poll_one(client, POLLOUT, kLongMs) & POLLERR, 0);
    EXPECT_EQ(option(client, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, Waits, testing::Values("star:2", "eth-star:2"));

}  // namespace
}  // namespace rdmacm_test
