// Memory of the rings of one client. Many rings lie in one segment, since a process may have some
// 65,000 mappings (vm.max_map_count), and a world more queue pairs.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "simverbs/server/shared_segment.hpp"

namespace simverbs {

class RingPool {
  public:
    struct Ring {
        std::byte* base = nullptr;
        int descriptor = -1;  // of its segment: a new one, the caller's to close
    };

    // The first `zeroed` bytes are zero; the others may be what rings left that were released.
    // Throws std::system_error or std::bad_alloc when there is no memory or no descriptor left.
    [[nodiscard]] Ring make(std::size_t bytes, std::size_t zeroed);
    // `base` is that of a ring which has not been released.
    void release(const std::byte* base);
    // In its segment.
    [[nodiscard]] std::size_t offset_of(const std::byte* base) const;
    [[nodiscard]] std::size_t segments() const { return segments_.size(); }

  private:
    struct Segment {
        explicit Segment(std::size_t bytes) : memory(bytes) {}
        SharedSegment memory;
        std::size_t next = 0;                                      // behind it nothing is in use
        std::size_t written = 0;                                   // behind it nothing ever was
        std::size_t rings = 0;                                     // in use
        std::map<std::size_t, std::vector<std::size_t>> released;  // their offsets, by their size
    };
    struct Place {
        Segment* segment;
        std::size_t bytes;
    };
    static constexpr std::size_t kFirstSegment = std::size_t{1} << 20;

    [[nodiscard]] Segment& segment_for(std::size_t bytes);
    [[nodiscard]] Segment& add_segment(std::size_t bytes);
    [[nodiscard]] static std::size_t take(Segment& segment, std::size_t bytes, std::size_t zeroed);

    std::vector<std::unique_ptr<Segment>> segments_;
    Segment* current_ = nullptr;  // where rings of a new size are taken from
    std::size_t next_segment_ = kFirstSegment;
    std::unordered_map<const std::byte*, Place> rings_;  // asked by address alone
};

}  // namespace simverbs
