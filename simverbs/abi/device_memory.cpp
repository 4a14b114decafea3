// Memory on the device. The driver's mapping of it is what a BAR is to a program: copies go
// straight there.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <infiniband/verbs.h>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"

namespace simverbs::abi {
namespace {

// Memory that was freed holds nothing any more, whoever has imported it.
bool holds(const DeviceMemory& memory, std::uint64_t offset, std::size_t length) {
    Context& context = as_object(memory.context);
    const std::lock_guard lock(context.lock());
    return context.device_memories.contains(memory.handle) && offset <= memory.bytes() &&
           length <= memory.bytes() - offset;
}

// An errno.
int check_copy(const DeviceMemory& memory, std::uint64_t offset, std::uint64_t length) {
    const Context& context = as_object(memory.context);
    if (!context.admits()) {
        return EIO;
    }
    const Personality& personality = context.personality();
    if (!holds(memory, offset, length)) {
        return personality.device_memory_out_of_range_errno;
    }
    const std::uint32_t granule = personality.device_memory_granule;
    return offset % granule == 0 && length % granule == 0 ? 0 : EINVAL;
}

int memcpy_to_dm(ibv_dm* handle, std::uint64_t offset, const void* from, std::size_t length) {
    const DeviceMemory& memory = as_object(handle);
    if (const int error = check_copy(memory, offset, length); error != 0) {
        return with_errno(error);
    }
    std::copy_n(static_cast<const std::byte*>(from), length, memory.base() + offset);
    return 0;
}

int memcpy_from_dm(void* to, ibv_dm* handle, std::uint64_t offset, std::size_t length) {
    const DeviceMemory& memory = as_object(handle);
    if (const int error = check_copy(memory, offset, length); error != 0) {
        return with_errno(error);
    }
    std::copy_n(memory.base() + offset, length, static_cast<std::byte*>(to));
    return 0;
}

DeviceMemory* make_handle(ibv_context* context, std::uint32_t number, std::byte* base,
                          std::uint64_t bytes) {
    auto* memory = new DeviceMemory(base, bytes);
    memory->context = context;
    memory->handle = number;
    memory->memcpy_to_dm = memcpy_to_dm;
    memory->memcpy_from_dm = memcpy_from_dm;
    return memory;
}

}  // namespace

ibv_dm* alloc_dm(ibv_context* handle, ibv_alloc_dm_attr* attr) {
    if (attr->comp_mask != 0) {
        refuse("ibv_alloc_dm", EOPNOTSUPP, "comp_mask {:#x} has to be 0", attr->comp_mask);
        return nullptr;
    }
    Context& context = as_object(handle);
    AllocateDm command;
    command.length = attr->length;
    command.log_alignment = attr->log_align_req;
    AllocateDmReply reply;
    int descriptor = -1;
    if (const int error = context.execute(command, reply, descriptor); error != 0) {
        errno = error;
        return nullptr;
    }
    std::byte* base = context.channel().map_ring(reply.memory, descriptor);
    if (base == nullptr) {
        refuse_unmapped("ibv_alloc_dm");
        return nullptr;
    }
    DeviceMemory* memory = make_handle(handle, reply.handle, base, reply.memory.bytes);
    const std::lock_guard lock(context.lock());
    context.device_memories[reply.handle] = memory;
    return memory;
}

int free_dm(ibv_dm* handle) {
    DeviceMemory& memory = as_object(handle);
    Context& context = as_object(handle->context);
    FreeDm command;
    command.handle = handle->handle;
    const int error = context.execute(command);
    if (error == 0) {
        {
            const std::lock_guard lock(context.lock());
            context.device_memories.erase(handle->handle);
        }
        context.channel().unmap_ring(memory.base(), memory.bytes());
        delete &memory;
    }
    return error;
}

SIMVERBS_ABI ibv_dm* simverbs_abi_ibv_import_dm(ibv_context* handle, std::uint32_t dm_handle) {
    Context& context = as_object(handle);
    if (context.is_foreign()) {
        context.refuse_use("ibv_import_dm");
        return nullptr;
    }
    if (!context.personality().imports_objects) {
        refuse("ibv_import_dm", EOPNOTSUPP, "the device imports no objects");
        return nullptr;
    }
    const std::lock_guard lock(context.lock());
    const auto found = context.device_memories.find(dm_handle);
    if (found == context.device_memories.end()) {
        refuse("ibv_import_dm", ENOENT, "device memory {} is none of this context", dm_handle);
        return nullptr;
    }
    return make_handle(handle, dm_handle, found->second->base(), found->second->bytes());
}

SIMVERBS_ABI void simverbs_abi_ibv_unimport_dm(ibv_dm* dm) {
    delete &as_object(dm);
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                  unsigned access) {
    RegisterDmMr command;
    command.pd = pd->handle;
    command.dm = dm->handle;
    command.offset = offset;
    command.length = length;
    command.access = access;
    RegisterMrReply reply;
    if (const int error = as_object(pd->context).execute(command, reply); error != 0) {
        errno = error;
        return nullptr;
    }
    return new MemoryRegion(*pd, nullptr, length, reply);
}

}  // namespace simverbs::abi
