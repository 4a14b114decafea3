#include "simverbs/driver/pinned_memory.hpp"

#include <cstdio>
#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <sys/resource.h>

#include "simverbs/model/settings.hpp"
#include "simverbs/world/environment.hpp"
#include "simverbs/world/world_options.hpp"

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
    const SettingRow& row = row_of(Setting::kMemlock);
    const std::string_view text = environment_value(Setting::kMemlock);
    if (text.empty()) {
        return std::numeric_limits<std::uint64_t>::max();
    }
    if (text == "rlimit") {
        return resource_limit();
    }
    const auto bytes = number_of(row, text);
    if (!bytes) {
        fmt::print(stderr, "simverbs: {}={}\n", row.variable, describe_wrong_value(row, text));
        return 0;
    }
    return *bytes / kPageBytes;
}

}  // namespace

bool PinnedMemory::pin(std::uint64_t pages) {
    if (pages_.fetch_add(pages) + pages > limit()) {
        pages_ -= pages;
        return false;
    }
    return true;
}

void PinnedMemory::unpin(std::uint64_t pages) {
    pages_ -= pages;
}

bool PinnedByContext::pin(std::uint64_t address, std::uint64_t length) {
    const std::uint64_t pages = pages_of(address, length);
    if (!process_.pin(pages)) {
        return false;
    }
    pages_ += pages;
    return true;
}

void PinnedByContext::unpin(std::uint64_t address, std::uint64_t length) {
    const std::uint64_t pages = pages_of(address, length);
    pages_ -= pages;
    process_.unpin(pages);
}

}  // namespace simverbs::driver
