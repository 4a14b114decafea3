#include "simverbs/hca/event_pipe.hpp"

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace simverbs {

bool EventBacklog::flush_pipes() {
    std::erase_if(pipes_, [](EventPipe* pipe) { return pipe->flush(); });
    return pipes_.empty();
}

EventPipe::EventPipe(EventBacklog& backlog) : backlog_(backlog) {
    std::array<int, 2> ends{};
    // A socket rather than a pipe: a reader that went away must not raise SIGPIPE in the program.
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw std::system_error(errno, std::generic_category(), "descriptor for events");
    }
    reader_ = ends[0];
    writer_ = ends[1];
}

EventPipe::~EventPipe() {
    std::erase(backlog_.pipes_, this);
    close(writer_);
    if (reader_ >= 0) {
        close(reader_);
    }
}

int EventPipe::take_reader() {
    return std::exchange(reader_, -1);
}

void EventPipe::send(const EventMessage& message) {
    const bool already_waits = !waiting_.empty();
    waiting_.push_back(message);
    if (!flush() && !already_waits) {
        backlog_.pipes_.push_back(this);
    }
}

bool EventPipe::flush() {
    std::size_t sent = 0;
    while (sent < waiting_.size()) {
        const ssize_t written =
            ::send(writer_, &waiting_[sent], sizeof(EventMessage), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (written < 0 && errno == EAGAIN) {
            break;
        }
        ++sent;  // taken, or nobody reads any more
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(sent));
    return waiting_.empty();
}

}  // namespace simverbs
