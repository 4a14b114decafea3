#include "simverbs/driver/ring_segments.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace simverbs::driver {

std::byte* RingSegments::map(int descriptor, std::size_t offset) {
    const std::lock_guard lock(mutex_);
    Segment* const segment = segment_of(descriptor);
    const int error = errno;
    close(descriptor);
    errno = error;
    if (segment == nullptr) {
        return nullptr;
    }
    ++segment->rings;
    return segment->base + offset;
}

RingSegments::Segment* RingSegments::segment_of(int descriptor) {
    struct stat file {};
    if (fstat(descriptor, &file) != 0) {
        return nullptr;
    }
    const auto found = std::ranges::find(segments_, file.st_ino, &Segment::file);
    if (found != segments_.end()) {
        return &*found;
    }
    const auto bytes = static_cast<std::size_t>(file.st_size);
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) {
        return nullptr;
    }
    return &segments_.emplace_back(Segment{file.st_ino, static_cast<std::byte*>(memory), bytes, 0});
}

void RingSegments::unmap(const std::byte* ring) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(segments_, [ring](const Segment& segment) {
        const std::less<> before;
        return !before(ring, segment.base) && before(ring, segment.base + segment.bytes);
    });
    if (found != segments_.end() && --found->rings == 0) {
        munmap(found->base, found->bytes);
        segments_.erase(found);
    }
}

}  // namespace simverbs::driver
