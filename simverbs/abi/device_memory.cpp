// Memory on the device. The driver's mapping of it is what a BAR is to a program: copies go
// straight there.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <infiniband/verbs.h>

#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"

namespace simverbs::abi {
namespace {

bool holds(const DeviceMemory& memory, std::uint64_t offset, std::size_t length) {
    return offset <= memory.bytes() && length <= memory.bytes() - offset;
}

int memcpy_to_dm(ibv_dm* handle, std::uint64_t offset, const void* from, std::size_t length) {
    const DeviceMemory& memory = as_object(handle);
    if (as_object(handle->context).is_foreign()) {
        return EIO;
    }
    if (!holds(memory, offset, length)) {
        return EINVAL;
    }
    std::copy_n(static_cast<const std::byte*>(from), length, memory.base() + offset);
    return 0;
}

int memcpy_from_dm(void* to, ibv_dm* handle, std::uint64_t offset, std::size_t length) {
    const DeviceMemory& memory = as_object(handle);
    if (as_object(handle->context).is_foreign()) {
        return EIO;
    }
    if (!holds(memory, offset, length)) {
        return EINVAL;
    }
    std::copy_n(memory.base() + offset, length, static_cast<std::byte*>(to));
    return 0;
}

}  // namespace

ibv_dm* alloc_dm(ibv_context* handle, ibv_alloc_dm_attr* attr) {
    if (attr->comp_mask != 0) {
        errno = EOPNOTSUPP;
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
        errno = ENOMEM;
        return nullptr;
    }
    auto* memory = new DeviceMemory(base, reply.memory.bytes);
    memory->context = handle;
    memory->handle = reply.handle;
    memory->memcpy_to_dm = memcpy_to_dm;
    memory->memcpy_from_dm = memcpy_from_dm;
    return memory;
}

int free_dm(ibv_dm* handle) {
    DeviceMemory& memory = as_object(handle);
    Context& context = as_object(handle->context);
    FreeDm command;
    command.handle = handle->handle;
    const int error = context.execute(command);
    if (error == 0) {
        context.channel().unmap_ring(memory.base(), memory.bytes());
        delete &memory;
    }
    return error;
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
