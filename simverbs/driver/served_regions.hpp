// Registered memory of this process that the server of its world maps, too.
//
// Only a process of one thread shares any: while private pages become shared ones, no other thread
// may write to them. Pages become private again when their region ends. A forked child gets private
// copies.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "simverbs/protocol/served_protocol.hpp"

namespace simverbs::driver {

class ServedRegions {
  public:
    // Returns which pages of [address, address + length) may become shared, none where not all of
    // them may: where they are ordinary memory that nobody shares, and the caller is the only
    // thread but for `own_threads` of the library, which use no memory of the program.
    PageRange shareable(std::uint64_t address, std::uint64_t length, unsigned own_threads);
    // Maps the memory of `descriptor`, which holds what they hold, in the place of `pages`, and
    // closes it. False: they are as before.
    bool map(std::uint32_t context, std::uint32_t handle, const PageRange& pages, int descriptor);
    // A userfaultfd(2) that reports what this process unmaps of ranges that are added to it, once:
    // the caller's to send to the server and to close at once, since whoever unmaps waits until the
    // last descriptor is closed. -1: there is none, or not any more.
    int take_unmap_watch();
    // Those of a region are private again, as far as they are still mapped there; of all regions of
    // a context. In a process of several threads they stay as they are.
    void take_back(std::uint32_t context, std::uint32_t handle, unsigned own_threads);
    void take_back_all_of(std::uint32_t context, unsigned own_threads);

  private:
    [[nodiscard]] bool splits_another(const PageRange& pages) const;

    // By context and handle. A region that is shared anew with another one is no longer here.
    std::map<std::pair<std::uint32_t, std::uint32_t>, PageRange> pages_;
    std::uint64_t bytes_mapped_ = 0;  // ever
    bool watch_was_taken_ = false;
};

}  // namespace simverbs::driver
