// The effects of a protocol engine on the wire.
#pragma once

#include <cstdint>

#include "simverbs/transport/work_queue.hpp"
#include "simverbs/wire/packet.hpp"
#include "simverbs/wire/payload.hpp"

namespace simverbs {

// The answer to whether a queue pair may send to where an address handle leads (IBA 11.2.2.1).
enum class AddressVerdict : std::uint8_t { kUsable, kUnknown, kOtherPort, kOtherProtectionDomain };

// The result of sending an Ethernet frame that a program made.
enum class FrameVerdict : std::uint8_t {
    kSent,
    kWrongLength,  // no header, or more than the link carries
    kUnreadable,   // its bytes are not mapped (any more)
};

// Packets of a train whose bytes are taken when it is sent, at most.
inline constexpr std::uint16_t kLongestSnapshotTrain = 16;

class WireEffects {
  public:
    WireEffects(const WireEffects&) = delete;
    WireEffects& operator=(const WireEffects&) = delete;

    // Puts a packet on the wire, or a train; its payload spans stay valid until the work request
    // completes.
    virtual void transmit(const Packet& packet) = 0;
    // As how many packets at most one may go to transmit(), where they follow each other.
    [[nodiscard]] virtual std::uint16_t longest_train() const = 0;
    // As transmit(), with the payload's bytes taken now: the sender may change or free them at
    // once. An XRC target takes them out of the memory of the queue that the packet names.
    virtual CopyOutcome transmit_snapshot(const Packet& packet) = 0;
    // ... to where an address handle leads, instead of the queue pair's peer.
    virtual CopyOutcome transmit_datagram(const Packet& packet, std::uint32_t address_handle) = 0;
    [[nodiscard]] virtual AddressVerdict check_address(std::uint32_t address_handle) const = 0;
    // Puts an Ethernet frame on the wire, from its destination address to the end of its data. The
    // bytes are taken now, padded to the shortest frame that there may be, and the checksums of
    // IPv4 and what it carries written if wanted.
    virtual FrameVerdict transmit_frame(const Payload& frame, bool fill_checksums) = 0;

    // Sends a request of the device's own on this queue pair.
    virtual void send_of_device(const DeviceWork& request) = 0;

    // Memory goes back to the application while packets that refer to it may still be about: they
    // get bytes of their own.
    virtual void keep_payloads_in_flight() = 0;

  protected:
    WireEffects() = default;
    ~WireEffects() = default;
};

}  // namespace simverbs
