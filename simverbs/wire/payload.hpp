// Where the bytes of a packet live until they are placed: a reference into the sender's memory.
//
// A payload is copied once, from these spans to the receiver's, at the instant it is placed; no
// packet owns bytes unless a snapshot was taken (see transport/README.md for when it is).
#pragma once

#include <cstddef>
#include <cstdint>

namespace simverbs {

enum class CopyOutcome : std::uint8_t {
    kCopied,
    kSourceFault,       // the source is not mapped (any more)
    kDestinationFault,  // the destination is not mapped (any more)
};

// Somebody's virtual memory: this process's, or another one's that the server reaches.
// An address is a number here: only an AddressSpace may turn it into bytes.
class AddressSpace {
  public:
    AddressSpace(const AddressSpace&) = delete;
    AddressSpace& operator=(const AddressSpace&) = delete;
    virtual ~AddressSpace() = default;

    // Copies `length` bytes at `address` into `bytes` of this process; false if they are not
    // mapped.
    virtual bool read(std::uint64_t address, std::byte* bytes, std::size_t length) = 0;
    // The other way round.
    virtual bool write(std::uint64_t address, const std::byte* bytes, std::size_t length) = 0;
    // Returns true if an address is a pointer of this process.
    [[nodiscard]] virtual bool is_own() const = 0;
    // Returns where this process reaches all of [address, address + length) itself, so that one
    // copy suffices; nullptr: by read() and write() alone. Holds until other code runs.
    [[nodiscard]] virtual std::byte* reach(std::uint64_t address, std::uint64_t length) = 0;
    // Its process has ended, as an access has found: nothing is heard of it any more.
    [[nodiscard]] virtual bool is_gone() const { return false; }

  protected:
    AddressSpace() = default;
};

// The kind of memory that an address is in.
enum class MemoryKind : std::uint8_t {
    kProcess,  // an AddressSpace that is known from elsewhere: the payload's, or the owner's
    kDevice,   // memory on the device itself
    kNull,     // reads as zeros, takes everything; the address means nothing
};

// Consecutive bytes of one of them.
struct MemorySpan {
    std::uint64_t address = 0;
    std::uint32_t length = 0;
    MemoryKind kind = MemoryKind::kProcess;
};

// `length` bytes that begin `offset` bytes into the concatenation of `spans`.
struct Payload {
    AddressSpace* space = nullptr;  // of the spans of kind kProcess
    const MemorySpan* spans = nullptr;
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
    std::uint32_t span_count = 0;
};

}  // namespace simverbs
