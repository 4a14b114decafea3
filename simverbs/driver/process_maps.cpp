#include "simverbs/driver/process_maps.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <sys/ioctl.h>

namespace simverbs::driver {
namespace {

// struct procmap_query of Linux 6.11, by which the kernel looks one mapping up.
struct ProcmapQuery {
    std::uint64_t size = sizeof(ProcmapQuery);
    std::uint64_t flags = 0x10;  // the one at the address, or the next
    std::uint64_t address = 0;
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t rights = 0;  // 1: to read, 2: to write, 8: shared
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

}  // namespace

ProcessMaps::ProcessMaps(Way way)
    : file_(std::fopen("/proc/self/maps", "re")), can_look_up_(way == Way::kAsks) {}

// False where the kernel has no such call.
bool ProcessMaps::look_up(std::uint64_t address, std::optional<Mapping>& mapping) {
    std::array<char, 4096> name;  // a shorter one is refused, not filled
    name[0] = 0;
    ProcmapQuery query;
    query.address = address;
    query.name_size = name.size();
    query.name = reinterpret_cast<std::uint64_t>(name.data());
    if (ioctl(fileno(file_.get()), kProcmapQuery, &query) != 0) {
        mapping.reset();
        return errno == ENOENT;
    }
    mapping = Mapping{query.from,
                      query.to,
                      (query.rights & 1U) != 0,
                      (query.rights & 2U) != 0,
                      (query.rights & 8U) != 0,
                      query.inode,
                      {}};
    std::memcpy(mapping->name.data(), name.data(), strnlen(name.data(), mapping->name.size() - 1));
    return true;
}

// "FROM-TO RIGHTS OFFSET DEVICE INODE   NAME", the addresses in hexadecimal.
bool ProcessMaps::read_line() {
    char line[512];
    while (std::fgets(line, sizeof line, file_.get()) != nullptr) {
        char* after = nullptr;
        last_.from = std::strtoull(line, &after, 16);
        if (*after != '-') {
            continue;  // the rest of a long line
        }
        last_.to = std::strtoull(after + 1, &after, 16);
        constexpr std::size_t kRights = 5;  // " rw-p"
        if (std::strlen(after) < kRights) {
            continue;
        }
        last_.readable = after[1] == 'r';
        last_.writable = after[2] == 'w';
        last_.is_shared = after[4] == 's';
        std::strtoull(after + kRights, &after, 16);  // the offset
        std::strtoull(after, &after, 16);            // the device, MAJOR:MINOR
        std::strtoull(after + std::strspn(after, ":"), &after, 16);
        last_.inode = std::strtoull(after, &after, 10);
        const char* const name = after + std::strspn(after, " ");
        last_.name = {};
        std::memcpy(last_.name.data(), name,
                    std::min(std::strcspn(name, "\n"), last_.name.size() - 1));
        return true;
    }
    return false;
}

std::optional<Mapping> ProcessMaps::at_or_after(std::uint64_t address) {
    if (file_ == nullptr) {
        return std::nullopt;
    }
    if (can_look_up_) {
        std::optional<Mapping> mapping;
        can_look_up_ = look_up(address, mapping);
        if (can_look_up_) {
            return mapping;
        }
    }
    while (last_.to <= address) {
        if (!read_line()) {
            return std::nullopt;
        }
    }
    return last_;
}

}  // namespace simverbs::driver
