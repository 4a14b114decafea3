// Imported devices and objects: another handle of this process for what it has already.
//
// Objects of another process cannot be imported: commands go through that process's own channel to
// the world, not through a descriptor.
#include <cerrno>
#include <cstring>
#include <string>

#include <unistd.h>

#include <infiniband/verbs.h>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/process.hpp"
#include "simverbs/abi/warnings.hpp"

namespace simverbs::abi {
namespace {

bool is_command_descriptor(int descriptor) {
    char target[64]{};
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    return readlink(link.c_str(), target, sizeof target - 1) > 0 &&
           std::strstr(target, kCommandDescriptorName) != nullptr;
}

}  // namespace

SIMVERBS_ABI ibv_context* simverbs_abi_ibv_import_device(int command_descriptor) {
    const Context* original = Process::current().find_context(command_descriptor);
    if (original == nullptr) {
        const bool is_foreign = is_command_descriptor(command_descriptor);
        if (is_foreign) {
            static std::atomic_flag named;
            name_refusal(named, "ibv_import_device() of what another process has opened");
        }
        refuse(
            "ibv_import_device", is_foreign ? EOPNOTSUPP : EINVAL, "descriptor {} is {}",
            command_descriptor,
            is_foreign ? "of a device that another process has opened" : "no cmd_fd of a context");
        return nullptr;
    }
    if (!original->personality().imports_objects) {
        refuse("ibv_import_device", EOPNOTSUPP, "the device imports no objects");
        return nullptr;
    }
    auto* context = new Context(*original, command_descriptor);
    Process::current().context_opened(*context);
    return context->c_handle();
}

SIMVERBS_ABI ibv_pd* simverbs_abi_ibv_import_pd(ibv_context* handle, std::uint32_t pd_handle) {
    Context& context = as_object(handle);
    QueryPd command;
    command.handle = pd_handle;
    const int error = context.personality().imports_objects
                          ? context.execute(command)
                          : refuse("ibv_import_pd", EOPNOTSUPP, "the device imports no objects");
    if (error != 0) {
        return nullptr;
    }
    return new ProtectionDomain(context, pd_handle);
}

SIMVERBS_ABI void simverbs_abi_ibv_unimport_pd(ibv_pd* pd) {
    delete &as_object(pd);
}

SIMVERBS_ABI ibv_mr* simverbs_abi_ibv_import_mr(ibv_pd* pd, std::uint32_t mr_handle) {
    Context& context = as_object(pd->context);
    QueryMr command;
    command.pd = pd->handle;
    command.handle = mr_handle;
    QueryMrReply reply;
    const int error = context.personality().imports_objects
                          ? context.execute(command, reply)
                          : refuse("ibv_import_mr", EOPNOTSUPP, "the device imports no objects");
    if (error != 0) {
        return nullptr;
    }
    return new MemoryRegion(*pd, nullptr, reply.length, {mr_handle, reply.lkey, reply.rkey});
}

SIMVERBS_ABI void simverbs_abi_ibv_unimport_mr(ibv_mr* mr) {
    delete &as_object(mr);
}

}  // namespace simverbs::abi
