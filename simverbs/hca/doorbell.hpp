// The value that a program writes to a device's doorbell register: which queue has more work
// requests.
#pragma once

#include <cstdint>

namespace simverbs {

// Work requests exist up to `producer`; the queue pair is to look.
enum class DoorbellQueue : std::uint8_t {
    kSend,
    kReceive,
    kWork,  // a work queue, which `qpn` then names
    kTag,   // operations on the tags of a shared receive queue, which `qpn` then names
    kArm,   // a completion queue was armed, which `qpn` then names, while entries wait in it
};

struct Doorbell {
    std::uint32_t context = 0;
    std::uint32_t qpn = 0;
    std::uint32_t producer = 0;
    std::uint16_t actor = 0;  // which of the process's threads; served worlds merge by it
    DoorbellQueue queue = DoorbellQueue::kSend;
};

}  // namespace simverbs
