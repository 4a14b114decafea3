// Lets a thread that waits in a blocking verb know that what it waits for is there.
#pragma once

#include <cstdint>

#include "simverbs/threads/held_signals.hpp"

namespace simverbs {

// How a thread waits for it.
enum class Attention : std::uint8_t {
    kNone,    // no longer, or not yet
    kAwake,   // in the library, until it is let go on
    kAsleep,  // in the kernel, until the descriptor is readable
};

// Called with the world held. By itself: that a descriptor becomes readable.
class Awaited {
  public:
    // `descriptor`: a socket.
    explicit Awaited(int descriptor) : descriptor_(descriptor) {}
    Awaited(const Awaited&) = delete;
    Awaited& operator=(const Awaited&) = delete;

    [[nodiscard]] int descriptor() const { return descriptor_; }
    [[nodiscard]] virtual bool is_there() { return has_message(descriptor_); }
    // The waiting thread says how it waits from here on.
    virtual void attend(Attention /*attention*/) {}

  protected:
    ~Awaited() = default;

  private:
    int descriptor_;
};

}  // namespace simverbs
