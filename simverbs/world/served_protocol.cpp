#include "simverbs/world/served_protocol.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

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
                        bool wait) {
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
    std::size_t taken = 0;
    for (cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr; header != nullptr;
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

std::string socket_path(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        return name;
    }
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    const std::string folder = runtime != nullptr && *runtime != '\0'
                                   ? fmt::format("{}/simverbs", runtime)
                                   : fmt::format("/tmp/simverbs-{}", getuid());
    mkdir(folder.c_str(), S_IRWXU);
    return fmt::format("{}/{}.sock", folder, name);
}

int connect_to_world(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (socket < 0) {
        return -1;
    }
    if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        const int error = errno;
        close(socket);
        errno = error;
        return -1;
    }
    return socket;
}

}  // namespace simverbs
