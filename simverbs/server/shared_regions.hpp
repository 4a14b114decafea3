// Registered memory of a client that is mapped here, too, so that no system call copies it.
//
// The server makes the memory, and takes over what the client's pages hold; the client maps it in
// their place. What is shared is what the program sees as long as it maps nothing else there. A NIC
// would go on with the former pages; so does this, until that memory is registered again.
//
// To share a region takes as long as several copies of it, so it is not done for programs that
// register memory for one message each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "simverbs/protocol/served_protocol.hpp"
#include "simverbs/server/shared_segment.hpp"
#include "simverbs/server/unmap_watch.hpp"
#include "simverbs/wire/payload.hpp"

namespace simverbs {

using RegionName = std::pair<std::uint32_t, std::uint32_t>;  // context, handle

// Returns true if `range` is whole pages of [address, address + length), one or more.
bool lies_in(const PageRange& range, std::uint64_t address, std::uint64_t length);

class SharedRegions {
  public:
    // Copies what `memory` holds of `pages`, a part of region `name`, of which nothing is shared.
    // From here on find() finds them. Returns a descriptor of the memory, the caller's to close;
    // -1: it is not shared.
    int share(RegionName name, const PageRange& pages, AddressSpace& memory);
    // Forgets what is shared of a region; of all regions of a context; of all regions that have a
    // byte of [address, address + length).
    void drop(RegionName name);
    void drop_all_of(std::uint32_t context);
    void drop(std::uint64_t address, std::uint64_t length);

    static constexpr std::uint64_t kNotSeen = 0;
    struct Region {
        PageRange pages;
        RegionName name;
        std::unique_ptr<SharedSegment> segment;
        std::uint64_t seen = kNotSeen;  // the caller's: when its program had it mapped
        std::uint64_t moved = 0;        // the caller's: bytes that were copied from it or to it
        bool is_watched = false;        // since watch()
    };
    // Returns the one that has all of [address, address + length), or nullptr. Valid until share()
    // or drop().
    [[nodiscard]] Region* find(std::uint64_t address, std::uint64_t length);

    // Takes what the client hands over to tell of unmapped memory.
    [[nodiscard]] UnmapWatch& unmaps() { return unmaps_; }
    // Has it report if a part of the region is unmapped from here on; where that is possible.
    void watch(Region& region) { region.is_watched = unmaps_.add(region.pages); }
    void stop_watching(Region& region);
    // Returns true if the program has unmapped nothing of it since watch().
    [[nodiscard]] bool is_as_watched(const Region& region) const {
        return region.is_watched && unmaps_.descriptor() >= 0;
    }

  private:
    // Limits for one client at a time. The kernel allows a process 65530 mappings.
    static constexpr std::size_t kMostRegions = 256;
    static constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20U;
    // A region has paid once kPaysAfter times its length have moved. After kMostUnpaid regions in
    // turn that ended before that, one of kTryOneOf is shared, until one has paid.
    static constexpr std::uint64_t kPaysAfter = 8;
    static constexpr std::uint32_t kMostUnpaid = 32;
    static constexpr std::uint32_t kTryOneOf = 32;

    [[nodiscard]] bool may_pay();
    template <class Wanted>
    void drop_if(Wanted&& is_wanted);

    UnmapWatch unmaps_;
    std::vector<Region> regions_;  // by address; none overlaps another
    std::uint64_t bytes_ = 0;
    std::uint32_t unpaid_ = 0;  // regions in turn
    std::uint32_t not_shared_ = 0;
};

}  // namespace simverbs
