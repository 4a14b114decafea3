// How events reach an application: fixed-size messages through a pair of sockets, one of which
// is the descriptor that the application polls.
//
// The writer never blocks and loses nothing: what a full socket does not take waits here. A thread
// of this process that waits in a verb gets its message without the socket (EventTaker).
#pragma once

#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "simverbs/model/statuses.hpp"

namespace simverbs {

// A completion event names its CQ; an async event names its object, or its port.
struct EventMessage {
    std::uint32_t event = 0;    // enum ibv_event_type; of a completion channel: 0
    std::uint32_t subject = 0;  // handle, port number, or 0 for the device
    std::uint32_t kind = 0;     // EventSubject
    std::uint32_t reserved = 0;
};
static_assert(sizeof(EventMessage) == 16);

// Names a completion channel of a context, or the asynchronous events of the context.
struct EventSource {
    std::uint32_t context = 0;
    std::uint32_t channel = 0;  // 0: asynchronous events
};

class EventPipe;

// A thread of this process that waits for the next message of a pipe.
struct EventTaker {
    EventPipe* pipe = nullptr;  // nullptr: it waits for none, or no longer
    bool is_awake = true;       // false: it sleeps in the kernel, until the descriptor is readable
    bool has_message = false;
    EventMessage message;
};

// Takes the next message from a read end, without waiting. 0; EAGAIN: there is none; EIO: the write
// end is gone; or another errno of recv(2).
[[nodiscard]] int receive_event(int descriptor, EventMessage& message);

// The pipes of a world, and those of them whose sockets were full.
class EventBacklog {
  public:
    // Tries again to hand over what waits; true when nothing is left.
    bool flush() { return pipes_.empty() || flush_pipes(); }

    // Returns true if the descriptor is an end of a pipe.
    [[nodiscard]] bool has(int descriptor) const;
    // Before the process forks: remembers what has been sent and not been read.
    void note_unread();
    // In the child: replaces the sockets, which the parent has, too, by others under the same
    // numbers with the same messages. False: the process is out of descriptors.
    bool separate();
    // Takes out of them what has been sent since, and puts the messages in that note_unread()
    // found.
    void restore();

  private:
    friend class EventPipe;
    bool flush_pipes();

    std::vector<EventPipe*> pipes_;
    std::vector<EventPipe*> all_;
};

class EventPipe {
  public:
    // The backlog outlives the pipe. Throws std::system_error when the process is out of
    // descriptors.
    explicit EventPipe(EventBacklog& backlog);
    ~EventPipe();
    EventPipe(const EventPipe&) = delete;
    EventPipe& operator=(const EventPipe&) = delete;

    // The read end, once: from then on it is the caller's to close.
    [[nodiscard]] int take_reader();

    void send(const EventMessage& message);
    // Returns true if the socket has a message that no reader of this process has claimed.
    [[nodiscard]] bool holds_message() const { return in_socket_ != 0; }
    // The caller, a reader of this process, takes a message with receive_event() next, if there is
    // one.
    [[nodiscard]] bool claim() {
        const bool holds = holds_message();
        in_socket_ -= holds ? 1 : 0;
        return holds;
    }
    // From here on a message goes to the taker, if there is none before it, no other taker waits
    // too, and it is awake. Until remove(), the end of the pipe, or separate().
    void add(EventTaker& taker);
    void remove(EventTaker& taker);

  private:
    friend class EventBacklog;
    // Tries to hand over what waits; true when nothing is left.
    bool flush();
    [[nodiscard]] bool has_reader() const;
    void note_unread();
    bool separate();
    void restore();
    void send_unread();
    void let_takers_go();
    // Returns true if a taker got the message.
    bool give(const EventMessage& message);

    EventBacklog& backlog_;
    int reader_ = -1;  // -1: the caller's
    int writer_ = -1;
    int reader_number_ = -1;  // also of the caller's, which may have closed it
    ino_t reader_inode_ = 0;
    // Sent and not claimed; more than there are if anybody else reads.
    std::uint64_t in_socket_ = 0;
    std::vector<EventTaker*> takers_;
    std::vector<EventMessage> waiting_;
    std::vector<EventMessage> unread_;  // as of note_unread()
};

}  // namespace simverbs
