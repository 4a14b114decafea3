#include "simverbs/server/ring_pool.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fcntl.h>

namespace simverbs {
namespace {

// Two cache lines, which processors fetch together.
constexpr std::size_t kAlignment = 128;
// The kernel provides the pages of a segment when they are used.
constexpr std::size_t kLastSegment = std::size_t{16} << 20;
// A ring of more than this has a segment of its own, which ends with it, and whose only descriptor
// goes to the client: of a server's 1024, a program with large queues would take one for each.
constexpr std::size_t kLargestInCompany = std::size_t{256} << 10;

}  // namespace

RingPool::Ring RingPool::make(std::size_t bytes, std::size_t zeroed) {
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    Segment& segment = segment_for(rounded);
    const int descriptor = rounded > kLargestInCompany
                               ? segment.memory.take_descriptor()
                               : fcntl(segment.memory.descriptor(), F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) {
        throw std::system_error(errno, std::generic_category(), "a descriptor of shared memory");
    }
    std::byte* const base = segment.memory.base() + take(segment, rounded, zeroed);
    rings_.emplace(base, Place{&segment, rounded});
    ++segment.rings;
    return {base, descriptor};
}

RingPool::Segment& RingPool::segment_for(std::size_t bytes) {
    if (bytes > kLargestInCompany) {
        return add_segment(bytes);
    }
    for (const auto& segment : segments_) {
        if (segment->released.contains(bytes)) {
            return *segment;
        }
    }
    if (current_ == nullptr || current_->next + bytes > current_->memory.bytes()) {
        current_ = &add_segment(next_segment_);
        next_segment_ = std::min(next_segment_ * 2, kLastSegment);
    }
    return *current_;
}

RingPool::Segment& RingPool::add_segment(std::size_t bytes) {
    return *segments_.emplace_back(std::make_unique<Segment>(bytes));
}

// Returns the offset of so many bytes, of which the first `zeroed` are zero.
std::size_t RingPool::take(Segment& segment, std::size_t bytes, std::size_t zeroed) {
    std::size_t offset = segment.next;
    if (const auto same = segment.released.find(bytes); same != segment.released.end()) {
        offset = same->second.back();
        same->second.pop_back();
        if (same->second.empty()) {
            segment.released.erase(same);
        }
    } else {
        segment.next += bytes;
    }
    if (offset < segment.written) {
        std::memset(segment.memory.base() + offset, 0, zeroed);
    }
    segment.written = std::max(segment.written, segment.next);
    return offset;
}

std::size_t RingPool::offset_of(const std::byte* base) const {
    return static_cast<std::size_t>(base - rings_.at(base).segment->memory.base());
}

void RingPool::release(const std::byte* base) {
    const auto found = rings_.find(base);
    const auto [segment, bytes] = found->second;
    rings_.erase(found);
    if (--segment->rings > 0) {
        segment->released[bytes].push_back(static_cast<std::size_t>(base - segment->memory.base()));
    } else if (segment == current_) {
        segment->released.clear();
        segment->next = 0;
    } else {
        std::erase_if(segments_,
                      [segment = segment](const auto& each) { return each.get() == segment; });
    }
}

}  // namespace simverbs
