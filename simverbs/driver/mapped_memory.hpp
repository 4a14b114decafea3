// Whether a range of this process's memory can be registered: pinning it would fail otherwise.
#pragma once

#include <cstdint>

namespace simverbs::driver {

// Every page of [address, address + length) is mapped, and may be written if `writable`. Reads
// /proc/self/maps; where that cannot be read, any range is believed.
bool is_mapped(std::uint64_t address, std::uint64_t length, bool writable);

}  // namespace simverbs::driver
