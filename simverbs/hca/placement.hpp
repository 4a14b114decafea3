// Copies payloads between address spaces: once where this process reaches both itself, through a
// buffer that stays in cache otherwise.
#pragma once

#include <cstdint>
#include <span>

#include "simverbs/wire/payload.hpp"

namespace simverbs {

// Where the bytes of a span are; `process` is where those of kind kProcess are.
AddressSpace& space_of(const MemorySpan& span, AddressSpace& process);

// Copies `from` to `offset` bytes into the concatenation of `to`. Bytes before a fault have landed.
CopyOutcome place_payload(const Payload& from, AddressSpace& space, std::span<const MemorySpan> to,
                          std::uint64_t offset);

// Gathers `from` into `bytes`, which holds from.length.
CopyOutcome gather_payload(const Payload& from, std::byte* bytes);

}  // namespace simverbs
