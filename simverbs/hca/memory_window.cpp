// Windows in the key table (IBA 10.6.7).
#include "simverbs/hca/memory_window.hpp"

#include <algorithm>

#include "simverbs/model/personality.hpp"

namespace simverbs {
namespace {

constexpr std::uint32_t kKeyByte = 0xFF;
// libmlx5 passes LOCAL_WRITE on (set_umr_mkey_seg), and programs set it. A window has no local key,
// so the right opens nothing.
constexpr AccessRights kWindowRights =
    kRemoteRights | kFlushRights | Access::kZeroBased | Access::kLocalWrite;

// Returns true if a window may give these rights to memory that has those (IBA 10.6.7.2.1).
bool may_grant(AccessRights window, const MemoryRegion& region) {
    const bool writes = window.intersects(kRightsThatNeedLocalWrite);
    return kWindowRights.contains(window) && region.access.contains(Access::kMwBind) &&
           !region.access.contains(Access::kZeroBased) &&
           (!writes || region.access.contains(Access::kLocalWrite));
}

// The part of a region that a binding names; `length` 0 when there is none.
struct Part {
    std::uint64_t first = 0;  // as the region's keys name it
    std::uint64_t length = 0;
};

bool lies_within(const Part& part, const MemoryRegion& region) {
    const std::uint64_t into = part.first - region.iova;
    return part.first >= region.iova && into <= region.length &&
           part.length <= region.length - into;
}

// From the window's first byte, or the region's, to the region's end.
Part up_to_end(std::uint64_t first, const MemoryRegion& region) {
    return {first, region.length - (first - region.iova)};
}

// Returns the part of a binding that lies in its region, which nobody has compared.
Part overlap(const Part& part, const MemoryRegion& region) {
    const std::uint64_t first = std::max(part.first, region.iova);
    const std::uint64_t skipped = first - part.first;
    const std::uint64_t into = first - region.iova;
    if (skipped >= part.length || into >= region.length) {
        return {};
    }
    return {first, std::min(part.length - skipped, region.length - into)};
}

}  // namespace

bool KeyTable::insert(std::uint32_t context, MemoryWindow& window) {
    const auto number = entries_.reserve(context);
    if (!number) {
        return false;
    }
    entries_.assign(*number, window);
    window.handle = *number;
    window.key = *number << kTagBits | next_tag(context);
    return true;
}

void KeyTable::erase(MemoryWindow& window) {
    unbind(window);
    entries_.erase(window.handle);
}

void KeyTable::unbind(MemoryWindow& window) {
    if (window.region != nullptr) {
        --window.region->windows;
        window.region = nullptr;
    }
    window.rkey = 0;
    window.qpn = 0;
    window.length = 0;
}

MemoryWindow* KeyTable::find_window(std::uint32_t handle) const {
    KeyedMemory* entry = entries_.find(handle);
    return entry != nullptr && entry->is_window ? static_cast<MemoryWindow*>(entry) : nullptr;
}

bool KeyTable::bind(const ProtectionDomain& pd, std::uint32_t qpn, const WindowBinding& binding,
                    const Personality& personality) {
    MemoryWindow* window = find_window(binding.window);
    if (window == nullptr || window->pd != &pd) {
        return false;
    }
    const bool is_type1 = window->type == WindowType::kType1;
    const std::uint32_t key = (window->key & ~kKeyByte) | (binding.rkey & kKeyByte);
    if (binding.length == 0) {
        if (!is_type1) {
            return false;  // a type 2 window is invalidated instead (IBA o10-37.2.40)
        }
        unbind(*window);
        window->key = key;
        return true;
    }
    MemoryRegion* region = find_region(binding.lkey);
    const AccessRights access = AccessRights::from_bits(binding.access);
    if (region == nullptr || region->pd != &pd || !may_grant(access, *region) ||
        (is_type1 ? access.contains(Access::kZeroBased) : window->region != nullptr)) {
        return false;
    }
    const Part asked{binding.address, binding.length};
    if (personality.bind_checks_range && !lies_within(asked, *region)) {
        return false;
    }
    unbind(*window);
    const bool zero_based = access.contains(Access::kZeroBased);
    const Part part = personality.window_bounds_hold
                          ? overlap(asked, *region)
                          : up_to_end(zero_based ? asked.first : region->iova, *region);
    ++region->windows;
    window->region = region;
    window->key = window->rkey = key;
    window->qpn = is_type1 ? 0 : qpn;
    window->kind = region->kind;
    window->access = access;
    window->address = region->address + (part.first - region->iova);
    window->length = part.length;
    window->iova = zero_based ? part.first - asked.first : part.first;
    return true;
}

InvalidateVerdict KeyTable::invalidate(const ProtectionDomain& pd, std::uint32_t qpn,
                                       std::uint32_t rkey) {
    MemoryWindow* window = find_window(rkey >> kTagBits);
    if (window == nullptr || window->rkey != rkey || window->pd != &pd) {
        return InvalidateVerdict::kRefused;
    }
    if (window->type == WindowType::kType1) {
        return InvalidateVerdict::kType1;
    }
    if (window->qpn != qpn) {
        return InvalidateVerdict::kRefused;
    }
    unbind(*window);
    return InvalidateVerdict::kInvalidated;
}

}  // namespace simverbs
