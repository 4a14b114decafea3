// How much of this process's memory is registered, against a limit as RLIMIT_MEMLOCK sets one.
#pragma once

#include <atomic>
#include <cstdint>

namespace simverbs::driver {

class PinnedMemory {
  public:
    // Counts the pages of [address, address + length), those that are counted already again, as
    // Linux does. False, and nothing counted, where they would exceed SIMVERBS_MEMLOCK: bytes, or
    // `rlimit` for the process's RLIMIT_MEMLOCK; no limit where it is not set. Reads the
    // environment at each call.
    bool pin(std::uint64_t address, std::uint64_t length);
    void unpin(std::uint64_t address, std::uint64_t length);

  private:
    std::atomic<std::uint64_t> pages_{0};
};

}  // namespace simverbs::driver
