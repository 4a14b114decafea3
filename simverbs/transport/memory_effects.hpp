// Keys and bytes, as a protocol engine asks for them.
//
// A request to an XRC target names the shared receive queue whose receives, keys and memory it uses
// (IBA A14). `srq` passes that name on; it is kNoSrq, and means nothing, everywhere else.
#pragma once

#include <cstdint>
#include <span>

#include "simverbs/model/access.hpp"
#include "simverbs/transport/work_queue.hpp"
#include "simverbs/wire/packet.hpp"
#include "simverbs/wire/payload.hpp"

namespace simverbs {

// Why a key did not open a range of memory; what becomes of it depends on who asked.
enum class KeyVerdict : std::uint8_t {
    kGranted,
    kUnknownKey,
    kOtherProtectionDomain,
    kRightMissing,
    kOutOfRange,
};

// The answer to a key: where it is granted, bytes of somebody's virtual memory.
struct Grant {
    KeyVerdict verdict = KeyVerdict::kUnknownKey;
    MemorySpan span;
};

// The result of invalidating a key.
enum class InvalidateVerdict : std::uint8_t {
    kInvalidated,
    kRefused,  // it is none, or a region's, or another's
    kType1,    // a window that can never be (IBA o10-37.2.26)
};

class MemoryEffects {
  public:
    MemoryEffects(const MemoryEffects&) = delete;
    MemoryEffects& operator=(const MemoryEffects&) = delete;

    // A segment of a send request.
    [[nodiscard]] virtual Grant open_local(const Segment& segment, AccessRights needed) = 0;
    [[nodiscard]] virtual Grant open_remote(SrqNumber srq, std::uint32_t rkey,
                                            std::uint64_t address, std::uint64_t length,
                                            AccessRights needed) = 0;
    // The same for a key alone, whichever of its bytes.
    [[nodiscard]] virtual KeyVerdict check_remote(SrqNumber srq, std::uint32_t rkey,
                                                  AccessRights needed) = 0;
    // Carries out a BIND_MW of this queue pair; false when it is refused and has changed nothing.
    virtual bool bind_window(const WindowBinding& binding) = 0;
    // Takes a type 2 window's rkey away, for LOCAL_INV or the peer's SEND_WITH_INV, where the key
    // is of a window that is bound to this queue pair.
    virtual InvalidateVerdict invalidate(SrqNumber srq, std::uint32_t rkey) = 0;
    // A number that changes whenever a grant given earlier may have ended.
    [[nodiscard]] virtual std::uint64_t key_generation() const = 0;

    // Writes the global route header of the packet under way to the first 40 bytes of `spans`,
    // which stay as they are where it has none.
    virtual CopyOutcome place_grh(std::span<const MemorySpan> spans, bool& had_one) = 0;
    // Reads or writes eight bytes of this side's memory.
    virtual bool load(SrqNumber srq, const MemorySpan& from, std::uint64_t& value) = 0;
    virtual bool store(SrqNumber srq, const MemorySpan& to, std::uint64_t value) = 0;
    // The payload of a packet could not be read where it lies: its sender has a protection error.
    virtual void source_fault(const Packet& packet) = 0;

    // Copies the first bytes of a payload to the device.
    virtual CopyOutcome read_head(const Payload& from, std::span<std::byte> into) = 0;

  protected:
    MemoryEffects() = default;
    ~MemoryEffects() = default;
};

}  // namespace simverbs
