// Memory regions.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string_view>

#include <infiniband/verbs.h>

#include "simverbs/abi/destroyed_objects.hpp"
#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/misuse.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"
#include "simverbs/driver/mapped_memory.hpp"

namespace simverbs::abi {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kMaxPages = 0xFFFFFFFF;  // Linux counts them in 32 bits (ib_umem_get)

// Checks that a process's memory can be registered, and pins it; an errno, with its reason. Pages
// of an on-demand region are looked at when they are used.
int pin(std::string_view verb, Context& context, const void* address, std::size_t length,
        unsigned access) {
    const auto start = reinterpret_cast<std::uint64_t>(address);
    if ((access & IBV_ACCESS_ON_DEMAND) != 0) {
        return 0;
    }
    const std::uint64_t most =
        std::min(context.personality().limits.max_mr_bytes, kMaxPages * kPageBytes);
    if (start + length < start || length / kPageBytes > kMaxPages ||
        length > context.personality().limits.max_mr_bytes) {
        return refuse(verb, EINVAL,
                      "a length of {} from {:#x} on is out of range: at most {} bytes", length,
                      start, most);
    }
    const bool writable = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
    if (length > 0 && !driver::is_mapped(start, length, writable)) {
        return refuse(verb, EFAULT, "{} bytes from {:#x} on are not all mapped{}", length, start,
                      writable ? " for writing (IBV_ACCESS_LOCAL_WRITE)" : "");
    }
    if (!context.pinned().pin(start, length)) {
        return refuse(verb, ENOMEM,
                      "{} bytes more are beyond what the process may register (SIMVERBS_MEMLOCK)",
                      length);
    }
    return 0;
}

void unpin(Context& context, const void* address, std::size_t length, unsigned access) {
    if ((access & IBV_ACCESS_ON_DEMAND) == 0) {
        context.pinned().unpin(reinterpret_cast<std::uint64_t>(address), length);
    }
}

// nullptr with errno.
MemoryRegion* register_region(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                              unsigned access) {
    Context& context = as_object(pd->context);
    RegisterMr command;
    command.pd = pd->handle;
    command.address = reinterpret_cast<std::uint64_t>(address);
    command.length = length;
    command.iova = iova;
    command.access = access;
    RegisterMrReply reply;
    if ((iova ^ command.address) % kPageBytes != 0) {
        refuse("ibv_reg_mr", EINVAL, "iova {:#x} and address {:#x} differ in their lowest 12 bits",
               iova, command.address);
        return nullptr;
    }
    if (pin("ibv_reg_mr", context, address, length, access) != 0) {
        return nullptr;
    }
    if (const int error = context.execute(command, reply); error != 0) {
        unpin(context, address, length, access);
        errno = error;
        return nullptr;
    }
    auto* region = new MemoryRegion(*pd, address, length, reply);
    region->is_pinned = (access & IBV_ACCESS_ON_DEMAND) == 0;
    if (context.watch() != nullptr) {
        context.watch()->region_begins(*region, iova);
    }
    return region;
}

// The keys have ended; names what still uses them.
void name_end_of(const ibv_mr& mr) {
    Context& context = as_object(mr.context);
    if (context.watch() == nullptr) {
        return;
    }
    if (const auto found = context.watch()->region_ends(mr)) {
        name_misuse(context, found->misuse, found->subject, found->detail);
    }
}

int reregister_error(int error) {
    errno = error;
    return IBV_REREG_MR_ERR_CMD;
}

}  // namespace

