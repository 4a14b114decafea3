// How events reach an application: fixed-size messages through a pair of sockets, one of which
// is the descriptor that the application polls.
//
// The writer never blocks and loses nothing: what a full socket does not take waits here.
#pragma once

#include <cstdint>
#include <vector>

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

// The pipes of a world whose sockets were full.
class EventBacklog {
  public:
    // Tries again to hand over what waits; true when nothing is left.
    bool flush() { return pipes_.empty() || flush_pipes(); }

  private:
    friend class EventPipe;
    bool flush_pipes();

    std::vector<EventPipe*> pipes_;
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

    EventBacklog& backlog_;
    int reader_ = -1;
    int writer_ = -1;
    std::vector<EventMessage> waiting_;
};

}  // namespace simverbs
