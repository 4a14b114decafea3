// Counters of flow rules: what a rule with IBV_FLOW_SPEC_ACTION_COUNT has matched.
#include <array>
#include <cerrno>
#include <cstring>

#include <infiniband/verbs.h>

#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"

namespace simverbs::abi {

ibv_counters* create_counters(ibv_context* handle, ibv_counters_init_attr* init) {
    HandleReply reply;
    Context& context = as_object(handle);
    if (init->comp_mask != 0) {
        refuse("ibv_create_counters", EINVAL, "comp_mask {:#x} has to be 0", init->comp_mask);
        return nullptr;
    }
    if (context.execute(CreateCounters{}, reply) != 0) {
        return nullptr;
    }
    return new Counters(context, reply.handle);
}

int destroy_counters(ibv_counters* handle) {
    Counters& counters = as_object(handle);
    DestroyCounters command;
    command.handle = counters.number();
    const int error = as_object(handle->context).execute(command);
    if (error == 0) {
        delete &counters;
    }
    return error;
}

// Only before a rule names them: Linux mlx5 has no other way either.
int attach_counters_point_flow(ibv_counters* handle, ibv_counter_attach_attr* attr,
                               ibv_flow* flow) {
    if (attr->comp_mask != 0) {
        return refuse("ibv_attach_counters_point_flow", EINVAL, "comp_mask {:#x} has to be 0",
                      attr->comp_mask);
    }
    if (flow != nullptr) {
        return refuse("ibv_attach_counters_point_flow", EOPNOTSUPP,
                      "flow has to be NULL: counters are attached before a rule names them");
    }
    AttachCounters command;
    command.handle = as_object(handle).number();
    std::memcpy(&command.what, &attr->counter_desc, sizeof command.what);
    command.index = attr->index;
    return as_object(handle->context).execute(command);
}

int read_counters(ibv_counters* handle, std::uint64_t* values, std::uint32_t count,
                  std::uint32_t flags) {
    if ((flags & ~static_cast<std::uint32_t>(IBV_READ_COUNTERS_ATTR_PREFER_CACHED)) != 0) {
        return refuse("ibv_read_counters", EINVAL,
                      "flags {:#x} has bits other than IBV_READ_COUNTERS_ATTR_PREFER_CACHED",
                      flags);
    }
    ReadCounters command;
    command.handle = as_object(handle).number();
    ReadCountersReply reply;
    const int error = as_object(handle->context).execute(command, reply);
    if (error != 0) {
        return error;
    }
    if (count < reply.used) {
        return refuse("ibv_read_counters", EINVAL, "room for {} values, and {} are attached", count,
                      reply.used);
    }
    std::memcpy(values, reply.values.data(), reply.used * sizeof(std::uint64_t));
    return 0;
}

}  // namespace simverbs::abi
