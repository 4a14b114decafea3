#include "simverbs/driver/completion_counter.hpp"

#include <mutex>

namespace simverbs::driver {

CompletionCounter::CompletionCounter(Channel& channel, std::size_t device,
                                     const CreateCompletionCounterReply& reply, std::byte* ring)
    : channel_(channel),
      device_(device),
      number_(reply.handle),
      ring_(ring),
      ring_bytes_(reply.ring.bytes) {}

CompletionCounter::~CompletionCounter() {
    channel_.unmap_ring(ring_, ring_bytes_);
}

std::uint64_t CompletionCounter::read_or_step(CounterEntry entry) {
    const std::uint64_t seen = channel_.deliveries();
    std::uint64_t value = 0;
    if (!read(entry, value)) {
        channel_.empty_poll(seen, nullptr);
        channel_.await_running(device_);
        read(entry, value);
    }
    return value;
}

bool CompletionCounter::read(CounterEntry entry, std::uint64_t& value) {
    const auto index = static_cast<std::size_t>(entry);
    const auto& shared = *reinterpret_cast<const CompletionCounterRing*>(ring_);
    const std::lock_guard guard(lock_);
    value = shared.values[index].load(std::memory_order_seq_cst);
    const bool is_new = value != last_[index];
    last_[index] = value;
    channel_.note_use(use_, is_new ? Use::kTake : Use::kLook, "the completion counter", number_);
    return is_new;
}

}  // namespace simverbs::driver
