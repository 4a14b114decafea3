// The memory that this process has lent to the server of its world: regions that are registered,
// and buffers of a command while it is under way. A thread that copies for the server copies
// nothing else, whatever the server asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "simverbs/hca/command.hpp"

namespace simverbs::driver {

// Ranges of addresses, each of which may be added several times.
class CountedRanges {
  public:
    void add(std::uint64_t begin, std::uint64_t end) { change(begin, end, true); }
    void remove(std::uint64_t begin, std::uint64_t end) { change(begin, end, false); }
    // True if every byte of [begin, end) is in a range.
    [[nodiscard]] bool cover(std::uint64_t begin, std::uint64_t end) const;

  private:
    void change(std::uint64_t begin, std::uint64_t end, bool adds);
    void join_at(std::uint64_t boundary);

    // How many ranges hold the bytes from this address to the next one.
    std::map<std::uint64_t, std::uint32_t> counts_;
};

class LentMemory {
  public:
    // Around a command of this process, whose reply has come by the time of the second.
    void before(CommandCode code, std::span<const std::byte> command);
    void after(CommandCode code, std::span<const std::byte> command, int error,
               std::span<const std::byte> reply);

    // True if the server may read, or write, [address, address + length).
    [[nodiscard]] bool may_copy(std::uint64_t address, std::uint64_t length, bool writes) const;

  private:
    struct Range {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        bool is_writable = false;
    };
    using RegionName = std::pair<std::uint32_t, std::uint32_t>;  // context, handle

    static Range range_of(std::uint64_t address, std::uint64_t length, std::uint32_t access);
    Range range_after(const ReregisterMr& command) const;
    void lend(const Range& range);
    void take_back(const Range& range);
    void forget(const RegionName& name);
    void forget_all_of(std::uint32_t context);

    mutable std::mutex mutex_;
    CountedRanges readable_;
    CountedRanges writable_;
    std::map<RegionName, Range> regions_;
};

}  // namespace simverbs::driver
