// The first message of a connection: of another version, with descriptors that nobody asked for,
// and where either side has no descriptor left.
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/server/hostile_client.hpp"
#include "tests/server/served_world.hpp"

namespace server_test {
namespace {

using simverbs::AttachRequest;
using simverbs::kProtocolVersion;
using simverbs::VersionRefusal;

void send_with_descriptors(int socket, std::span<const std::byte> bytes, std::size_t count) {
    const std::vector<int> descriptors(count, STDERR_FILENO);
    std::vector<char> control(CMSG_SPACE(count * sizeof(int)));
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), count * sizeof(int));
    EXPECT_EQ(sendmsg(socket, &message, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

TEST(Greeting, DescriptorsThatComeAlongAreClosed) {
    ServedWorld world("star:2");
    const Holdings before = world.holdings();
    constexpr int kMessages = 250;
    for (int i = 0; i < kMessages; ++i) {
        const int socket = simverbs::connect_to_world(world.socket()).value_or(-1);
        const simverbs::RequestHead head{kProtocolVersion, simverbs::RequestKind::kCommand};
        // One, several, more than there is room for, and with a message of no bytes.
        const std::size_t length = i % 4 == 3 ? 0 : sizeof head;
        send_with_descriptors(socket, std::as_bytes(std::span(&head, 1)).first(length),
                              static_cast<std::size_t>(1 + i % 7));
        char byte = 0;
        EXPECT_EQ(recv(socket, &byte, 1, 0), 0);
        close(socket);
    }
    EXPECT_EQ(world.holdings().descriptors, before.descriptors);
    EXPECT_EQ(HostileClient(world.socket()).attach("h0"), 0);
}

TEST(Greeting, DescriptorsWithCommandsAreClosed) {
    ServedWorld world("star:2");
    HostileClient client(world.socket());
    ASSERT_EQ(client.attach("h0"), 0);
    const Holdings before = world.holdings();
    for (std::size_t i = 1; i < 8; ++i) {
        const simverbs::CommandRequest request;
        send_with_descriptors(client.socket(), std::as_bytes(std::span(&request, 1)), i);
        simverbs::CommandReply reply;
        EXPECT_GE(client.command(request, reply), 0);
    }
    EXPECT_EQ(world.holdings().descriptors, before.descriptors);
}

TEST(Greeting, AServerWithoutDescriptorsSaysSo) {
    ServedWorld world("star:2");
    const Holdings now = world.holdings();
    constexpr rlim_t kRoom = 20;
    const rlimit few{now.descriptors + kRoom, now.descriptors + kRoom};
    ASSERT_EQ(prlimit(world.server().id(), RLIMIT_NOFILE, &few, nullptr), 0);
    std::vector<std::unique_ptr<HostileClient>> clients;
    int error = 0;
    while (error == 0 && clients.size() < kRoom) {
        clients.push_back(std::make_unique<HostileClient>(world.socket()));
        error = clients.back()->attach("h0");
    }
    EXPECT_EQ(error, EMFILE);
    EXPECT_EQ(HostileClient(world.socket()).attach("h1"), EMFILE);
    const Ran ran = run("SIMVERBS_WARN=1 SIMVERBS_SERVER=" + world.socket() +
                        " SIMVERBS_HOST=h0 " SIMVERBS_VERBS_CLIENT " list");
    EXPECT_EQ(ran.text.find("simverbs: devices cannot be listed: "), 0U) << ran.text;
    EXPECT_NE(ran.text.find("none, errno " + std::to_string(EMFILE)), std::string::npos)
        << ran.text;
    clients.clear();
    EXPECT_TRUE(world.is_empty_at_last());
    EXPECT_EQ(HostileClient(world.socket()).attach("h0"), 0);
}

TEST(Greeting, AProgramWithoutDescriptorsIsTold) {
    ServedWorld world("star:2");
    const std::string environment = " SIMVERBS_SERVER=" + world.socket() + " SIMVERBS_HOST=h0 ";
    const Ran silent = run(environment + SIMVERBS_VERBS_CLIENT " list-without-descriptors");
    EXPECT_EQ(silent.text, "none, errno 24\n1 devices\n");
    const Ran warned =
        run("SIMVERBS_WARN=1" + environment + SIMVERBS_VERBS_CLIENT " list-without-descriptors");
    EXPECT_EQ(warned.text.find("simverbs: devices cannot be listed: "), 0U) << warned.text;
    EXPECT_NE(warned.text.find("Too many open files"), std::string::npos) << warned.text;
}

// A program that sets LD_PRELOAD itself loses its host's files in /sys and /dev.
TEST(Greeting, AProgramWithoutThePreloadLibraryIsTold) {
    ServedWorld world("star:2");
    const std::string on = SIMVERBS_COMMAND " on h0 --world " + world.socket() + " -- ";
    EXPECT_EQ(run(on + SIMVERBS_VERBS_CLIENT " list").text, "1 devices\n");
    const Ran lost = run(on + "env LD_PRELOAD= " SIMVERBS_VERBS_CLIENT " list");
    EXPECT_NE(lost.text.find("without libsimverbs-devices.so"), std::string::npos) << lost.text;
    EXPECT_NE(lost.text.find("1 devices\n"), std::string::npos) << lost.text;
}

TEST(Greeting, AClientOfAnotherVersionIsTold) {
    ServedWorld world("star:2");
    for (const std::uint32_t version : {kProtocolVersion - 1, kProtocolVersion + 1, ~0U}) {
        const int socket = simverbs::connect_to_world(world.socket()).value_or(-1);
        AttachRequest request;
        request.head.version = version;
        EXPECT_TRUE(simverbs::send_message(socket, std::as_bytes(std::span(&request, 1)), {}));
        VersionRefusal refusal{.mark = 0, .version = 0};
        EXPECT_EQ(recv(socket, &refusal, sizeof refusal, 0), static_cast<ssize_t>(sizeof refusal));
        EXPECT_EQ(refusal.mark, VersionRefusal::kMark);
        EXPECT_EQ(refusal.version, kProtocolVersion);
        close(socket);
        EXPECT_TRUE(world.complains_at_last(
            "process " + std::to_string(getpid()) + " speaks version " + std::to_string(version) +
            " of the protocol, this world version " + std::to_string(kProtocolVersion)))
            << world.complaints();
    }
}

// A server of a version to come, of which nothing is known but how it refuses.
class NewerServer {
  public:
    NewerServer() {
        EXPECT_NE(mkdtemp(folder_.data()), nullptr);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path().copy(address.sun_path, sizeof address.sun_path - 1);
        listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(listen(listener_, 16), 0);
        thread_ = std::thread([this] {
            int connection = -1;
            while ((connection = accept(listener_, nullptr, nullptr)) >= 0) {
                std::array<char, 4096> request;
                recv(connection, request.data(), request.size(), 0);
                const VersionRefusal refusal{.version = kVersion};
                send(connection, &refusal, sizeof refusal, MSG_NOSIGNAL);
                close(connection);
            }
        });
    }
    ~NewerServer() {
        shutdown(listener_, SHUT_RDWR);
        thread_.join();
        close(listener_);
        std::filesystem::remove_all(folder_);
    }
    NewerServer(const NewerServer&) = delete;
    NewerServer& operator=(const NewerServer&) = delete;

    [[nodiscard]] std::string path() const { return folder_ + "/world.sock"; }
    static constexpr std::uint32_t kVersion = 77;

  private:
    std::string folder_ = std::filesystem::temp_directory_path() / "simverbs-test-XXXXXX";
    int listener_ = -1;
    std::thread thread_;
};

TEST(Greeting, AServerOfAnotherVersionIsNamed) {
    const NewerServer server;
    const std::string told = "simverbs: the world at '" + server.path() +
                             "' speaks version 77 of the protocol, this program version " +
                             std::to_string(kProtocolVersion);
    for (const char* command : {" status", " down", " fabric show", " watch --once"}) {
        const Ran ran = run(std::string(SIMVERBS_COMMAND) + command + " --world " + server.path());
        EXPECT_EQ(ran.text.find(told), 0U) << command << ": " << ran.text;
        EXPECT_EQ(ran.status, 2) << command;
    }
    const Ran verbs = run("SIMVERBS_SERVER=" + server.path() +
                          " SIMVERBS_HOST=h0 " SIMVERBS_VERBS_CLIENT " list");
    EXPECT_EQ(verbs.text.find(told), 0U) << verbs.text;
}

}  // namespace
}  // namespace server_test
