#include "simverbs/abi/event_reader.hpp"

#include <cerrno>
#include <mutex>

#include <fcntl.h>
#include <sys/socket.h>

namespace simverbs::abi {

bool read_event(Context& context, int descriptor, ChannelUse& use, EventMessage& message) {
    const auto receive = [descriptor, &context, &use, &message] {
        const std::lock_guard guard(use.lock);
        const ssize_t got = recv(descriptor, &message, sizeof message, MSG_DONTWAIT);
        context.channel().note_use(use.use, got > 0 ? Use::kTake : Use::kLook,
                                   "the event channel of descriptor",
                                   static_cast<std::uint32_t>(descriptor));
        if (got == 0) {
            context.is_end_of_world();  // which says so on stderr
            refuse("ibv_get_async_event or ibv_get_cq_event", EIO, "the device is gone");
        }
        return got == sizeof message;
    };
    const bool admitted = context.admits();
    std::uint64_t seen = context.channel().deliveries();
    if (receive()) {
        return true;
    }
    if (!admitted) {
        context.refuse_use("ibv_get_async_event or ibv_get_cq_event");
        return false;
    }
    while (errno == EAGAIN) {
        const int flags = fcntl(descriptor, F_GETFL);
        if (flags < 0) {
            return false;
        }
        const bool blocks = (flags & O_NONBLOCK) == 0;
        if (blocks) {
            const int error = context.channel().wait_readable(descriptor);
            static_cast<void>(context.await_running());
            if (error != 0) {
                errno = error;
                return false;
            }
        } else {
            context.channel().empty_poll(seen, nullptr);  // a poll: time may move
            static_cast<void>(context.await_running());
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
