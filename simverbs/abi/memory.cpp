// Memory regions.
#include <cerrno>
#include <cstdint>
#include <memory>

#include <infiniband/verbs.h>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/driver/mapped_memory.hpp"

namespace simverbs::abi {
namespace {

// Bits that a provider may ignore when it does not know them (IB_ACCESS_OPTIONAL).
constexpr unsigned kOptionalAccess = 0x3FF0'0000;
constexpr unsigned kRegionAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                   IBV_ACCESS_MW_BIND | IBV_ACCESS_HUGETLB;
constexpr unsigned kNotModelledAccess =
    IBV_ACCESS_ON_DEMAND | kAccessFlushGlobal | kAccessFlushPersistent;
constexpr std::uint64_t kPageBytes = 4096;

int check_access(unsigned access) {
    access &= ~kOptionalAccess;
    if ((access & ~(kRegionAccess | kNotModelledAccess)) != 0) {
        return EINVAL;
    }
    return (access & kNotModelledAccess) != 0 ? EOPNOTSUPP : 0;
}

int register_region(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                    unsigned access, MemoryRegion& region) {
    Context& context = as_object(pd->context);
    if (const int error = check_access(access); error != 0) {
        return error;
    }
    const auto start = reinterpret_cast<std::uint64_t>(address);
    if (start + length < start || (iova ^ start) % kPageBytes != 0 ||
        length > context.personality().limits.max_mr_bytes) {
        return EINVAL;
    }
    const bool writable = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
    RegisterMr command;
    command.pd = pd->handle;
    command.address = start;
    command.length = length;
    command.iova = iova;
    command.access = access & kRegionAccess;
    if (length > 0 && !driver::is_mapped(start, length, writable)) {
        return EFAULT;
    }
    RegisterMrReply reply;
    if (const int error = context.execute(command, reply); error != 0) {
        return error;
    }
    region.context = pd->context;
    region.pd = pd;
    region.addr = address;
    region.length = length;
    region.handle = reply.handle;
    region.lkey = reply.lkey;
    region.rkey = reply.rkey;
    return 0;
}

}  // namespace

SIMVERBS_ABI ibv_mr* simverbs_abi_ibv_reg_mr_iova2(ibv_pd* pd, void* addr, std::size_t length,
                                                   std::uint64_t iova, unsigned access) {
    auto region = std::make_unique<MemoryRegion>();
    if (const int error = register_region(pd, addr, length, iova, access, *region); error != 0) {
        errno = error;
        return nullptr;
    }
    return region.release();
}

SIMVERBS_ABI ibv_mr* simverbs_abi_ibv_reg_mr_iova(ibv_pd* pd, void* addr, std::size_t length,
                                                  std::uint64_t iova, int access) {
    return simverbs_abi_ibv_reg_mr_iova2(pd, addr, length, iova, static_cast<unsigned>(access));
}

SIMVERBS_ABI ibv_mr* simverbs_abi_ibv_reg_mr(ibv_pd* pd, void* addr, std::size_t length,
                                             int access) {
    return simverbs_abi_ibv_reg_mr_iova2(pd, addr, length, reinterpret_cast<std::uint64_t>(addr),
                                         static_cast<unsigned>(access));
}

SIMVERBS_ABI int simverbs_abi_ibv_rereg_mr(ibv_mr* /*mr*/, int flags, ibv_pd* /*pd*/, void* addr,
                                           std::size_t length, int /*access*/) {
    const bool nowhere =
        (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0 && (addr == nullptr || length == 0);
    if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 || nowhere) {
        errno = EINVAL;
        return IBV_REREG_MR_ERR_INPUT;
    }
    errno = EOPNOTSUPP;
    return IBV_REREG_MR_ERR_CMD;
}

SIMVERBS_ABI int simverbs_abi_ibv_dereg_mr(ibv_mr* mr) {
    DeregisterMr command;
    command.handle = mr->handle;
    const int error = as_object(mr->context).execute(command);
    if (error == 0) {
        delete &as_object(mr);
    }
    return error;
}

}  // namespace simverbs::abi
