// Registered memory and the one place where a key is turned into bytes that may be touched.
#pragma once

#include <array>
#include <cstdint>

#include "simverbs/hca/number_table.hpp"
#include "simverbs/model/access.hpp"
#include "simverbs/model/personality.hpp"
#include "simverbs/transport/memory_effects.hpp"

namespace simverbs {

struct MemoryWindow;

struct ProtectionDomain {
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    std::uint32_t uses = 0;  // regions, windows and queue pairs in it
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

// The memory behind a key: bytes, and what may be done with them.
struct KeyedMemory {
    ProtectionDomain* pd = nullptr;
    std::uint32_t handle = 0;  // the number in its keys
    std::uint32_t lkey = 0;    // 0: none
    std::uint32_t rkey = 0;    // 0: none
    std::uint32_t qpn = 0;     // of the only queue pair that may use it; 0: any in the PD
    MemoryKind kind = MemoryKind::kProcess;
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::uint64_t iova = 0;  // how work requests name the first of the bytes
    AccessRights access;
    bool is_window = false;
};

struct DeviceMemory;

struct MemoryRegion : KeyedMemory {
    AddressSpace* space = nullptr;
    DeviceMemory* device_memory = nullptr;  // that it is a part of
    std::uint32_t windows = 0;              // bound to it
};

// A key is the number of its region or window and a byte that tells a local key from a remote one,
// and one life of the number from the next (IBA 10.6.3.3: keys are opaque to the consumer). Of a
// window's key that byte is the consumer's to choose.
class KeyTable {
  public:
    static constexpr std::uint32_t kTagBits = 8;

    // `first`: the low 16 bits of the first number of a context. `seed`: of keys in a random order.
    KeyTable(std::uint32_t first, std::optional<std::uint64_t> seed)
        : entries_(first, seed), seed_(seed) {}

    // False when the context has no number left.
    bool insert(std::uint32_t context, MemoryRegion& region, KeyStyle style);
    bool insert(std::uint32_t context, MemoryWindow& window);
    // Keys that were given out before open nothing from now on.
    void renew(MemoryRegion& region, KeyStyle style);
    // The memory behind a grant may have changed under keys that stay.
    void changed() { ++generation_; }
    void erase(const MemoryRegion& region);
    void erase(MemoryWindow& window);

    [[nodiscard]] Grant open_local(const ProtectionDomain& pd, const Segment& segment,
                                   AccessRights needed) const;
    [[nodiscard]] Grant open_remote(const ProtectionDomain& pd, std::uint32_t qpn,
                                    std::uint32_t rkey, std::uint64_t address, std::uint64_t length,
                                    AccessRights needed) const;

    [[nodiscard]] KeyVerdict check_remote(const ProtectionDomain& pd, std::uint32_t qpn,
                                          std::uint32_t rkey, AccessRights needed) const;

    // nullptr when the key opens nothing.
    [[nodiscard]] MemoryRegion* find_region(std::uint32_t lkey) const;

    // Binds a window for a queue pair of this PD (memory_window.cpp); false when it is refused and
    // nothing has changed.
    bool bind(const ProtectionDomain& pd, std::uint32_t qpn, const WindowBinding& binding,
              const Personality& personality);
    InvalidateVerdict invalidate(const ProtectionDomain& pd, std::uint32_t qpn, std::uint32_t rkey);
    static void unbind(MemoryWindow& window);

    // Changes whenever a grant to a local key may have ended.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }

  private:
    void give_keys(MemoryRegion& region, KeyStyle style);
    [[nodiscard]] static Grant open(const KeyedMemory& memory, const ProtectionDomain& pd,
                                    std::uint64_t address, std::uint64_t length,
                                    AccessRights needed);
    // nullptr when the key opens nothing.
    [[nodiscard]] KeyedMemory* find_local(std::uint32_t lkey) const;
    [[nodiscard]] MemoryWindow* find_window(std::uint32_t handle) const;
    std::uint8_t next_tag(std::uint32_t context);

    NumberTable<KeyedMemory> entries_;
    std::optional<std::uint64_t> seed_;
    std::uint64_t generation_ = 1;
    std::vector<std::uint32_t> tags_;  // drawn; each context's own, like its numbers
};

}  // namespace simverbs
