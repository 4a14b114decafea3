// How much of this process's memory is registered, against a limit as RLIMIT_MEMLOCK sets one.
#pragma once

#include <atomic>
#include <cstdint>

namespace simverbs::driver {

class PinnedMemory {
  public:
    // Counts pages; thread-safe. False, and nothing counted, where they would exceed
    // SIMVERBS_MEMLOCK: bytes, or `rlimit` for the process's RLIMIT_MEMLOCK; no limit where it is
    // not set. Reads the environment at each call.
    bool pin(std::uint64_t pages);
    void unpin(std::uint64_t pages);

  private:
    std::atomic<std::uint64_t> pages_{0};
};

// A device context's part of that. What is left of it at its end is pinned no more, as the kernel
// sees to when a device is closed.
class PinnedByContext {
  public:
    explicit PinnedByContext(PinnedMemory& process) : process_(process) {}
    ~PinnedByContext() { process_.unpin(pages_); }
    PinnedByContext(const PinnedByContext&) = delete;
    PinnedByContext& operator=(const PinnedByContext&) = delete;

    // Counts the pages of [address, address + length), those that are counted already again, as
    // Linux does. False, and nothing counted, beyond the limit.
    bool pin(std::uint64_t address, std::uint64_t length);
    void unpin(std::uint64_t address, std::uint64_t length);

  private:
    PinnedMemory& process_;
    std::atomic<std::uint64_t> pages_{0};
};

}  // namespace simverbs::driver
