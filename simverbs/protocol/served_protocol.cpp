#include "simverbs/protocol/served_protocol.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/core/shell_word.hpp"

namespace simverbs {
namespace {

constexpr std::size_t kMaxDescriptors = 4;

union ControlBuffer {
    cmsghdr align;
    char bytes[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
};

}  // namespace

bool send_message(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors,
                  bool wait) {
    iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    ControlBuffer control{};
    if (!descriptors.empty()) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
    }
    ssize_t sent = 0;
    do {
        sent = sendmsg(socket, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
    } while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(bytes.size());
}

ssize_t receive_message(int socket, std::span<std::byte> bytes, std::span<int> descriptors,
                        bool wait, bool* lost) {
    std::fill(descriptors.begin(), descriptors.end(), -1);
    iovec data{bytes.data(), bytes.size()};
    ControlBuffer control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    ssize_t got = 0;
    do {
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
    } while (got < 0 && errno == EINTR);
    if (lost != nullptr) {
        *lost = got >= 0 && (message.msg_flags & MSG_CTRUNC) != 0;
    }
    std::size_t taken = 0;
    for (cmsghdr* header = got >= 0 ? CMSG_FIRSTHDR(&message) : nullptr; header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int descriptor = -1;
            std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
            if (taken < descriptors.size()) {
                descriptors[taken++] = descriptor;
            } else {
                close(descriptor);
            }
        }
    }
    return got;
}

bool has_hung_up(int socket) {
    pollfd look{socket, 0, 0};
    return poll(&look, 1, 0) == 1 && (look.revents & POLLHUP) != 0;
}

namespace {

constexpr int kMsPerSecond = 1000;
constexpr int kMostWaits = 12;  // of a command: a minute

pid_t server_of(int socket) {
    ucred peer{};
    return is_trusted_peer(socket, peer) ? peer.pid : -1;
}

// Why there is nothing to read; "" once there is.
std::string await_reply(int socket, const std::string& path, Patience patience) {
    constexpr int kSeconds = kAnswerWithinMs / kMsPerSecond;
    for (int waits = 1;; ++waits) {
        pollfd look{socket, POLLIN, 0};
        int ready = 0;
        do {
            ready = poll(&look, 1, kAnswerWithinMs);
        } while (ready < 0 && errno == EINTR);
        if (ready != 0) {
            return "";
        }
        if (patience == Patience::kProgram) {
            if (waits == 1) {
                fmt::print(stderr, "simverbs: {}; waiting for it\n",
                           describe_silence(socket, path, kSeconds));
            }
        } else if (server_is_stopped(socket) ||
                   (patience == Patience::kCommand && waits == kMostWaits)) {
            return describe_silence(socket, path, waits * kSeconds);
        }
    }
}

}  // namespace

bool server_is_stopped(int socket) {
    return is_stopped(server_of(socket));
}

std::string describe_silence(int socket, const std::string& path, int seconds) {
    const pid_t server = server_of(socket);
    return fmt::format("the world at '{}' does not answer within {} s (process {}{})", path,
                       seconds, server,
                       is_stopped(server) ? fmt::format(", stopped: kill -CONT {}", server) : "");
}

std::string receive_first_reply(int socket, std::span<std::byte> reply, std::span<int> descriptors,
                                const std::string& path, Patience patience) {
    if (std::string silent = await_reply(socket, path, patience); !silent.empty()) {
        return silent;
    }
    VersionRefusal refusal;
    std::vector<std::byte> bytes(std::max(reply.size(), sizeof refusal));
    const ssize_t got = receive_message(socket, bytes, descriptors, true);
    if (got == static_cast<ssize_t>(reply.size())) {
        std::memcpy(reply.data(), bytes.data(), reply.size());
        return "";
    }
    for (int& descriptor : descriptors) {
        if (descriptor >= 0) {
            close(std::exchange(descriptor, -1));
        }
    }
    std::memcpy(&refusal, bytes.data(), sizeof refusal);
    return got == sizeof refusal && refusal.mark == VersionRefusal::kMark
               ? fmt::format(
                     "the world at '{}' speaks version {} of the protocol, this program "
                     "version {}: both must be of one release of simverbs",
                     path, refusal.version, kProtocolVersion)
               : fmt::format("the world at '{}' does not answer", path);
}

namespace {

// Programs that change their user keep the environment: a folder of the former user is no place.
bool is_own_folder(const char* path) {
    struct stat about {};
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid();
}

}  // namespace

std::string socket_path(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        return std::filesystem::absolute(name).string();  // programs may change their folder
    }
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    const std::string folder = runtime != nullptr && *runtime == '/' && is_own_folder(runtime)
                                   ? fmt::format("{}/simverbs", runtime)
                                   : fmt::format("/tmp/simverbs-{}", geteuid());
    return fmt::format("{}/{}.sock", folder, name);
}

std::string world_option(const std::string& path) {
    const std::string name = std::filesystem::path(path).stem().string();
    const bool is_named = path == socket_path(name);
    return is_named && name == kDefaultWorld
               ? ""
               : " --world " + fabric::shell_word(is_named ? name : path);
}

std::string describe(Distrust why, int error, const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "."
                               : slash == 0               ? "/"
                                                          : path.substr(0, slash);
    switch (why) {
        case Distrust::kLink:
            return fmt::format(
                "'{}' is a link or no folder: a world listens in a folder of its "
                "user's own",
                folder);
        case Distrust::kForeignFolder:
            return fmt::format(
                "folder '{}' belongs to another user, who could pose as the world; "
                "name a place of your own by --world or XDG_RUNTIME_DIR",
                folder);
        case Distrust::kOpenFolder:
            return fmt::format(
                "folder '{}' is open to other users; a world listens in a folder of "
                "mode 0700 (chmod 700, or name another place by --world)",
                folder);
        case Distrust::kForeignPeer:
            return fmt::format("the world at '{}' is served by another user", path);
        case Distrust::kNone:
        case Distrust::kSystem:
            break;
    }
    return std::strerror(error);
}

namespace {

// ", but as --world a, b": worlds whose sockets lie in the same folder; "" where there is none.
std::string other_worlds(const std::string& path) {
    std::vector<std::string> names;
    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        if (entry.is_socket(ignored) && entry.path().extension() == ".sock") {
            names.push_back(entry.path().stem().string());
        }
    }
    std::sort(names.begin(), names.end());
    std::string text;
    for (const std::string& name : names) {
        text += text.empty() ? ", but as --world " : ", ";
        text += name;
    }
    return text;
}

}  // namespace

fabric::Outcome<int> connect_to_world(const std::string& path) {
    Distrust why = Distrust::kNone;
    const int connection = connect_to_trusted(path.c_str(), why);
    if (connection >= 0) {
        return connection;
    }
    const int error = errno;
    std::string reason;
    if (why == Distrust::kSystem) {
        reason =
            fmt::format("no world is served at '{}' ({}){}; to serve one: simverbs up TOPOLOGY{}",
                        path, std::strerror(error), other_worlds(path), world_option(path));
    } else if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
        reason = fmt::format("no world is served at '{}', nor could one be: {}", path,
                             describe(why, error, path));
    } else {
        reason = describe(why, error, path);
    }
    errno = error;
    return fabric::Failure(std::move(reason));
}

}  // namespace simverbs
