#include "simverbs/server/shared_regions.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <new>
#include <system_error>

#include "simverbs/hca/guarded_copy.hpp"

namespace simverbs {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

std::uint64_t end_of(std::uint64_t address, std::uint64_t length) {
    return address + std::min(length, std::numeric_limits<std::uint64_t>::max() - address);
}

}  // namespace

bool lies_in(const PageRange& range, std::uint64_t address, std::uint64_t length) {
    return range.begin % kPageBytes == 0 && range.end % kPageBytes == 0 && range.begin >= address &&
           range.begin < range.end && range.end <= end_of(address, length);
}

int SharedRegions::share(RegionName name, const PageRange& pages, AddressSpace& memory) {
    const std::uint64_t bytes = pages.end - pages.begin;
    if (regions_.size() >= kMostRegions || bytes > kMostSharedBytes ||
        bytes > kMostBytes - bytes_ || !may_pay()) {
        return -1;
    }
    try {
        auto segment = std::make_unique<SharedSegment>(bytes, kRegionMemoryName,
                                                       SharedSegment::Pages::kAtOnce);
        if (!memory.read(pages.begin, segment->base(), bytes)) {
            return -1;
        }
        GuardedCopy::install();
        const auto after = std::find_if(
            regions_.begin(), regions_.end(),
            [&pages](const Region& region) { return region.pages.begin > pages.begin; });
        const auto region = regions_.insert(after, Region{pages, name, std::move(segment)});
        bytes_ += bytes;
        return region->segment->take_descriptor();
    } catch (const std::system_error&) {
        return -1;
    } catch (const std::bad_alloc&) {
        return -1;
    }
}

bool SharedRegions::may_pay() {
    return unpaid_ < kMostUnpaid || ++not_shared_ % kTryOneOf == 0;
}

template <class Wanted>
void SharedRegions::drop_if(Wanted&& is_wanted) {
    std::erase_if(regions_, [&](Region& region) {
        const bool drops = is_wanted(region);
        if (drops) {
            const std::uint64_t bytes = region.pages.end - region.pages.begin;
            bytes_ -= bytes;
            unpaid_ = region.moved < kPaysAfter * bytes ? unpaid_ + 1 : 0;
            stop_watching(region);
        }
        return drops;
    });
}

void SharedRegions::drop(RegionName name) {
    drop_if([name](const Region& region) { return region.name == name; });
}

void SharedRegions::drop_all_of(std::uint32_t context) {
    drop_if([context](const Region& region) { return region.name.first == context; });
}

void SharedRegions::drop(std::uint64_t address, std::uint64_t length) {
    const std::uint64_t end = end_of(address, length);
    drop_if([address, end](const Region& region) {
        return region.pages.begin < end && address < region.pages.end;
    });
}

void SharedRegions::stop_watching(Region& region) {
    if (region.is_watched) {
        region.is_watched = false;
        unmaps_.remove(region.pages);
    }
}

SharedRegions::Region* SharedRegions::find(std::uint64_t address, std::uint64_t length) {
    const auto after = std::upper_bound(
        regions_.begin(), regions_.end(), address,
        [](std::uint64_t at, const Region& region) { return at < region.pages.begin; });
    if (after == regions_.begin()) {
        return nullptr;
    }
    Region& region = *std::prev(after);
    return address < region.pages.end && length <= region.pages.end - address ? &region : nullptr;
}

}  // namespace simverbs
