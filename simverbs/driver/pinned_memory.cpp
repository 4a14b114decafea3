#include "simverbs/driver/pinned_memory.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <system_error>

#include <sys/resource.h>

namespace simverbs::driver {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

std::uint64_t pages_of(std::uint64_t address, std::uint64_t length) {
    return length == 0 ? 0 : (address % kPageBytes + length - 1) / kPageBytes + 1;
}

// As Linux counts (ib_umem_get), of root's processes too: those of a test often are.
std::uint64_t resource_limit() {
    rlimit limit{};
    const bool is_limited =
        getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return is_limited ? limit.rlim_cur / kPageBytes : std::numeric_limits<std::uint64_t>::max();
}

// In pages; a limit that is no number allows nothing.
std::uint64_t limit() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody in this library changes the environment
    const char* text = std::getenv("SIMVERBS_MEMLOCK");
    if (text == nullptr) {
        return std::numeric_limits<std::uint64_t>::max();
    }
    if (std::strcmp(text, "rlimit") == 0) {
        return resource_limit();
    }
    std::uint64_t bytes = 0;
    const char* end = text + std::strlen(text);
    const auto [stopped, failure] = std::from_chars(text, end, bytes);
    if (failure != std::errc() || stopped != end) {
        std::fprintf(stderr,
                     "simverbs: SIMVERBS_MEMLOCK='%s' is neither a number of bytes nor 'rlimit'\n",
                     text);
        return 0;
    }
    return bytes / kPageBytes;
}

}  // namespace

bool PinnedMemory::pin(std::uint64_t address, std::uint64_t length) {
    const std::uint64_t pages = pages_of(address, length);
    if (pages_.fetch_add(pages) + pages > limit()) {
        pages_ -= pages;
        return false;
    }
    return true;
}

void PinnedMemory::unpin(std::uint64_t address, std::uint64_t length) {
    pages_ -= pages_of(address, length);
}

}  // namespace simverbs::driver
