// How events reach an application: fixed-size messages through a pair of sockets, one of which
// is the descriptor that the application polls.
//
// The writer never blocks and loses nothing: what a full socket does not take waits here.
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

class EventPipe;

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

  private:
    friend class EventBacklog;
    // Tries to hand over what waits; true when nothing is left.
    bool flush();
    [[nodiscard]] bool has_reader() const;
    void note_unread();
    bool separate();
    void restore();
    void send_unread();

    EventBacklog& backlog_;
    int reader_ = -1;  // -1: the caller's
    int writer_ = -1;
    int reader_number_ = -1;  // also of the caller's, which may have closed it
    ino_t reader_inode_ = 0;
    std::vector<EventMessage> waiting_;
    std::vector<EventMessage> unread_;  // as of note_unread()
};

}  // namespace simverbs
