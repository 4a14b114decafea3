// Memory that scenarios give to hosts: zeros, in pages that cost nothing while nobody touches them.
//
// To map and unmap memory, with the tables of its pages, took a fifth of a small scenario on a
// virtual machine, by a profile, and to touch it for the first time a tenth. So the memories of a
// world share mappings, and the next world of the thread gets the first of them, zeroed.
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
    std::vector<std::span<std::uint8_t>> mappings_;
    std::span<std::uint8_t> rest_;  // of the last one that others may share
};

}  // namespace scenarios
