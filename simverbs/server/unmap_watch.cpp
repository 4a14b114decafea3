#include "simverbs/server/unmap_watch.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace simverbs {
namespace {

bool is_userfaultfd(int descriptor) {
    constexpr std::string_view kWanted = "anon_inode:[userfaultfd]";
    std::array<char, 64> name{};
    const std::string link = fmt::format("/proc/self/fd/{}", descriptor);
    const ssize_t length = readlink(link.c_str(), name.data(), name.size());
    return length > 0 && std::string_view(name.data(), static_cast<std::size_t>(length)) == kWanted;
}

}  // namespace

void UnmapWatch::begin(int descriptor) {
    if (has_begun_ || !is_userfaultfd(descriptor)) {
        close(descriptor);
        return;
    }
    has_begun_ = true;
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
