// Streams of rsockets: connecting, sending and receiving in all ways, ending.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/uio.h>

#include "rsockets.hpp"

namespace rdmacm_test {
namespace {

using simverbs::host_address;
using Streams = Rsockets;

TEST_P(Streams, CarryBytesBothWays) {
    ASSERT_NO_FATAL_FAILURE(connect());
    ASSERT_NO_FATAL_FAILURE(send(client, "ping"));
    EXPECT_EQ(receive(server, 4), "ping");
    ASSERT_EQ(rwrite(server, "pong", 4), 4);
    std::array<char, 4> bytes{};
    ASSERT_EQ(rread(client, bytes.data(), bytes.size()), 4);
    EXPECT_EQ(std::string(bytes.data(), 4), "pong");
}

// A stream has no borders: what was sent in two pieces may be received in one, and the reverse.
TEST_P(Streams, HaveNoBorders) {
    ASSERT_NO_FATAL_FAILURE(connect());
    ASSERT_NO_FATAL_FAILURE(send(client, "one"));
    ASSERT_NO_FATAL_FAILURE(send(client, "two"));
    EXPECT_EQ(receive(server, 4), "onet");
    EXPECT_EQ(receive(server, 2), "wo");
}

// rrecvmsg() and rreadv() fill the first piece only (rrecvv() of rsocket.c).
TEST_P(Streams, GatherPiecesAndFillTheFirst) {
    ASSERT_NO_FATAL_FAILURE(connect());
    std::string first = "gath";
    std::string second = "ered";
    std::array<iovec, 2> pieces{{{first.data(), 4}, {second.data(), 4}}};
    ASSERT_EQ(rwritev(client, pieces.data(), 2), 8) << std::strerror(errno);
    EXPECT_EQ(receive(server, 8), "gathered");
    ASSERT_EQ(rwritev(client, pieces.data(), 2), 8);
    std::string heard = "....";
    std::string rest = "....";
    pieces = {{{heard.data(), 4}, {rest.data(), 4}}};
    ASSERT_EQ(rreadv(server, pieces.data(), 2), 4) << std::strerror(errno);
    EXPECT_EQ(heard, "gath");
    EXPECT_EQ(rest, "....");
}

TEST_P(Streams, TakeMessagesWithoutControlData) {
    ASSERT_NO_FATAL_FAILURE(connect());
    std::string text = "a message";
    iovec piece{text.data(), text.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    ASSERT_EQ(rsendmsg(client, &message, 0), 9) << std::strerror(errno);
    std::string heard(9, '\0');
    piece = {heard.data(), heard.size()};
    ASSERT_EQ(rrecvmsg(server, &message, 0), 9) << std::strerror(errno);
    EXPECT_EQ(heard, text);
    std::array<char, 64> control{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    EXPECT_EQ(rsendmsg(client, &message, 0), -1);
    EXPECT_EQ(errno, ENOTSUP);
    EXPECT_EQ(rrecvmsg(server, &message, 0), -1);
    EXPECT_EQ(errno, ENOTSUP);
}

TEST_P(Streams, NameThePeerOfWhatTheyReceive) {
    ASSERT_NO_FATAL_FAILURE(connect());
    ASSERT_EQ(rsendto(client, "hello", 5, 0, nullptr, 0), 5) << std::strerror(errno);
    std::array<char, 5> bytes{};
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    ASSERT_EQ(rrecvfrom(server, bytes.data(), 5, 0, reinterpret_cast<sockaddr*>(&peer), &size), 5);
    EXPECT_EQ(peer.sin_addr.s_addr, host_address(1, 0).sin_addr.s_addr);
    const sockaddr_in to = host_address(0, kStreamPort);
    EXPECT_EQ(rsendto(client, "hello", 5, 0, generic(to), sizeof to), -1);
    EXPECT_EQ(errno, EISCONN);
}

TEST_P(Streams, KnowBothAddresses) {
    ASSERT_NO_FATAL_FAILURE(connect());
    sockaddr_in own{};
    sockaddr_in peer{};
    socklen_t size = sizeof own;
    ASSERT_EQ(rgetsockname(client, reinterpret_cast<sockaddr*>(&own), &size), 0);
    EXPECT_EQ(size, sizeof own);
    EXPECT_EQ(own.sin_addr.s_addr, host_address(1, 0).sin_addr.s_addr);
    EXPECT_NE(own.sin_port, 0);
    size = sizeof peer;
    ASSERT_EQ(rgetpeername(server, reinterpret_cast<sockaddr*>(&peer), &size), 0);
    EXPECT_EQ(std::memcmp(&peer, &own, sizeof own), 0);
    size = sizeof peer;
    ASSERT_EQ(rgetpeername(client, reinterpret_cast<sockaddr*>(&peer), &size), 0);
    EXPECT_EQ(peer.sin_port, htons(kStreamPort));
    EXPECT_EQ(peer.sin_addr.s_addr, host_address(0, 0).sin_addr.s_addr);
}

TEST_P(Streams, PeekAndDoNotWait) {
    ASSERT_NO_FATAL_FAILURE(connect());
    std::array<char, 8> bytes{};
    EXPECT_EQ(rrecv(server, bytes.data(), 8, MSG_DONTWAIT), -1);
    EXPECT_EQ(errno, EAGAIN);
    ASSERT_NO_FATAL_FAILURE(send(client, "look"));
    ASSERT_EQ(rrecv(server, bytes.data(), 8, MSG_PEEK), 4) << std::strerror(errno);
    EXPECT_EQ(std::string(bytes.data(), 4), "look");
    bytes.fill(0);
    ASSERT_EQ(rrecv(server, bytes.data(), 8, MSG_DONTWAIT), 4) << std::strerror(errno);
    EXPECT_EQ(std::string(bytes.data(), 4), "look");
}

// More than the buffers of both ends, 64 KiB and 128 KiB.
TEST_P(Streams, CarryMoreThanTheirBuffers) {
    ASSERT_NO_FATAL_FAILURE(connect());
    std::string sent(1 << 20, '\0');
    for (std::size_t i = 0; i < sent.size(); ++i) {
        sent[i] = static_cast<char>(i * 7 + i / 251);
    }
    std::thread sender([&] {
        std::size_t done = 0;
        while (done < sent.size()) {
            const ssize_t count = rsend(client, sent.data() + done, sent.size() - done, 0);
            ASSERT_GT(count, 0) << std::strerror(errno);
            done += static_cast<std::size_t>(count);
        }
    });
    const std::string heard = receive(server, sent.size());
    sender.join();
    EXPECT_TRUE(heard == sent);
}

TEST_P(Streams, ThatDoNotBlockSayTheyWould) {
    ASSERT_NO_FATAL_FAILURE(connect());
    EXPECT_EQ(rfcntl(client, F_GETFL), 0);
    ASSERT_NO_FATAL_FAILURE(set_nonblocking(client));
    EXPECT_EQ(rfcntl(client, F_GETFL), O_NONBLOCK);
    std::array<char, 8> bytes{};
    EXPECT_EQ(rrecv(client, bytes.data(), 8, 0), -1);
    EXPECT_EQ(errno, EAGAIN);
    // Nobody receives, so that the buffers of both ends fill.
    const std::string much(1 << 20, 'm');
    const ssize_t count = rsend(client, much.data(), much.size(), 0);
    EXPECT_GT(count, 0);
    EXPECT_LT(count, static_cast<ssize_t>(much.size()));
    EXPECT_EQ(rsend(client, much.data(), much.size(), 0), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(receive(server, static_cast<std::size_t>(count)),
              much.substr(0, static_cast<std::size_t>(count)));
    EXPECT_EQ(rfcntl(client, F_DUPFD, 0), -1);
    EXPECT_EQ(errno, ENOTSUP);
}

TEST_P(Streams, ThatDoNotBlockAcceptNothingAtFirst) {
    ASSERT_NO_FATAL_FAILURE(listen());
    ASSERT_NO_FATAL_FAILURE(set_nonblocking(listener));
    EXPECT_EQ(raccept(listener, nullptr, nullptr), -1);
    EXPECT_EQ(errno, EAGAIN);
}

TEST_P(Streams, EndInOneDirection) {
    ASSERT_NO_FATAL_FAILURE(connect());
    ASSERT_NO_FATAL_FAILURE(send(client, "the end"));
    ASSERT_EQ(rshutdown(client, SHUT_WR), 0) << std::strerror(errno);
    EXPECT_EQ(receive(server, 7), "the end");
    std::array<char, 8> bytes{};
    EXPECT_EQ(rrecv(server, bytes.data(), 8, 0), 0);
    ASSERT_NO_FATAL_FAILURE(send(server, "goodbye"));  // the other direction goes on
    EXPECT_EQ(receive(client, 7), "goodbye");
}

TEST_P(Streams, EndWithTheirPeer) {
    ASSERT_NO_FATAL_FAILURE(connect());
    ASSERT_NO_FATAL_FAILURE(send(client, "last words"));
    close(client);
    EXPECT_EQ(receive(server, 10), "last words");
    std::array<char, 8> bytes{};
    EXPECT_EQ(rrecv(server, bytes.data(), 8, 0), 0);
}

TEST_P(Streams, AreRefusedWhereNobodyListens) {
    client = make();
    const sockaddr_in to = host_address(0, kStreamPort);
    EXPECT_EQ(rconnect(client, generic(to), sizeof to), -1);
    EXPECT_EQ(errno, ECONNREFUSED);
    EXPECT_EQ(option(client, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
    EXPECT_EQ(option(client, SOL_SOCKET, SO_ERROR), 0);
}

TEST_P(Streams, CannotBindWhatIsTakenOrNobodyHas) {
    ASSERT_NO_FATAL_FAILURE(listen());
    client = make();
    sockaddr_in at = host_address(0, kStreamPort);
    EXPECT_EQ(rbind(client, generic(at), sizeof at), -1);
    EXPECT_EQ(errno, EADDRINUSE);
    at = host_address(9, kStreamPort);
    EXPECT_EQ(rbind(client, generic(at), sizeof at), -1);
    EXPECT_EQ(errno, EADDRNOTAVAIL);
}

// rsocket(7): "PF_INET, PF_INET6, SOCK_STREAM, SOCK_DGRAM".
TEST_P(Streams, AreOfFewKinds) {
    for (const auto& [domain, type, protocol] :
         {std::array{AF_UNIX, int{SOCK_STREAM}, 0}, std::array{AF_INET, int{SOCK_RAW}, 0},
          std::array{AF_INET, int{SOCK_STREAM}, int{IPPROTO_UDP}},
          std::array{AF_INET, int{SOCK_DGRAM}, int{IPPROTO_TCP}}}) {
        EXPECT_EQ(rsocket(domain, type, protocol), -1);
        EXPECT_EQ(errno, ENOTSUP);
    }
    client = rsocket(AF_INET6, SOCK_STREAM, IPPROTO_TCP);
    EXPECT_GE(client, 0) << std::strerror(errno);
}

// "Functions take the same parameters as that used for sockets", and fail as those do.
TEST_P(Streams, AreNoOtherDescriptors) {
    const int none = 1000;
    sockaddr_in address = host_address(0, kStreamPort);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    int value = 0;
    socklen_t value_size = sizeof value;
    const auto is_bad = [](ssize_t result) { return result == -1 && errno == EBADF; };
    EXPECT_TRUE(is_bad(rbind(none, any, size)));
    EXPECT_TRUE(is_bad(rlisten(none, 1)));
    EXPECT_TRUE(is_bad(raccept(none, any, &size)));
    EXPECT_TRUE(is_bad(rconnect(none, any, size)));
    EXPECT_TRUE(is_bad(rshutdown(none, SHUT_RDWR)));
    EXPECT_EQ(rclose(none), EBADF);  // librdmacm's own
    EXPECT_TRUE(is_bad(rgetpeername(none, any, &size)));
    EXPECT_TRUE(is_bad(rgetsockname(none, any, &size)));
    EXPECT_TRUE(is_bad(rsetsockopt(none, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value)));
    EXPECT_TRUE(is_bad(rgetsockopt(none, SOL_SOCKET, SO_KEEPALIVE, &value, &value_size)));
    EXPECT_TRUE(is_bad(rfcntl(none, F_GETFL)));
    // A socket that does not listen accepts nothing.
    client = make();
    EXPECT_TRUE(is_bad(raccept(client, any, &size)));
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, Streams, testing::Values("star:2", "eth-star:2"));

}  // namespace
}  // namespace rdmacm_test
