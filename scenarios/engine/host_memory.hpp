// Memory that scenarios give to hosts: zeros, in pages that cost nothing while nobody touches them.
//
// Where another thread of the process runs, the kernel waits for its processor before pages are
// unmapped. On a virtual machine a profile gave 42 % of a small scenario to that. So the memories
// of a world share mappings, and these are unmapped when the world has ended, and its thread with
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace scenarios {

// Not thread-safe.
class HostMemory {
  public:
    HostMemory() = default;
    ~HostMemory();
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;

    // Whole pages of its own for 1 byte to 1 GiB, which live as long as this. nullptr with errno:
    // there are none.
    std::uint8_t* take(std::size_t bytes);

  private:
    static constexpr std::size_t kMapped = std::size_t{4} << 20;

    std::vector<std::span<std::uint8_t>> mappings_;
    std::span<std::uint8_t> rest_;  // of the last one that others may share
};

}  // namespace scenarios
