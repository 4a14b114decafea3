// Memory on the device, and regions that change while they are used.
#include <cerrno>

#include "tests/walk/walk.hpp"

namespace walk {
namespace {

constexpr std::uint32_t kMostMemory = 4096;
constexpr int kWrites = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr int kEveryRight = kWrites | IBV_ACCESS_REMOTE_READ;

bool needs_local_write(int access) {
    return (access & kWrites) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0;
}

}  // namespace

void Walk::make_memory(Host& host) {
    ibv_alloc_dm_attr attr{};
    attr.length = random_.within(64, kMostMemory);
    attr.log_align_req = random_.below(4);
    ibv_dm* dm = ibv_alloc_dm(host.context, &attr);
    require(dm != nullptr || errno == ENOMEM, "ibv_alloc_dm");
    if (dm != nullptr) {
        host.memories.push_back(std::make_unique<DeviceMemory>(DeviceMemory{dm, attr.length}));
    }
}

void Walk::make_memory_region(Host& host) {
    Domain* domain = any(host.domains);
    DeviceMemory* memory = any(host.memories);
    if (domain == nullptr || memory == nullptr) {
        return;
    }
    const auto all = static_cast<std::uint32_t>(memory->length);
    const std::uint32_t offset = random_.below(all / 2);
    const std::uint32_t length = random_.within(1, all - offset);
    const std::uint32_t beyond = random_.one_in(16) ? all : 0;
    ibv_mr* mr = ibv_reg_dm_mr(domain->pd, memory->dm, offset, length + beyond,
                               kEveryRight | IBV_ACCESS_ZERO_BASED);
    require((mr == nullptr) == (beyond > 0), "ibv_reg_dm_mr");
    if (mr != nullptr) {
        host.regions.push_back(
            std::make_unique<Region>(Region{mr, domain, 0, length, 0, kEveryRight, memory}));
        ++domain->uses;
        ++memory->uses;
    }
}

void Walk::copy_memory(Host& host) {
    DeviceMemory* memory = any(host.memories);
    if (memory == nullptr) {
        return;
    }
    std::uint8_t bytes[64] = {};
    const auto offset = random_.below(static_cast<std::uint32_t>(memory->length) + 64);
    const int expected = offset + sizeof bytes <= memory->length ? 0 : EINVAL;
    const int error = random_.one_in(2)
                          ? ibv_memcpy_to_dm(memory->dm, offset, bytes, sizeof bytes)
                          : ibv_memcpy_from_dm(bytes, memory->dm, offset, sizeof bytes);
    require(error == expected, "ibv_memcpy_to_dm, ibv_memcpy_from_dm");
}

// Another place, another domain, other rights, or several of them.
void Walk::reregister(Host& host) {
    Region* region = any(host.regions);
    Domain* domain = any(host.domains);
    if (region == nullptr || region->memory != nullptr || domain == nullptr) {
        return;
    }
    const int flags = static_cast<int>(random_.within(1, 7));
    const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
    const bool changes_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
    int access = changes_access ? static_cast<int>(random_.below(16)) : region->access;
    std::uint32_t slot = moves ? random_.below(Arena::kSlots) : region->slot;
    if (!Arena::writable(slot)) {
        slot = moves && (access & kWrites) != 0 && !changes_access ? 0 : slot;
        access &= Arena::writable(slot) ? access : ~kWrites;
    }
    const std::uint32_t begin = random_.below(Arena::kUsableBytes / 2);
    const std::uint32_t length =
        random_.within(Arena::kUsableBytes / 4, Arena::kUsableBytes - begin);
    const int error = ibv_rereg_mr(region->mr, flags, domain->pd, arena_.usable(slot) + begin,
                                   length, changes_access ? access : 0);
    const bool may_fail = needs_local_write(access) || !host.windows.empty();
    require(error == 0 || may_fail, "ibv_rereg_mr");
    if (error != 0) {
        return;
    }
    if ((flags & IBV_REREG_MR_CHANGE_PD) != 0) {
        --region->domain->uses;
        region->domain = domain;
        ++domain->uses;
    }
    region->access = access;
    if (moves) {
        region->slot = slot;
        region->length = length;
        region->base = reinterpret_cast<std::uint64_t>(region->mr->addr);
    }
}

}  // namespace walk
