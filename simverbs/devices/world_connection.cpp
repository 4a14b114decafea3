#include "simverbs/devices/world_connection.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "simverbs/devices/tree_path.hpp"
#include "simverbs/protocol/trusted_socket.hpp"

namespace simverbs::devices {

int fail(int error) {
    errno = error;
    return -1;
}

ssize_t receive(int socket, void* bytes, std::size_t count, int flags, int* descriptor) {
    iovec part{bytes, count};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    const cmsghdr* extra = got >= 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (extra != nullptr && extra->cmsg_type == SCM_RIGHTS) {
        const std::size_t came = (extra->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < came; ++i) {  // the padding has room for a second one
            int found = -1;
            std::memcpy(&found, CMSG_DATA(extra) + i * sizeof found, sizeof found);
            if (descriptor != nullptr && i == 0) {
                *descriptor = found;
            } else {
                close(found);
            }
        }
    }
    return got;
}

int connect_to_world() {
    Distrust why = Distrust::kNone;
    const int connection = connect_to_trusted(placement().socket, why);
    const bool has_ended =
        why == Distrust::kSystem && (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR);
    return has_ended ? fail(ENXIO) : connection;  // the world has ended, and its devices with it
}

void await_reply(int connection) {
    static std::atomic<bool> said{false};
    pollfd look{connection, POLLIN, 0};
    int ready = 0;
    do {
        ready = poll(&look, 1, said.load(std::memory_order_relaxed) ? -1 : kAnswerWithinMs);
        if (ready == 0 && !said.exchange(true)) {
            ucred peer{};
            const bool is_known = is_trusted_peer(connection, peer);
            dprintf(STDERR_FILENO,
                    "simverbs: the world at '%s' does not answer within %d s (process %d%s); "
                    "waiting for it\n",
                    placement().socket, kAnswerWithinMs / 1000, is_known ? peer.pid : -1,
                    is_known && is_stopped(peer.pid) ? ", stopped" : "");
        }
    } while (ready == 0 || (ready < 0 && errno == EINTR));
}

int ask_for(int connection, const Question& question, void* reply, std::size_t size,
            int* descriptor) {
    DeviceRequest request;
    request.head.kind = question.kind;
    request.flags = question.flags;
    request.file = question.file;
    request.address = question.address;
    const std::size_t name_length = std::strlen(question.name);
    const std::size_t host_length = std::strlen(placement().host);
    if (name_length >= sizeof request.path || host_length >= sizeof request.host) {
        return fail(ENAMETOOLONG);
    }
    std::memcpy(request.host, placement().host, host_length + 1);
    std::memcpy(request.path, question.name, name_length + 1);
    union {
        unsigned char expected[sizeof(AttributeReply)];  // the longest
        VersionRefusal refusal;
    } answer{};
    ssize_t got = send(connection, &request, sizeof request, MSG_NOSIGNAL);
    if (got == sizeof request) {
        await_reply(connection);
        do {
            got = receive(connection, &answer, sizeof answer, 0, descriptor);
        } while (got < 0 && errno == EINTR);
    }
    if (got != static_cast<ssize_t>(size)) {
        const bool is_other_version =
            got == sizeof answer.refusal && answer.refusal.mark == VersionRefusal::kMark;
        return fail(is_other_version ? EPROTONOSUPPORT : EIO);
    }
    std::memcpy(reply, answer.expected, size);
    return 0;
}

}  // namespace simverbs::devices
