// Datagrams of rsockets. librdmacm introduces their queue pairs to each other, and carries the
// first messages, by a UDP socket of the machine: 127.77.x.y are addresses of its own.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "rsockets.hpp"

namespace rdmacm_test {
namespace {

using simverbs::host_address;

class SocketDatagrams : public Rsockets {
  protected:
    // librdmacm never destroys the address handles of peers, which keep their device.
    void TearDown() override {
        Rsockets::TearDown();
        simverbs_close_devices();
    }
    static int bind(unsigned host, std::uint16_t port) {
        const int socket = make(SOCK_DGRAM);
        const sockaddr_in at = host_address(host, port);
        EXPECT_EQ(rbind(socket, generic(at), sizeof at), 0) << std::strerror(errno);
        return socket;
    }
    static sockaddr_in name_of(int socket) {
        sockaddr_in name{};
        socklen_t size = sizeof name;
        EXPECT_EQ(rgetsockname(socket, reinterpret_cast<sockaddr*>(&name), &size), 0);
        return name;
    }
    static std::string receive_from(int socket, sockaddr_in& from) {
        std::array<char, 64> bytes{};
        socklen_t size = sizeof from;
        const ssize_t count = rrecvfrom(socket, bytes.data(), bytes.size(), 0,
                                        reinterpret_cast<sockaddr*>(&from), &size);
        EXPECT_GE(count, 0) << std::strerror(errno);
        return {bytes.data(), count < 0 ? 0 : static_cast<std::size_t>(count)};
    }
};

// Datagrams have borders, and a sender.
TEST_P(SocketDatagrams, ArriveWhole) {
    server = bind(0, 0);
    client = bind(1, 0);
    const sockaddr_in to = name_of(server);
    for (const std::string text : {"first", "and second"}) {
        ASSERT_EQ(rsendto(client, text.data(), text.size(), 0, generic(to), sizeof to),
                  static_cast<ssize_t>(text.size()))
            << std::strerror(errno);
        sockaddr_in from{};
        EXPECT_EQ(receive_from(server, from), text);
        const sockaddr_in own = name_of(client);
        EXPECT_EQ(from.sin_port, own.sin_port);
        EXPECT_EQ(from.sin_addr.s_addr, own.sin_addr.s_addr);
    }
}

TEST_P(SocketDatagrams, AreAnswered) {
    server = bind(0, 0);
    client = bind(1, 0);
    const sockaddr_in to = name_of(server);
    ASSERT_EQ(rconnect(client, generic(to), sizeof to), 0) << std::strerror(errno);
    for (int i = 0; i < 20; ++i) {
        ASSERT_NO_FATAL_FAILURE(send(client, "ping"));
        sockaddr_in from{};
        ASSERT_EQ(receive_from(server, from), "ping");
        ASSERT_EQ(rsendto(server, "pong", 4, 0, generic(from), sizeof from), 4);
        std::array<char, 8> bytes{};
        ASSERT_EQ(rrecv(client, bytes.data(), bytes.size(), 0), 4) << std::strerror(errno);
    }
    std::array<char, 8> bytes{};
    EXPECT_EQ(rrecv(client, bytes.data(), bytes.size(), MSG_DONTWAIT), -1);
    EXPECT_EQ(errno, EAGAIN);
}

INSTANTIATE_TEST_SUITE_P(OnInfiniband, SocketDatagrams, testing::Values("star:2"));

// librdmacm addresses its own queue pair by a LID, which no Ethernet port has (ds_add_qp_dest()).
using SocketDatagramsOnEthernet = SocketDatagrams;

TEST_P(SocketDatagramsOnEthernet, AreNotPossible) {
    server = bind(0, 0);
    client = bind(1, 0);
    const sockaddr_in to = name_of(server);
    EXPECT_EQ(rconnect(client, generic(to), sizeof to), -1);
}

INSTANTIATE_TEST_SUITE_P(OnEthernet, SocketDatagramsOnEthernet, testing::Values("eth-star:2"));

}  // namespace
}  // namespace rdmacm_test
