// A memcpy that reports an unmapped page instead of crashing, as a DMA engine would.
//
// It refuses to repair anything else: a fault outside its own few instructions goes to the handler
// that was there before. Signal handlers are process-wide, so install() is called at the first
// memory registration and not earlier.
#pragma once

#include <cstddef>

#include "simverbs/wire/payload.hpp"

namespace simverbs {

class GuardedCopy {
  public:
    // Installs the SIGSEGV and SIGBUS handlers once, chaining to the earlier ones. Idempotent.
    static void install();

    // Copies `length` bytes; on a fault some prefix has been written. Without an installed handler,
    // or where the program has replaced it, the kernel does the copy (process_vm_readv on itself).
    static CopyOutcome copy(std::byte* to, const std::byte* from, std::size_t length);
};

// The memory of this process.
class OwnMemory final : public AddressSpace {
  public:
    bool read(std::uint64_t address, std::byte* bytes, std::size_t length) override;
    bool write(std::uint64_t address, const std::byte* bytes, std::size_t length) override;
    [[nodiscard]] bool is_own() const override { return true; }
    [[nodiscard]] std::byte* reach(std::uint64_t address, std::uint64_t /*length*/) override {
        return reinterpret_cast<std::byte*>(address);
    }
};

}  // namespace simverbs
