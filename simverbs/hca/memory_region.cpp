#include "simverbs/hca/memory_region.hpp"

#include "fabric/core/hash.hpp"

namespace simverbs {

// Tags of one region differ in their lowest bit: even is local, odd is remote.
std::uint8_t KeyTable::next_tag(std::uint32_t context) {
    if (context >= tags_.size()) {
        tags_.resize(context + 1);
    }
    const std::uint32_t drawn = ++tags_[context];
    const std::uint64_t tag = seed_ ? fabric::mix_words(*seed_ + context, drawn) & ~std::uint64_t{1}
                                    : std::uint64_t{2} * drawn;
    return static_cast<std::uint8_t>(tag);
}

bool KeyTable::insert(std::uint32_t context, MemoryRegion& region, KeyStyle style) {
    const auto number = entries_.reserve(context);
    if (!number) {
        return false;
    }
    entries_.assign(*number, region);
    region.handle = *number;
    give_keys(region, style);
    return true;
}

void KeyTable::renew(MemoryRegion& region, KeyStyle style) {
    give_keys(region, style);
    changed();
}

void KeyTable::give_keys(MemoryRegion& region, KeyStyle style) {
    region.lkey = region.handle << kTagBits | next_tag(entries_.context_of(region.handle));
    region.rkey = style == KeyStyle::kDistinct ? region.lkey | 1U : region.lkey;
    if (style == KeyStyle::kSameWithRemoteRights && !region.access.intersects(kRemoteRights)) {
        region.rkey = 0;
    }
}

void KeyTable::erase(const MemoryRegion& region) {
    entries_.erase(region.handle);
    changed();
}

KeyedMemory* KeyTable::find_local(std::uint32_t lkey) const {
    KeyedMemory* memory = entries_.find(lkey >> kTagBits);
    return memory != nullptr && memory->lkey == lkey ? memory : nullptr;
}

// Only regions have one.
MemoryRegion* KeyTable::find_region(std::uint32_t lkey) const {
    return static_cast<MemoryRegion*>(find_local(lkey));
}

Grant KeyTable::open_local(const ProtectionDomain& pd, const Segment& segment,
                           AccessRights needed) const {
    const KeyedMemory* memory = find_local(segment.lkey);
    if (memory == nullptr) {
        return {};
    }
    return open(*memory, pd, segment.address, segment.length, needed);
}

Grant KeyTable::open_remote(const ProtectionDomain& pd, std::uint32_t qpn, std::uint32_t rkey,
                            std::uint64_t address, std::uint64_t length,
                            AccessRights needed) const {
    const KeyedMemory* memory = entries_.find(rkey >> kTagBits);
    if (memory == nullptr || memory->rkey != rkey) {
        return {};
    }
    if (memory->qpn != 0 && memory->qpn != qpn) {
        return {KeyVerdict::kOtherProtectionDomain, {}};
    }
    return open(*memory, pd, address, length, needed);
}

KeyVerdict KeyTable::check_remote(const ProtectionDomain& pd, std::uint32_t qpn, std::uint32_t rkey,
                                  AccessRights needed) const {
    const KeyedMemory* memory = entries_.find(rkey >> kTagBits);
    const std::uint64_t first = memory == nullptr ? 0 : memory->iova;
    return open_remote(pd, qpn, rkey, first, 0, needed).verdict;
}

Grant KeyTable::open(const KeyedMemory& memory, const ProtectionDomain& pd, std::uint64_t address,
                     std::uint64_t length, AccessRights needed) {
    if (memory.pd != &pd) {
        return {KeyVerdict::kOtherProtectionDomain, {}};
    }
    const std::uint64_t offset = address - memory.iova;
    if (address < memory.iova || offset > memory.length || length > memory.length - offset) {
        return {KeyVerdict::kOutOfRange, {}};
    }
    if (!memory.access.contains(needed)) {
        return {KeyVerdict::kRightMissing, {}};
    }
    return {KeyVerdict::kGranted,
            {memory.address + offset, static_cast<std::uint32_t>(length), memory.kind}};
}

}  // namespace simverbs
