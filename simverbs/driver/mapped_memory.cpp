#include "simverbs/driver/mapped_memory.hpp"

#include <cerrno>
#include <optional>

#include <sys/mman.h>

#include "simverbs/driver/process_maps.hpp"

namespace simverbs::driver {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
// Ranges up to this are faulted in, as pinning does; longer ones are only looked up, since a
// simulated device needs no page of a large and sparse region.
constexpr std::uint64_t kMostFaultedIn = 16 * kPageBytes;

// Linux 5.14 has these two, the headers of the distribution may not.
constexpr int kPopulateRead = 22;   // MADV_POPULATE_READ
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE

bool can_populate() {
    static const bool kAnswer = [] {
        alignas(kPageBytes) static char page[kPageBytes];
        // An emulator may ignore advice that it does not know; nothing is mapped at 0.
        return madvise(page, sizeof page, kPopulateRead) == 0 &&
               madvise(nullptr, kPageBytes, kPopulateRead) != 0;
    }();
    return kAnswer;
}

// Faults the pages in with the rights that the device will need. Nothing where the kernel cannot
// say: it has no such call, or was interrupted.
std::optional<bool> populate(std::uint64_t address, std::uint64_t length, bool writable) {
    if (!can_populate()) {
        return std::nullopt;
    }
    const std::uint64_t first = address & ~(kPageBytes - 1);
    const int result = madvise(reinterpret_cast<void*>(first), address + length - first,
                               writable ? kPopulateWrite : kPopulateRead);
    switch (result == 0 ? 0 : errno) {
        case 0:
            return true;
        case ENOMEM:  // a hole
        case EFAULT:  // a file that ends before
        case EINVAL:  // rights, or memory that cannot be pinned either
            return false;
        default:
            return std::nullopt;
    }
}

// Each mapping of the range begins where the one before ends, and has the rights.
bool covers(ProcessMaps& maps, std::uint64_t address, std::uint64_t length, bool writable) {
    const std::uint64_t end = address + length;
    std::uint64_t reached = address;
    while (reached < end) {
        const std::optional<Mapping> mapping = maps.at_or_after(reached);
        if (!mapping || mapping->from > reached || !mapping->readable ||
            (writable && !mapping->writable)) {
            return false;
        }
        reached = mapping->to;
    }
    return true;
}

bool has_mapping(std::uint64_t address, std::uint64_t length, bool writable) {
    if (length <= kMostFaultedIn) {
        if (const auto answer = populate(address, length, writable)) {
            return *answer;
        }
    }
    ProcessMaps maps;
    return !maps.is_open() || covers(maps, address, length, writable);
}

}  // namespace

bool is_mapped(std::uint64_t address, std::uint64_t length, bool writable) {
    const int saved = errno;
    const bool answer = has_mapping(address, length, writable);
    errno = saved;
    return answer;
}

}  // namespace simverbs::driver
