#include "simverbs/hca/memory_region.hpp"

namespace simverbs {

// Tags of one region differ in their lowest bit: even is local, odd is remote.
bool KeyTable::insert(std::uint32_t block, MemoryRegion& region, bool same_key) {
    const auto number = regions_.reserve(block);
    if (!number) {
        return false;
    }
    regions_.assign(*number, region);
    std::uint8_t& tag = tags_[block];
    tag = static_cast<std::uint8_t>(tag + 2);
    region.handle = *number;
    region.lkey = *number << kTagBits | tag;
    region.rkey = same_key ? region.lkey : region.lkey | 1U;
    return true;
}

void KeyTable::erase(const MemoryRegion& region) {
    regions_.erase(region.handle);
    ++generation_;
}

Grant KeyTable::open_local(const ProtectionDomain& pd, const Segment& segment,
                           AccessRights needed) const {
    const MemoryRegion* region = regions_.find(segment.lkey >> kTagBits);
    if (region == nullptr || region->lkey != segment.lkey) {
        return {};
    }
    return open(*region, pd, segment.address, segment.length, needed);
}

Grant KeyTable::open_remote(const ProtectionDomain& pd, std::uint32_t rkey, std::uint64_t address,
                            std::uint64_t length, AccessRights needed) const {
    const MemoryRegion* region = regions_.find(rkey >> kTagBits);
    if (region == nullptr || region->rkey != rkey) {
        return {};
    }
    return open(*region, pd, address, length, needed);
}

Grant KeyTable::open(const MemoryRegion& region, const ProtectionDomain& pd, std::uint64_t address,
                     std::uint64_t length, AccessRights needed) {
    if (region.pd != &pd) {
        return {KeyVerdict::kOtherProtectionDomain, {}};
    }
    const std::uint64_t offset = address - region.iova;
    if (address < region.iova || offset > region.length || length > region.length - offset) {
        return {KeyVerdict::kOutOfRange, {}};
    }
    if (!region.access.contains(needed)) {
        return {KeyVerdict::kRightMissing, {}};
    }
    return {KeyVerdict::kGranted, {region.address + offset, static_cast<std::uint32_t>(length)}};
}

}  // namespace simverbs
