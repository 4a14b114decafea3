#include "simverbs/abi/event_reader.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>

namespace simverbs::abi {

bool read_event(Context& context, int descriptor, EventMessage& message) {
    const auto receive = [descriptor, &message] {
        const ssize_t got = recv(descriptor, &message, sizeof message, MSG_DONTWAIT);
        if (got == 0) {
            errno = EIO;  // the device is gone
        }
        return got == sizeof message;
    };
    std::uint64_t seen = context.channel().deliveries();
    if (receive()) {
        return true;
    }
    if (context.is_foreign()) {
        errno = EIO;
        return false;
    }
    while (errno == EAGAIN) {
        const int flags = fcntl(descriptor, F_GETFL);
        if (flags < 0) {
            return false;
        }
        const bool blocks = (flags & O_NONBLOCK) == 0;
        if (blocks) {
            if (const int error = context.channel().wait_readable(descriptor); error != 0) {
                errno = error;
                return false;
            }
        } else {
            context.channel().empty_poll(seen);  // a poll like any other: time may move
            seen = context.channel().deliveries();
        }
        if (receive()) {
            return true;
        }
        if (!blocks) {
            errno = EAGAIN;
            return false;
        }
    }
    return false;
}

}  // namespace simverbs::abi
