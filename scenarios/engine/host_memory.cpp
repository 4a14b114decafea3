#include "scenarios/engine/host_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace scenarios {

HostMemory::~HostMemory() {
    for (const auto& mapping : mappings_) {
        munmap(mapping.data(), mapping.size());
    }
}

std::uint8_t* HostMemory::take(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t whole = (bytes + page - 1) / page * page;
    if (whole <= rest_.size()) {
        std::uint8_t* const taken = rest_.data();
        rest_ = rest_.subspan(whole);
        return taken;
    }
    const std::size_t mapped = whole < kMapped ? kMapped : bytes;
    void* const pages =
        mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        return nullptr;
    }
    const std::span mapping(static_cast<std::uint8_t*>(pages), mapped);
    mappings_.push_back(mapping);
    if (whole < kMapped) {
        rest_ = mapping.subspan(whole);
    }
    return mapping.data();
}

}  // namespace scenarios
