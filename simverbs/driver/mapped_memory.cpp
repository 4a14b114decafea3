#include "simverbs/driver/mapped_memory.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

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

// One mapping, and what may be done with it.
struct Mapping {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    bool readable = false;
    bool writable = false;
};

// Asks next(address) for the mapping there, until the range is covered (true) or one does not
// continue it, or has not the rights (false).
template <class Next>
bool covers(std::uint64_t address, std::uint64_t length, bool writable, Next&& next) {
    const std::uint64_t end = address + length;
    std::uint64_t reached = address;
    while (reached < end) {
        const std::optional<Mapping> mapping = next(reached);
        if (!mapping || mapping->from > reached || !mapping->readable ||
            (writable && !mapping->writable)) {
            return false;
        }
        reached = mapping->to;
    }
    return true;
}

// struct procmap_query of Linux 6.11, by which the kernel looks one mapping up.
struct ProcmapQuery {
    std::uint64_t size = sizeof(ProcmapQuery);
    std::uint64_t flags = 0;
    std::uint64_t address = 0;
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t rights = 0;
    std::uint64_t page_size = 0;
    std::uint64_t offset = 0;
    std::uint64_t inode = 0;
    std::uint32_t device_major = 0;
    std::uint32_t device_minor = 0;
    std::uint32_t name_size = 0;
    std::uint32_t build_id_size = 0;
    std::uint64_t name = 0;
    std::uint64_t build_id = 0;
};
static_assert(sizeof(ProcmapQuery) == 104);
constexpr unsigned long kProcmapQuery = _IOWR('f', 17, ProcmapQuery);

// Nothing where the kernel has no such call.
std::optional<bool> look_up(int maps, std::uint64_t address, std::uint64_t length, bool writable) {
    bool is_known = true;
    const bool covered = covers(address, length, writable, [maps, &is_known](std::uint64_t at) {
        ProcmapQuery query;
        query.address = at;
        if (ioctl(maps, kProcmapQuery, &query) != 0) {
            is_known = errno == ENOENT;
            return std::optional<Mapping>();
        }
        return std::optional<Mapping>(
            {query.from, query.to, (query.rights & 1U) != 0, (query.rights & 2U) != 0});
    });
    return is_known ? std::optional(covered) : std::nullopt;
}

bool read_through(std::FILE* maps, std::uint64_t address, std::uint64_t length, bool writable) {
    return covers(address, length, writable, [maps](std::uint64_t at) {
        char line[512];
        while (std::fgets(line, sizeof line, maps) != nullptr) {
            Mapping mapping;
            char* after = nullptr;  // "FROM-TO RIGHTS ...", in hexadecimal
            mapping.from = std::strtoull(line, &after, 16);
            if (*after != '-') {
                continue;  // the rest of a long line
            }
            mapping.to = std::strtoull(after + 1, &after, 16);
            if (*after == ' ' && mapping.to > at) {
                mapping.readable = after[1] == 'r';
                mapping.writable = after[2] == 'w';
                return std::optional(mapping);
            }
        }
        return std::optional<Mapping>();
    });
}

bool has_mapping(std::uint64_t address, std::uint64_t length, bool writable) {
    if (length <= kMostFaultedIn) {
        if (const auto answer = populate(address, length, writable)) {
            return *answer;
        }
    }
    const auto close_file = [](std::FILE* file) { std::fclose(file); };
    const std::unique_ptr<std::FILE, decltype(close_file)> maps(std::fopen("/proc/self/maps", "re"),
                                                                close_file);
    if (maps == nullptr) {
        return true;
    }
    if (const auto answer = look_up(fileno(maps.get()), address, length, writable)) {
        return *answer;
    }
    return read_through(maps.get(), address, length, writable);
}

}  // namespace

bool is_mapped(std::uint64_t address, std::uint64_t length, bool writable) {
    const int saved = errno;
    const bool answer = has_mapping(address, length, writable);
    errno = saved;
    return answer;
}

}  // namespace simverbs::driver
