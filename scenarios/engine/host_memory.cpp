#include "scenarios/engine/host_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace scenarios {
namespace {

constexpr std::size_t kShared = std::size_t{4} << 20;

// Up to here pages are zeroed, and stay: to have the kernel take them and give others takes longer.
constexpr std::ptrdiff_t kMostZeroed = 64;

std::size_t page_bytes() {
    static const auto kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return kPage;
}

// Zeroes the pages that have been touched, if they are few and the kernel tells which.
bool zero(std::span<std::uint8_t> pages) {
    const std::size_t page = page_bytes();
    std::vector<std::uint64_t> states(pages.size() / page);
    const auto bytes = static_cast<ssize_t>(states.size() * sizeof states[0]);
    const auto place = reinterpret_cast<std::uintptr_t>(pages.data()) / page * sizeof states[0];
    const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const bool known = file >= 0 && pread(file, states.data(), states.size() * sizeof states[0],
                                          static_cast<off_t>(place)) == bytes;
    if (file >= 0) {
        close(file);
    }
    // Bits 63 and 62: in memory, swapped out.
    const auto is_touched = [](std::uint64_t state) { return state >> 62U != 0; };
    if (!known || std::ranges::count_if(states, is_touched) > kMostZeroed) {
        return false;
    }
    for (std::size_t i = 0; i < states.size(); ++i) {
        if (is_touched(states[i])) {
            std::ranges::fill(pages.subspan(i * page, page), std::uint8_t{0});
        }
    }
    return true;
}

// A mapping of kShared bytes, all zero, which no world uses.
class SpareMapping {
  public:
    SpareMapping() = default;
    ~SpareMapping() {
        if (!mapping_.empty()) {
            munmap(mapping_.data(), mapping_.size());
        }
    }
    SpareMapping(const SpareMapping&) = delete;
    SpareMapping& operator=(const SpareMapping&) = delete;

    // Empty: there is none.
    std::span<std::uint8_t> take() { return std::exchange(mapping_, {}); }
    // Keeps a mapping, whose first `used` bytes may have been written to. False: it did not.
    bool keep(std::span<std::uint8_t> mapping, std::size_t used) {
        if (!mapping_.empty() || mapping.size() != kShared) {
            return false;
        }
        if (!zero(mapping.first(used)) && madvise(mapping.data(), used, MADV_DONTNEED) != 0) {
            return false;
        }
        mapping_ = mapping;
        return true;
    }

  private:
    std::span<std::uint8_t> mapping_;
};

thread_local SpareMapping t_spare;

// Empty with errno: there is no memory left.
std::span<std::uint8_t> map(std::size_t bytes) {
    void* const pages =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? std::span<std::uint8_t>()
                               : std::span(static_cast<std::uint8_t*>(pages), bytes);
}

}  // namespace

HostMemory::~HostMemory() {
    for (const auto& mapping : mappings_) {
        const bool is_last_shared = rest_.data() + rest_.size() == mapping.data() + mapping.size();
        const std::size_t used = mapping.size() - (is_last_shared ? rest_.size() : 0);
        if (!t_spare.keep(mapping, used)) {
            munmap(mapping.data(), mapping.size());
        }
    }
}

std::uint8_t* HostMemory::take(std::size_t bytes) {
    const std::size_t page = page_bytes();
    const std::size_t whole = (bytes + page - 1) / page * page;
    if (whole <= rest_.size()) {
        std::uint8_t* const taken = rest_.data();
        rest_ = rest_.subspan(whole);
        return taken;
    }
    const bool shares = whole < kShared;
    std::span<std::uint8_t> mapping = shares ? t_spare.take() : std::span<std::uint8_t>();
    if (mapping.empty()) {
        mapping = map(shares ? kShared : bytes);
    }
    if (mapping.empty()) {
        return nullptr;
    }
    mappings_.push_back(mapping);
    if (shares) {
        rest_ = mapping.subspan(whole);
    }
    return mapping.data();
}

}  // namespace scenarios
