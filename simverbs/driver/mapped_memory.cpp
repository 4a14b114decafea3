#include "simverbs/driver/mapped_memory.hpp"

#include <cinttypes>
#include <cstdio>
#include <memory>

namespace simverbs::driver {

bool is_mapped(std::uint64_t address, std::uint64_t length, bool writable) {
    const auto close = [](std::FILE* file) { std::fclose(file); };
    const std::unique_ptr<std::FILE, decltype(close)> maps(std::fopen("/proc/self/maps", "re"),
                                                           close);
    if (maps == nullptr) {
        return true;
    }
    const std::uint64_t end = address + length;
    std::uint64_t reached = address;
    char line[512];
    while (reached < end && std::fgets(line, sizeof line, maps.get()) != nullptr) {
        std::uint64_t from = 0;
        std::uint64_t to = 0;
        char rights[5] = {};
        if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to, rights) != 3 ||
            to <= reached) {
            continue;
        }
        const bool usable = rights[0] == 'r' && (!writable || rights[1] == 'w');
        if (from > reached || !usable) {
            return false;
        }
        reached = to;
    }
    return reached >= end;
}

}  // namespace simverbs::driver