SIMVERBS_ABI ibv_mr* simverbs_abi_ibv_reg_mr_iova2(ibv_pd* pd, void* addr, std::size_t length,
                                                   std::uint64_t iova, unsigned access) {
    return register_region(pd, addr, length, iova, access);
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

// The same checks as rdma-core's before it asks the device.
SIMVERBS_ABI int simverbs_abi_ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr,
                                           std::size_t length, int access) {
    MemoryRegion& region = as_object(mr);
    const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
    const bool changes_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
    const bool changes_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
    if (region.is_null || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 ||
        (moves && (addr == nullptr || length == 0)) || (access != 0 && !changes_access)) {
        refuse("ibv_rereg_mr", EINVAL,
               "flags {:#x}, length {} and access {:#x} do not fit together, or the region is null",
               flags, length, access);
        return IBV_REREG_MR_ERR_INPUT;
    }
    Context& context = as_object(mr->context);
    const unsigned pinned_as = region.is_pinned ? 0 : IBV_ACCESS_ON_DEMAND;
    const unsigned rights = static_cast<unsigned>(access) | pinned_as;
    if (!context.personality().rereg_mr) {
        return reregister_error(
            refuse("ibv_rereg_mr", EOPNOTSUPP, "the device changes no regions"));
    }
    if (changes_pd && pd == nullptr) {
        return reregister_error(refuse("ibv_rereg_mr", EINVAL, "pd is missing"));
    }
    if (moves) {
        if (const int error = pin("ibv_rereg_mr", context, addr, length, rights); error != 0) {
            return reregister_error(error);
        }
    }
    const ibv_mr before = *mr;
    ReregisterMr command;
    command.handle = mr->handle;
    command.flags = static_cast<std::uint32_t>(flags);
    command.pd = changes_pd ? pd->handle : 0;
    command.address = command.iova = reinterpret_cast<std::uint64_t>(addr);
    command.length = length;
    command.access = static_cast<std::uint32_t>(access);
    RegisterMrReply reply;
    if (const int error = context.execute(command, reply); error != 0) {
        if (moves) {
            unpin(context, addr, length, rights);
        }
        return reregister_error(error);
    }
    if (moves) {
        unpin(context, mr->addr, mr->length, pinned_as);
        mr->addr = addr;
        mr->length = length;
    }
    if (changes_pd) {
        mr->pd = pd;
    }
    mr->lkey = reply.lkey;
    mr->rkey = reply.rkey;
    name_end_of(before);
    if (context.watch() != nullptr) {
        context.watch()->region_begins(*mr, reinterpret_cast<std::uint64_t>(mr->addr));
    }
    return 0;
}

SIMVERBS_ABI int simverbs_abi_ibv_dereg_mr(ibv_mr* mr) {
    if (was_destroyed(mr, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    DeregisterMr command;
    command.handle = mr->handle;
    const int error = as_object(mr->context).execute(command);
    if (error == 0) {
        name_end_of(*mr);
        MemoryRegion& region = as_object(mr);
        if (region.is_pinned) {
            unpin(as_object(mr->context), mr->addr, mr->length, 0);
        }
        destroy(region, {mr, mr->context, "memory region", mr->handle});
    }
    return error;
}

ibv_mr* alloc_null_mr(ibv_pd* pd) {
    AllocateNullMr command;
    command.pd = pd->handle;
    RegisterMrReply reply;
    if (const int error = as_object(pd->context).execute(command, reply); error != 0) {
        errno = error;
        return nullptr;
    }
    auto* region = new MemoryRegion(*pd, nullptr, SIZE_MAX, reply);
    region->is_null = true;
    return region;
}

// Nothing has to be fetched, so advice is looked at and needs no time.
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* sg_list,
              std::uint32_t num_sge) {
    if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) {
        return refuse("ibv_advise_mr", EOPNOTSUPP, "advice {} is none of 0 to {}",
                      static_cast<unsigned>(advice),
                      static_cast<unsigned>(IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT));
    }
    if ((flags & ~static_cast<std::uint32_t>(IBV_ADVISE_MR_FLAG_FLUSH)) != 0 || num_sge == 0) {
        return refuse("ibv_advise_mr", EINVAL,
                      "flags {:#x} has bits other than IBV_ADVISE_MR_FLAG_FLUSH, or num_sge is 0",
                      flags);
    }
    const bool for_writing = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
    for (const ibv_sge& sge : std::span(sg_list, num_sge)) {
        AdviseMr command;
        command.pd = pd->handle;
        command.lkey = sge.lkey;
        command.for_writing = for_writing ? 1 : 0;
        command.address = sge.addr;
        command.length = sge.length;
        AdviseMrReply reply;
        if (const int error = as_object(pd->context).execute(command, reply); error != 0) {
            return error;
        }
        if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT &&
            !driver::is_mapped(reply.address, sge.length, for_writing)) {
            return refuse("ibv_advise_mr", EFAULT, "{} bytes from {:#x} on are not all mapped",
                          sge.length, reply.address);
        }
    }
    return 0;
}

}  // namespace simverbs::abi
