// The driver's side of a completion counter: it is read where the device writes it.
//
// A program that waits for a counter reads it again and again, as others poll a queue. A read that
// finds the value of the read before therefore counts as an empty poll. Thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "simverbs/driver/channel.hpp"
#include "simverbs/threads/spin_lock.hpp"

namespace simverbs::driver {

class CompletionCounter {
  public:
    // `device`: its place in Channel::devices().
    CompletionCounter(Channel& channel, std::size_t device,
                      const CreateCompletionCounterReply& reply, std::byte* ring);
    ~CompletionCounter();
    CompletionCounter(const CompletionCounter&) = delete;
    CompletionCounter& operator=(const CompletionCounter&) = delete;

    // Where the value is that of the last read, time moves once first.
    std::uint64_t read_or_step(CounterEntry entry);

  private:
    // Returns true if it differs from the last read; then that is this one.
    bool read(CounterEntry entry, std::uint64_t& value);

    Channel& channel_;
    std::size_t device_;
    std::uint32_t number_;
    std::byte* ring_;
    std::uint64_t ring_bytes_;
    SpinLock lock_;
    ObjectUse use_;
    std::array<std::uint64_t, kCounterEntries> last_{};
};

}  // namespace simverbs::driver
