// The memory of rings in a served world: segments that the server makes. Each is mapped once, for
// all rings in it.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include <sys/types.h>

namespace simverbs::driver {

// Any thread may call it.
class RingSegments {
  public:
    // The ring at `offset` of the segment that `descriptor` is of; closes the descriptor. nullptr:
    // errno says why.
    [[nodiscard]] std::byte* map(int descriptor, std::size_t offset);
    // The last ring of a segment unmaps it.
    void unmap(const std::byte* ring);

  private:
    struct Segment {
        ino_t file;  // of a file that exists as long as it is mapped
        std::byte* base;
        std::size_t bytes;
        std::size_t rings;  // that are in use
    };
    // nullptr: errno says why.
    [[nodiscard]] Segment* segment_of(int descriptor);

    std::mutex mutex_;
    std::vector<Segment> segments_;
};

}  // namespace simverbs::driver
