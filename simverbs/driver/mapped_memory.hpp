// Checks that a range of this process's memory can be registered: pinning it would fail otherwise.
#pragma once

#include <cstdint>

namespace simverbs::driver {

// Every page of [address, address + length) is mapped, and may be written if `writable`. Asks the
// kernel about the range alone: short ranges are faulted in (Linux 5.14), long ones looked up
// (Linux 6.11). Where the kernel cannot be asked /proc/self/maps is read through, and where that
// cannot be read, any range is believed.
bool is_mapped(std::uint64_t address, std::uint64_t length, bool writable);

}  // namespace simverbs::driver
