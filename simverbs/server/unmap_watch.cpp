#include "simverbs/server/unmap_watch.hpp"

#include <utility>

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace simverbs {

void UnmapWatch::begin(int descriptor) {
    if (std::exchange(has_begun_, true)) {
        close(descriptor);
        return;
    }
    descriptor_ = descriptor;
}

void UnmapWatch::end() {
    if (descriptor_ >= 0) {
        close(std::exchange(descriptor_, -1));
    }
}

// For the watch of pages that are written to, which no page asks for.
bool UnmapWatch::add(const PageRange& pages) {
    uffdio_register asked{};
    asked.range = {pages.begin, pages.end - pages.begin};
    asked.mode = UFFDIO_REGISTER_MODE_WP;
    return descriptor_ >= 0 && ioctl(descriptor_, UFFDIO_REGISTER, &asked) == 0;
}

void UnmapWatch::remove(const PageRange& pages) {
    uffdio_range range{pages.begin, pages.end - pages.begin};
    if (descriptor_ >= 0) {
        ioctl(descriptor_, UFFDIO_UNREGISTER, &range);
    }
}

}  // namespace simverbs
