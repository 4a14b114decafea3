// Two connected rsockets, of host 1 and of host 0. librdmacm takes requests and finishes
// connections in threads of its own, so that a test needs none. What rsocket(7) leaves open is in
// librdmacm's rsocket.c.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rsocket.h>

#include <simverbs/rdmacm_gtest.hpp>

namespace rdmacm_test {

inline constexpr std::uint16_t kStreamPort = 7472;

inline const sockaddr* generic(const sockaddr_in& address) {
    return reinterpret_cast<const sockaddr*>(&address);
}

class Rsockets : public testing::TestWithParam<const char*> {
  protected:
    Rsockets() : world({.topology = GetParam()}) {}
    ~Rsockets() override {
        if (simverbs_restart() != 0) {
            ADD_FAILURE() << simverbs_last_error();
            simverbs_close_devices();
        }
    }

    void TearDown() override {
        simverbs_allow_misuse("completions_unread", 1);
        for (int* const socket : {&client, &server, &listener}) {
            close(*socket);
        }
    }

    static int make(int type = SOCK_STREAM) {
        const int socket = rsocket(AF_INET, type, 0);
        EXPECT_GE(socket, 0) << std::strerror(errno);
        return socket;
    }
    static void close(int& socket) {
        EXPECT_EQ(socket < 0 ? 0 : rclose(socket), 0);
        socket = -1;
    }
    // On host 0, at kStreamPort.
    void listen() {
        if (listener < 0) {
            listener = make();
        }
        const sockaddr_in at = simverbs::host_address(0, kStreamPort);
        ASSERT_EQ(rbind(listener, generic(at), sizeof at), 0) << std::strerror(errno);
        ASSERT_EQ(rlisten(listener, 4), 0) << std::strerror(errno);
    }
    void connect() {
        ASSERT_NO_FATAL_FAILURE(listen());
        if (client < 0) {
            client = make();
        }
        const sockaddr_in to = simverbs::host_address(0, kStreamPort);
        ASSERT_EQ(rconnect(client, generic(to), sizeof to), 0) << std::strerror(errno);
        server = raccept(listener, nullptr, nullptr);
        ASSERT_GE(server, 0) << std::strerror(errno);
    }
    static void set_nonblocking(int socket) {
        ASSERT_EQ(rfcntl(socket, F_SETFL, O_NONBLOCK), 0) << std::strerror(errno);
    }
    static void send(int socket, const std::string& text) {
        ASSERT_EQ(rsend(socket, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()))
            << std::strerror(errno);
    }
    // Waits for that many bytes.
    static std::string receive(int socket, std::size_t size) {
        std::string text(size, '\0');
        EXPECT_EQ(rrecv(socket, text.data(), size, MSG_WAITALL), static_cast<ssize_t>(size))
            << std::strerror(errno);
        return text;
    }
    static int option(int socket, int level, int name) {
        int value = -1;
        socklen_t size = sizeof value;
        EXPECT_EQ(rgetsockopt(socket, level, name, &value, &size), 0) << std::strerror(errno);
        EXPECT_EQ(size, sizeof value);
        return value;
    }
    static void set_option(int socket, int level, int name, int value) {
        EXPECT_EQ(rsetsockopt(socket, level, name, &value, sizeof value), 0)
            << std::strerror(errno);
    }

    simverbs::World world;
    int listener = -1;
    int client = -1;
    int server = -1;
};

}  // namespace rdmacm_test
