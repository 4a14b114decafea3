#include "simverbs/driver/awaited_event.hpp"

namespace simverbs::driver {

bool AwaitedEvent::is_there() {
    return taker_.has_message || taker_.pipe == nullptr || taker_.pipe->holds_message() ||
           is_readable_;
}

void AwaitedEvent::attend(Attention attention) {
    if (attention == Attention::kNone) {
        if (taker_.pipe != nullptr) {
            taker_.pipe->remove(taker_);
        }
        return;
    }
    if (attention == Attention::kAsleep) {
        taker_.is_awake = false;
        return;
    }
    if (!taker_.is_awake) {
        taker_.is_awake = true;
        is_readable_ = !is_there() && has_message(descriptor());
    } else if (EventPipe* const pipe = attachment_.events_of(source_)) {
        pipe->add(taker_);
    }
}

}  // namespace simverbs::driver
