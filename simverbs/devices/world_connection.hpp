// How the preloaded library asks the server of its world: a connection, a request, its reply.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/types.h>

#include "simverbs/protocol/device_protocol.hpp"

namespace simverbs::devices {

// Sets errno; -1.
int fail(int error);

// As recvmsg(2), with at most one descriptor beside the message; others are closed.
ssize_t receive(int socket, void* bytes, std::size_t count, int flags, int* descriptor = nullptr);

// -1 with errno: ENXIO where the world has ended.
int connect_to_world();

// Waits until there is something to read. Says on stderr, once in a process, that the server does
// not answer.
void await_reply(int connection);

struct Question {
    RequestKind kind;
    const char* name;  // of a file in the tree
    int flags;         // of open(2)
    std::uint64_t file = 0;
    std::uint32_t address = 0;
};
// Takes a reply of `size` bytes; -1 with errno set when the world does not answer.
int ask_for(int connection, const Question& question, void* reply, std::size_t size,
            int* descriptor);

// The same, and -1 with errno set as the reply says.
template <class Reply>
int ask(int connection, const Question& question, Reply& reply, int* descriptor = nullptr) {
    if (ask_for(connection, question, &reply, sizeof reply, descriptor) != 0) {
        return -1;
    }
    return reply.error == 0 ? 0 : fail(static_cast<int>(reply.error));
}

}  // namespace simverbs::devices
