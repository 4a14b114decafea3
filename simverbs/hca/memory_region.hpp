// Registered memory and the one place where a key is turned into bytes that may be touched.
#pragma once

#include <array>
#include <cstdint>

#include "simverbs/hca/number_table.hpp"
#include "simverbs/model/access.hpp"
#include "simverbs/transport/effects.hpp"

namespace simverbs {

struct ProtectionDomain {
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    std::uint32_t uses = 0;  // regions and queue pairs in it
};

// Every right that has a name (model/access.hpp).
inline constexpr AccessRights kKnownAccess = [] {
    AccessRights all;
    for (const AccessName& row : kAccessNames) {
        all = all | row.access;
    }
    return all;
}();
// Rights that a device may ignore (IBV_ACCESS_OPTIONAL_RANGE).
inline constexpr AccessRights kOptionalAccess = AccessRights::from_bits(0x3FF0'0000);

struct MemoryRegion {
    ProtectionDomain* pd = nullptr;
    AddressSpace* space = nullptr;
    std::uint32_t handle = 0;
    std::uint32_t lkey = 0;
    std::uint32_t rkey = 0;
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::uint64_t iova = 0;
    AccessRights access;
};

// A key is the number of its region and a byte that tells a local key from a remote one, and one
// life of the number from the next (IBA 10.6.3.3: keys are opaque to the consumer).
class KeyTable {
  public:
    static constexpr std::uint32_t kTagBits = 8;

    // False when the block of numbers is full.
    bool insert(std::uint32_t block, MemoryRegion& region, bool same_key);
    void erase(const MemoryRegion& region);
    [[nodiscard]] MemoryRegion* find_handle(std::uint32_t handle) const {
        return regions_.find(handle);
    }

    [[nodiscard]] Grant open_local(const ProtectionDomain& pd, const Segment& segment,
                                   AccessRights needed) const;
    [[nodiscard]] Grant open_remote(const ProtectionDomain& pd, std::uint32_t rkey,
                                    std::uint64_t address, std::uint64_t length,
                                    AccessRights needed) const;

    // Changes whenever a grant may have ended.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }

  private:
    [[nodiscard]] static Grant open(const MemoryRegion& region, const ProtectionDomain& pd,
                                    std::uint64_t address, std::uint64_t length,
                                    AccessRights needed);

    NumberTable<MemoryRegion> regions_;
    std::uint64_t generation_ = 1;
    std::array<std::uint8_t, kNumberBlocks> tags_{};  // a block's own, like its numbers
};

}  // namespace simverbs
