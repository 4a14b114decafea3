#include "simverbs/abi/event_reader.hpp"

#include <cerrno>
#include <mutex>

#include <fcntl.h>
#include <pthread.h>

namespace simverbs::abi {
namespace {

constexpr auto kReadingVerbs = "ibv_get_async_event or ibv_get_cq_event";

// The caller found an event, or with an errno did not.
bool finish_look(Context& context, int descriptor, ChannelUse& use, int error) {
    {
        const std::lock_guard guard(use.lock);
        context.channel().note_use(use.use, error == 0 ? Use::kTake : Use::kLook,
                                   "the event channel of descriptor",
                                   static_cast<std::uint32_t>(descriptor));
    }
    if (error == EIO) {
        context.is_end_of_world();  // which says so on stderr
        refuse(kReadingVerbs, EIO, "the device is gone");
    }
    errno = error;
    return error == 0;
}

// Nothing may be asked of its world, but what was sent before can be read.
bool read_what_is_left(Context& context, int descriptor, EventMessage& message) {
    const int error = receive_event(descriptor, message);
    if (error == 0) {
        return true;
    }
    if (error == EIO && !context.is_foreign()) {
        context.is_end_of_world();  // which says so on stderr
    }
    context.refuse_use(kReadingVerbs);
    return false;
}

}  // namespace

bool read_event(Context& context, std::uint32_t channel, int descriptor, ChannelUse& use,
                EventMessage& message) {
    pthread_testcancel();  // as read(2) does, also where the event comes through memory
    const EventSource source{context.number(), channel};
    if (!context.admits()) {
        return read_what_is_left(context, descriptor, message);
    }
    std::uint64_t seen = context.channel().deliveries();
    if (finish_look(context, descriptor, use,
                    context.channel().take_event(source, descriptor, message))) {
        return true;
    }
    while (errno == EAGAIN) {
        const int flags = fcntl(descriptor, F_GETFL);
        if (flags < 0) {
            return false;
        }
        int error = 0;
        const bool blocks = (flags & O_NONBLOCK) == 0;
        if (blocks) {
            error = context.channel().await_event(source, descriptor, message);
            static_cast<void>(context.await_running());
            if (error == EINTR) {
                errno = EINTR;
                return false;
            }
        } else {
            context.channel().empty_poll(seen, nullptr);  // a poll: time may move
            static_cast<void>(context.await_running());
            seen = context.channel().deliveries();
            error = context.channel().take_event(source, descriptor, message);
        }
        if (finish_look(context, descriptor, use, error)) {
            return true;
        }
        if (!blocks) {
            return false;
        }
    }
    return false;
}

}  // namespace simverbs::abi
