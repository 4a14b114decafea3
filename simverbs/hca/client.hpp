// Whoever has opened a device, as the device sees it: where its memory is, where rings are made,
// and that something was delivered to it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simverbs/hca/command_code.hpp"
#include "simverbs/transport/work_queue.hpp"
#include "simverbs/wire/payload.hpp"

namespace simverbs {

// Memory that driver and device share, aligned to a cache line.
struct RingMemory {
    std::byte* base = nullptr;
    std::size_t bytes = 0;
};

class Client {
  public:
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    virtual ~Client() = default;

    [[nodiscard]] virtual AddressSpace& memory() = 0;
    // The first `zeroed` bytes are zero; the others may be what was left in memory of the same
    // client. base is null when there is no memory left.
    [[nodiscard]] virtual RingMemory make_ring(std::size_t bytes, std::size_t zeroed) = 0;
    virtual void release_ring(const RingMemory& ring) = 0;
    // How the driver finds it, here in the same process.
    [[nodiscard]] virtual RingReply ring_reply(const RingMemory& ring) const {
        return {reinterpret_cast<std::uint64_t>(ring.base), ring.bytes};
    }
    // A descriptor that goes to the client with the reply of the command under way.
    virtual void hand_over(int descriptor) = 0;
    // A completion has become visible to it (in the queue of that ring, unless that is nullptr), or
    // an event can be read from a descriptor.
    virtual void completion_delivered(const CompletionRing* queue) = 0;
    virtual void event_delivered() = 0;
    // A peer has written to its memory, and no completion tells.
    virtual void memory_written() {}
    // Its retries were used up towards a queue pair that no device of this world ever had, or that
    // is the sender itself.
    virtual void peer_never_was(std::uint32_t /*qpn*/) {}

  protected:
    Client() = default;
};

}  // namespace simverbs
