#include "simverbs/hca/event_pipe.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace simverbs {
namespace {

// 0: there is no such descriptor.
ino_t inode_of(int descriptor) {
    struct stat file {};
    return fstat(descriptor, &file) == 0 ? file.st_ino : 0;
}

// Gives `fresh` the number of a socket that is open, and its flags; closes `fresh`.
bool take_the_place(int fresh, int of) {
    const int flags = fcntl(of, F_GETFL);
    const int closes = fcntl(of, F_GETFD);
    const bool done = fcntl(fresh, F_SETFL, flags) == 0 && dup2(fresh, of) == of &&
                      fcntl(of, F_SETFD, closes) == 0;
    close(fresh);
    return done;
}

}  // namespace

bool EventBacklog::has(int descriptor) const {
    return std::ranges::any_of(all_, [descriptor](const EventPipe* pipe) {
        return descriptor == pipe->writer_ ||
               (descriptor == pipe->reader_number_ && pipe->has_reader());
    });
}

void EventBacklog::note_unread() {
    for (EventPipe* pipe : all_) {
        pipe->note_unread();
    }
}

bool EventBacklog::separate() {
    return std::ranges::all_of(all_, [](EventPipe* pipe) { return pipe->separate(); });
}

void EventBacklog::restore() {
    for (EventPipe* pipe : all_) {
        pipe->restore();
    }
}

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
    reader_ = reader_number_ = ends[0];
    writer_ = ends[1];
    reader_inode_ = inode_of(reader_);
    backlog_.all_.push_back(this);
}

EventPipe::~EventPipe() {
    let_takers_go();
    std::erase(backlog_.pipes_, this);
    std::erase(backlog_.all_, this);
    close(writer_);
    if (reader_ >= 0) {
        close(reader_);
    }
}

int EventPipe::take_reader() {
    return std::exchange(reader_, -1);
}

void EventPipe::send(const EventMessage& message) {
    if (give(message)) {
        return;
    }
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
        in_socket_ += written > 0 ? 1 : 0;
        ++sent;  // taken, or nobody reads any more
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(sent));
    return waiting_.empty();
}

bool EventPipe::give(const EventMessage& message) {
    if (takers_.size() != 1 || holds_message() || !waiting_.empty()) {
        return false;
    }
    EventTaker& taker = *takers_.front();
    if (!taker.is_awake || taker.has_message) {
        return false;
    }
    taker.message = message;
    taker.has_message = true;
    return true;
}

void EventPipe::add(EventTaker& taker) {
    taker.pipe = this;
    takers_.push_back(&taker);
}

void EventPipe::remove(EventTaker& taker) {
    std::erase(takers_, &taker);
    taker.pipe = nullptr;
}

void EventPipe::let_takers_go() {
    for (EventTaker* taker : takers_) {
        taker->pipe = nullptr;
    }
    takers_.clear();
}

bool EventPipe::has_reader() const {
    return inode_of(reader_number_) == reader_inode_;
}

// Takes the messages out of the socket and puts them back, in their order.
void EventPipe::note_unread() {
    unread_.clear();
    EventMessage message;
    while (has_reader() && recv(reader_number_, &message, sizeof message, MSG_DONTWAIT) ==
                               static_cast<ssize_t>(sizeof message)) {
        unread_.push_back(message);
    }
    send_unread();
}

bool EventPipe::separate() {
    let_takers_go();  // the child has one of those threads, at most, and it asks again
    if (!has_reader()) {
        return true;  // nobody reads it
    }
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return false;
    }
    const bool has_writer = take_the_place(ends[1], writer_);
    const bool is_done = take_the_place(ends[0], reader_number_) && has_writer;
    reader_inode_ = inode_of(reader_number_);
    send_unread();
    return is_done;
}

void EventPipe::restore() {
    if (has_reader()) {
        EventMessage message;
        while (recv(reader_number_, &message, sizeof message, MSG_DONTWAIT) > 0) {
        }
        send_unread();
    }
}

void EventPipe::send_unread() {
    in_socket_ = 0;
    for (const EventMessage& each : unread_) {
        if (::send(writer_, &each, sizeof each, MSG_NOSIGNAL | MSG_DONTWAIT) > 0) {
            ++in_socket_;
        }
    }
}

int receive_event(int descriptor, EventMessage& message) {
    const ssize_t got = recv(descriptor, &message, sizeof message, MSG_DONTWAIT);
    if (got < 0) {
        return errno;
    }
    return got == sizeof message ? 0 : EIO;
}

}  // namespace simverbs
