// The state of a process of one thread, to which the process can go back: its memory, registers,
// signal mask and descriptors.
//
// Only what has changed is copied back: pages that fork(2) made common to this process and its
// parent are as they were while they are still common (/proc/self/pagemap). So a checkpoint is that
// of a child whose parent waits for it. What else a process has in the kernel does not go back;
// confined_calls.hpp keeps it from changing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <sys/types.h>
#include <ucontext.h>

#include "simverbs/driver/machine_calls.hpp"

namespace simverbs::driver {

// Lies in memory that does not go back: shared memory, filled with zeros. It is large, and pages of
// it that are not used cost nothing.
class Checkpoint {
  public:
    // As in the beginning, of another process.
    void forget();
    // Copies descriptors, under numbers from kFirstOwnDescriptor on, lists the memory that will go
    // back, and sets the alternate signal stack. No mappings may change until take(). Returns false
    // if this process could not go back: it has such a stack, too much memory, too many descriptors
    // or pages of another size, or the kernel has no page map.
    [[nodiscard]] bool prepare();

    enum class Taken : std::uint8_t {
        kNow,
        kBefore,  // the process has gone back to it
        kNot,     // it has more memory than when it was listed, or too much
    };
    // Returns once, and once more after each go_back().
    [[nodiscard]] Taken take();

    // On the alternate signal stack. Async-signal-safe. Returns only if the process cannot go back.
    void go_back();

    // Makes a call of mmap(2) or munmap(2) that has been trapped. Returns its result, or nothing if
    // it could not be taken back. Async-signal-safe.
    std::optional<long> change_mappings(const TrappedCall& call);

  private:
    static constexpr std::size_t kPageBytes = 4096;
    static constexpr std::size_t kMaxMappings = 512;
    static constexpr std::size_t kMaxPages = 65536;  // of memory that may be written to
    static constexpr std::size_t kMaxCopies = 4096;
    static constexpr std::size_t kMaxDescriptors = 128;
    static constexpr std::size_t kMaxChanges = 128;
    // So many are copied faster than the kernel says which of them have changed.
    static constexpr std::size_t kFewPages = 8;

    struct Range {
        std::uintptr_t from;
        std::uintptr_t to;

        [[nodiscard]] std::size_t pages() const { return (to - from) / kPageBytes; }
        [[nodiscard]] bool holds(const Range& other) const {
            return from <= other.from && other.to <= to;
        }
    };
    // Private memory that may be written to.
    struct Memory {
        Range range;
        std::size_t first_page;   // of those in copy_of_
        bool goes_back_whole;     // its copies follow each other
        bool can_be_mapped_anew;  // it is of no file, and has no name
    };
    struct Descriptor {
        int number;
        int copy;
        int flags;  // as F_GETFD has them
    };

    [[nodiscard]] bool copy_descriptors();
    [[nodiscard]] bool list_memory();
    [[nodiscard]] bool copy_pages();
    [[nodiscard]] bool copy_pages_of(const Memory& memory);
    [[nodiscard]] bool restore_mappings();
    [[nodiscard]] bool restore_pages_of(const Memory& memory) const;
    [[nodiscard]] bool restore_descriptors() const;
    // Calls `act` with the number of each page, from 0 on, and its entry in the page map.
    template <typename Act>
    [[nodiscard]] bool for_each_page(const Range& range, const Act& act) const;
    [[nodiscard]] bool can_be_unmapped(const Range& range) const;

    ucontext_t context_;
    std::atomic<bool> has_gone_back_;
    int pagemap_;
    std::uintptr_t break_;
    std::size_t memories_;
    std::size_t copies_;
    std::size_t descriptors_;
    std::size_t changes_;
    std::array<Memory, kMaxMappings> memory_;             // in the order of addresses
    std::array<Descriptor, kMaxDescriptors> descriptor_;  // in the order of numbers
    std::array<Range, kMaxChanges> change_;               // of mappings, since
    std::array<std::uint16_t, kMaxPages> copy_of_;        // its number from 1 on; 0: there is none
    alignas(16) std::array<std::byte, 65536> signal_stack_;
    alignas(kPageBytes) std::array<std::array<std::byte, kPageBytes>, kMaxCopies> copy_;
};

}  // namespace simverbs::driver
