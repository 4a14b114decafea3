// The next event of a source in the embedded world, for a thread that waits for it.
#pragma once

#include "simverbs/hca/event_pipe.hpp"
#include "simverbs/threads/awaited.hpp"
#include "simverbs/world/attachment.hpp"

namespace simverbs::driver {

class AwaitedEvent final : public Awaited {
  public:
    AwaitedEvent(const Attachment& attachment, const EventSource& source, int descriptor)
        : Awaited(descriptor), attachment_(attachment), source_(source) {}

    [[nodiscard]] bool is_there() override;
    void attend(Attention attention) override;

    // After the wait. nullptr: it is to be taken from the descriptor.
    [[nodiscard]] const EventMessage* given() const {
        return taker_.has_message ? &taker_.message : nullptr;
    }
    // After the wait: the descriptor is readable, though nothing was sent to it.
    [[nodiscard]] bool is_readable() const { return is_readable_; }

  private:
    const Attachment& attachment_;
    EventSource source_;
    EventTaker taker_;
    bool is_readable_ = false;
};

}  // namespace simverbs::driver
