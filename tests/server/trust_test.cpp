// Other users of the machine, and what they may prepare: folders, links, sockets and servers that
// a user's programs must not take for a world of their own; and a server that asks for memory that
// it was never lent.
//
// Tests of two users run as root only, as two user ids that have no account.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simverbs/protocol/client_area.hpp"
#include "simverbs/protocol/served_protocol.hpp"

#include "tests/server/served_world.hpp"

namespace server_test {
namespace {

namespace fs = std::filesystem;
using simverbs::AttachReply;
using simverbs::ClientArea;
using simverbs::CopyWord;

constexpr uid_t kVictim = 61001;
constexpr uid_t kAttacker = 61002;

std::string as_user(uid_t user, const std::string& command) {
    const std::string id = std::to_string(user);
    return "setpriv --reuid=" + id + " --regid=" + id + " --clear-groups env -u XDG_RUNTIME_DIR " +
           command;
}

std::string verbs_client(const std::string& socket) {
    return "env SIMVERBS_SERVER=" + socket + " SIMVERBS_HOST=h0 " SIMVERBS_VERBS_CLIENT " list";
}

class Folder {
  public:
    Folder() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string operator/(const std::string& name) const {
        return path_ + "/" + name;
    }

  private:
    std::string path_ = fs::temp_directory_path() / "simverbs-test-XXXXXX";
};

// Speaks as much of the protocol as it takes to be believed, and asks whoever attaches to copy.
class PosingServer {
  public:
    explicit PosingServer(const std::string& path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(listen(listener_, 16), 0);
        const int memory = memfd_create("area", MFD_CLOEXEC);
        EXPECT_EQ(ftruncate(memory, sizeof(ClientArea)), 0);
        area_ = static_cast<ClientArea*>(
            mmap(nullptr, sizeof(ClientArea), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
        thread_ = std::thread([this, memory] { serve(memory); });
    }
    ~PosingServer() {
        shutdown(listener_, SHUT_RDWR);
        thread_.join();
        close(listener_);
        munmap(area_, sizeof(ClientArea));
    }
    PosingServer(const PosingServer&) = delete;
    PosingServer& operator=(const PosingServer&) = delete;

    // Returns the answer of the client's copying thread; kIdle where it does not.
    CopyWord ask(CopyWord what, std::uint64_t address, std::uint32_t length) {
        area_->copy.address = address;
        area_->copy.length = length;
        area_->copy.state = static_cast<std::uint32_t>(what);
        for (int i = 0; i < 2000; ++i) {
            const auto word = static_cast<CopyWord>(area_->copy.state.load());
            if (word == CopyWord::kDone || word == CopyWord::kFault) {
                return word;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return CopyWord::kIdle;
    }
    [[nodiscard]] std::byte* bytes() const { return area_->copied.data(); }
    [[nodiscard]] bool was_attached() const { return attached_; }

  private:
    void serve(int memory) {
        int connection = -1;
        std::uint32_t handles = 0;
        while ((connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0) {
            std::array<std::byte, 4096> request;
            if (recv(connection, request.data(), request.size(), 0) > 0) {
                attached_ = true;
                AttachReply reply;
                reply.copies_by_client = 1;
                reply.device_count = 1;
                std::ranges::copy(std::string_view("simverbs0"), reply.devices[0].name.begin());
                std::ranges::copy(std::string_view("spec"), reply.devices[0].personality.begin());
                answer(connection, reply, {memory, eventfd(0, EFD_CLOEXEC)});
                while (recv(connection, request.data(), request.size(), 0) > 0) {
                    simverbs::CommandReply made;
                    const std::uint32_t handle = ++handles;
                    std::memcpy(made.bytes.data(), &handle, sizeof handle);
                    answer(connection, made, {eventfd(0, EFD_CLOEXEC)});
                }
            }
            close(connection);
        }
    }
    template <class Reply>
    static void answer(int connection, const Reply& reply, const std::vector<int>& descriptors) {
        simverbs::send_message(connection, std::as_bytes(std::span(&reply, 1)), descriptors);
        close(descriptors.back());
    }

    int listener_ = -1;
    ClientArea* area_ = nullptr;
    std::atomic<bool> attached_{false};
    std::thread thread_;
};

// A server of one's own may be wrong, too, or have been taken over: it gets what it was lent.
TEST(LentMemory, IsAllThatIsCopiedForTheServer) {
    const Folder folder;
    PosingServer server(folder / "world.sock");
    Process client({SIMVERBS_VERBS_CLIENT, "lend"},
                   {"SIMVERBS_SERVER=" + (folder / "world.sock"), "SIMVERBS_HOST=h0"});
    std::istringstream words(client.hear());
    std::uint64_t secret = 0;
    std::uint64_t lent = 0;
    std::uint64_t read_only = 0;
    std::uint64_t length = 0;
    words >> secret >> lent >> read_only >> length;
    ASSERT_NE(secret, 0U);
    const auto bytes = static_cast<std::uint32_t>(length);
    EXPECT_EQ(server.ask(CopyWord::kRead, secret, 8), CopyWord::kFault);
    EXPECT_EQ(server.ask(CopyWord::kWrite, secret, 8), CopyWord::kFault);
    EXPECT_EQ(server.ask(CopyWord::kRead, lent, bytes), CopyWord::kDone);
    EXPECT_EQ(server.ask(CopyWord::kRead, read_only, bytes + 1), CopyWord::kFault);
    EXPECT_EQ(server.ask(CopyWord::kRead, lent - 1, 2), CopyWord::kFault);
    EXPECT_EQ(server.ask(CopyWord::kRead, ~0ULL - 3, 8), CopyWord::kFault);
    EXPECT_EQ(server.ask(CopyWord::kRead, read_only, bytes), CopyWord::kDone);
    EXPECT_EQ(server.ask(CopyWord::kWrite, read_only, bytes), CopyWord::kFault);
    server.bytes()[0] = std::byte{42};
    EXPECT_EQ(server.ask(CopyWord::kWrite, lent, 1), CopyWord::kDone);
    EXPECT_EQ(client.ask("deregister"), "deregistered 42");
    EXPECT_EQ(server.ask(CopyWord::kRead, lent, 8), CopyWord::kFault);
    EXPECT_EQ(client.ask("tell"), "secret untouched");
    EXPECT_EQ(client.end(), 0);
}

class Place : public testing::Test {
  protected:
    void refused(const std::string& path, const std::string& words) {
        const Ran up = run(SIMVERBS_COMMAND " up pair --world " + path);
        EXPECT_NE(up.text.find(words), std::string::npos) << up.text;
        EXPECT_EQ(up.status, 2);
        const Ran status = run(SIMVERBS_COMMAND " status --world " + path);
        EXPECT_NE(status.text.find(words), std::string::npos) << status.text;
        EXPECT_EQ(status.status, 2);
        const Ran client = run(verbs_client(path));
        EXPECT_NE(client.text.find(words), std::string::npos) << client.text;
    }
    Folder folder_;
};

TEST_F(Place, ThatIsALinkIsRefused) {
    fs::create_directory(folder_ / "own");
    fs::permissions(folder_ / "own", fs::perms::owner_all);
    fs::create_directory_symlink(folder_ / "own", folder_ / "link");
    refused(folder_ / "link/world.sock", "is a link or no folder");
    refused(folder_ / "link//world.sock", "is a link or no folder");
    EXPECT_TRUE(fs::is_empty(folder_ / "own"));
}

TEST_F(Place, ThatOthersMayEnterIsRefused) {
    for (const mode_t mode : {0755U, 0777U, 0701U, 01777U}) {
        EXPECT_EQ(chmod(folder_.path().c_str(), mode), 0);
        refused(folder_ / "world.sock", "is open to other users");
    }
    EXPECT_NE(run(verbs_client("/nope"))
                  .text.find("no world is served at '/nope', nor could one "
                             "be: folder '/' is "),
              std::string::npos);
    EXPECT_EQ(chmod(folder_.path().c_str(), S_IRWXU), 0);
}

TEST_F(Place, OfAFileIsLeftAlone) {
    std::ofstream(folder_ / "precious") << "mine";
    const Ran up = run(SIMVERBS_COMMAND " up pair --world " + (folder_ / "precious"));
    EXPECT_EQ(up.status, 2);
    EXPECT_NE(up.text.find("no socket"), std::string::npos) << up.text;
    EXPECT_EQ(fs::file_size(folder_ / "precious"), 4U);
}

TEST_F(Place, OfASocketThatIsALinkIsNoWorld) {
    ServedWorld world("pair");
    fs::create_symlink(world.socket(), folder_ / "world.sock");
    EXPECT_EQ(run(SIMVERBS_COMMAND " status --world " + (folder_ / "world.sock")).status, 2);
    EXPECT_EQ(run(SIMVERBS_COMMAND " status --world " + world.socket()).status, 0);
}

// Files of the tree are made where the tree is, whatever lies in its place.
TEST_F(Place, OfTheDeviceTreeFollowsNoLink) {
    const std::string socket = folder_ / "world.sock";
    const std::string other = folder_ / "other";
    fs::create_directory(other);
    std::ofstream(other + "/kept") << "mine";
    fs::create_directory_symlink(other, socket + ".devices");
    ASSERT_EQ(run(SIMVERBS_COMMAND " up pair --world " + socket).status, 0);
    const std::string list =
        SIMVERBS_COMMAND " on h0 --world " + socket + " -- ls /sys/class/infiniband";
    EXPECT_EQ(run(list).text, "simverbs0\n");
    EXPECT_EQ(std::distance(fs::directory_iterator(other), {}), 1);  // kept
    // And a link that comes later, when some of the tree is there.
    fs::rename(socket + ".devices/h0", folder_ / "away");
    fs::create_directory_symlink(other, socket + ".devices/h1");
    run(SIMVERBS_COMMAND " on h1 --world " + socket + " -- ls /sys/class/infiniband");
    EXPECT_EQ(std::distance(fs::directory_iterator(other), {}), 1);
    EXPECT_EQ(run(SIMVERBS_COMMAND " down --world " + socket).status, 0);
    EXPECT_TRUE(fs::exists(other + "/kept"));
    EXPECT_FALSE(fs::exists(fs::symlink_status(socket + ".devices")));
}

class TwoUsers : public testing::Test {
  protected:
    void SetUp() override {
        if (geteuid() != 0) {
            GTEST_SKIP() << "NOT TESTED: two users need root (setpriv to two user ids)";
        }
        chmod(shared_.path().c_str(), S_IRWXU | S_IRWXG | S_IRWXO | S_ISVTX);  // as /tmp
        if (run(as_user(kVictim, SIMVERBS_COMMAND " --version")).status != 0 ||
            run(as_user(kVictim, "test -r " SIMVERBS_VERBS_CLIENT)).status != 0) {
            GTEST_SKIP() << "NOT TESTED: another user cannot run " SIMVERBS_COMMAND;
        }
        make_folder(own_, kVictim);
    }
    static void make_folder(const std::string& path, uid_t owner) {
        fs::create_directory(path);
        EXPECT_EQ(chmod(path.c_str(), S_IRWXU), 0);
        EXPECT_EQ(chown(path.c_str(), owner, owner), 0);
    }
    // A world of the victim, in its own folder.
    void up() {
        const Ran up = run(as_user(kVictim, SIMVERBS_COMMAND " up pair --world " + socket_));
        ASSERT_EQ(up.status, 0) << up.text;
    }
    void down() {
        EXPECT_EQ(run(as_user(kVictim, SIMVERBS_COMMAND " down --world " + socket_)).status, 0);
    }

    Folder shared_;
    std::string own_ = shared_ / "own";
    std::string socket_ = own_ + "/world.sock";
};

TEST_F(TwoUsers, AFolderOfAnotherIsNotTaken) {
    const std::string squatted = shared_ / "squatted";
    make_folder(squatted, kAttacker);
    chmod(squatted.c_str(), S_IRWXU | S_IRWXG | S_IRWXO);
    PosingServer server(squatted + "/world.sock");
    for (const std::string& command :
         {SIMVERBS_COMMAND " up pair --world " + squatted + "/other.sock",
          SIMVERBS_COMMAND " status --world " + squatted + "/world.sock",
          SIMVERBS_COMMAND " on h0 --world " + squatted + "/world.sock -- true",
          verbs_client(squatted + "/world.sock")}) {
        const Ran ran = run(as_user(kVictim, command));
        EXPECT_NE(ran.text.find("belongs to another user"), std::string::npos) << ran.text;
    }
    EXPECT_FALSE(server.was_attached());
    EXPECT_FALSE(fs::exists(squatted + "/other.sock"));
}

// Without XDG_RUNTIME_DIR, or with one of the user before `su`.
TEST_F(TwoUsers, TheUsualFolderIsNotTakenEither) {
    const std::string usual = "/tmp/simverbs-" + std::to_string(kVictim);
    ASSERT_FALSE(fs::exists(usual)) << "left by something else";
    make_folder(usual, kAttacker);
    const Ran up = run(as_user(kVictim, SIMVERBS_COMMAND " up pair"));
    EXPECT_NE(up.text.find("'" + usual + "' belongs to another user"), std::string::npos)
        << up.text;
    fs::remove_all(usual);
    fs::create_directory_symlink(own_, usual);
    EXPECT_NE(run(as_user(kVictim, SIMVERBS_COMMAND " up pair")).text.find("is a link"),
              std::string::npos);
    fs::remove(usual);
    const std::string runtime = shared_ / "runtime";
    make_folder(runtime, kAttacker);
    chmod(runtime.c_str(), S_IRWXU | S_IRWXG | S_IRWXO);
    const std::string with_runtime = "env XDG_RUNTIME_DIR=" + runtime + " " SIMVERBS_COMMAND;
    EXPECT_EQ(run(as_user(kVictim, with_runtime + " up pair")).status, 0);
    EXPECT_TRUE(fs::exists(usual + "/default.sock"));
    EXPECT_TRUE(fs::is_empty(runtime));
    EXPECT_EQ(run(as_user(kVictim, with_runtime + " down")).status, 0);
    fs::remove_all(usual);
}

// However its socket got into one's own folder.
TEST_F(TwoUsers, AServerOfAnotherIsNotSpokenTo) {
    const pid_t attacker = fork();
    if (attacker == 0) {
        EXPECT_EQ(chdir(own_.c_str()), 0);
        EXPECT_EQ(chmod(".", S_IRWXU | S_IRWXG | S_IRWXO), 0);
        if (setresgid(kAttacker, kAttacker, kAttacker) != 0 ||
            setresuid(kAttacker, kAttacker, kAttacker) != 0) {
            _exit(1);
        }
        PosingServer server("world.sock");
        std::this_thread::sleep_for(kPatience);
        _exit(0);
    }
    while (!fs::exists(socket_)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until it listens
    chmod(own_.c_str(), S_IRWXU);
    chown(socket_.c_str(), kVictim, kVictim);
    for (const std::string& command :
         {SIMVERBS_COMMAND " status --world " + socket_,
          SIMVERBS_COMMAND " on h0 --world " + socket_ + " -- true", verbs_client(socket_)}) {
        const Ran ran = run(as_user(kVictim, command));
        EXPECT_NE(ran.text.find("is served by another user"), std::string::npos) << ran.text;
    }
    kill(attacker, SIGKILL);
    waitpid(attacker, nullptr, 0);
}

TEST_F(TwoUsers, AnotherDoesNotGetToTheWorld) {
    up();
    const Ran status = run(as_user(kAttacker, SIMVERBS_COMMAND " status --world " + socket_));
    EXPECT_EQ(status.status, 2) << status.text;
    EXPECT_NE(run(as_user(kAttacker, "ls " + own_)).status, 0);
    down();
}

// Even where the folder is opened later on, or a descriptor of it has got about.
TEST_F(TwoUsers, AnotherWhoGetsToTheSocketIsRefused) {
    up();
    chmod(own_.c_str(), S_IRWXU | S_IRWXG | S_IRWXO);
    chmod(socket_.c_str(), S_IRWXU | S_IRWXG | S_IRWXO);
    const pid_t attacker = fork();
    if (attacker == 0) {
        if (setresgid(kAttacker, kAttacker, kAttacker) != 0 ||
            setresuid(kAttacker, kAttacker, kAttacker) != 0) {
            _exit(1);
        }
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        socket_.copy(address.sun_path, sizeof address.sun_path - 1);
        const int connection = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
            _exit(2);
        }
        const simverbs::RequestHead down{simverbs::kProtocolVersion,
                                         simverbs::RequestKind::kShutdown};
        send(connection, &down, sizeof down, MSG_NOSIGNAL);
        char byte = 0;
        _exit(recv(connection, &byte, 1, 0) > 0 ? 3 : 0);
    }
    int status = -1;
    waitpid(attacker, &status, 0);
    EXPECT_EQ(status, 0);
    chmod(own_.c_str(), S_IRWXU);
    EXPECT_EQ(run(as_user(kVictim, SIMVERBS_COMMAND " status --world " + socket_)).status, 0);
    down();
}

TEST_F(TwoUsers, AFolderThatIsReplacedRedirectsNothing) {
    up();
    fs::rename(own_, shared_ / "moved");
    make_folder(own_, kAttacker);
    std::ofstream(own_ + "/world.sock.devices") << "kept";
    const Ran down =
        run(as_user(kVictim, SIMVERBS_COMMAND " down --world " + (shared_ / "moved/world.sock")));
    EXPECT_EQ(down.status, 0) << down.text;
    EXPECT_TRUE(fs::exists(own_ + "/world.sock.devices"));
    EXPECT_TRUE(fs::is_empty(shared_ / "moved"));
}

}  // namespace
}  // namespace server_test
