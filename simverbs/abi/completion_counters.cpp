// Completion counters (rdma-core 65): what completes is counted, where a program needs no more.
//
// They count requests, not bytes, as libefa's do. Their errors are those of the man pages and,
// where these leave a choice, libefa's.
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>

#include <infiniband/verbs.h>

#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/newer_abi.hpp"
#include "simverbs/abi/objects.hpp"

namespace simverbs::abi {
namespace {

int set(CompCntr* handle, CounterEntry entry, std::uint64_t value) {
    SetCompletionCounter command;
    command.handle = handle->handle;
    command.entry = entry;
    command.value = value;
    return as_object(handle->context).execute(command);
}

int increment(CompCntr* handle, CounterEntry entry, std::uint64_t amount) {
    IncrementCompletionCounter command;
    command.handle = handle->handle;
    command.entry = entry;
    command.amount = amount;
    return as_object(handle->context).execute(command);
}

int read(CompCntr* handle, CounterEntry entry, std::uint64_t* value) {
    if (const Context& context = as_object(handle->context); !context.admits_work()) {
        return context.refuse_use("ibv_read_comp_cntr");
    }
    *value = as_object(handle).counter.read_or_step(entry);
    return 0;
}

// An import of a context (ibv_import_device(3)) has its objects, too.
bool is_same(const Context& one, const Context& other) {
    return &one.channel() == &other.channel() && one.number() == other.number();
}

}  // namespace

SIMVERBS_ABI int simverbs_abi_ibv_query_comp_cntr_caps(ibv_context* handle, CompCntrCaps* caps,
                                                       std::size_t size) {
    std::memset(caps, 0, size);
    const Context& context = as_object(handle);
    if (!context.admits()) {
        return context.refuse_use("ibv_query_comp_cntr_caps");
    }
    const std::uint32_t most = context.personality().limits.max_completion_counters;
    if (most == 0) {
        return refuse("ibv_query_comp_cntr_caps", EOPNOTSUPP,
                      "the device has no completion counters");
    }
    if (size < sizeof *caps) {
        return refuse("ibv_query_comp_cntr_caps", EINVAL, "a size of {} is less than {}", size,
                      sizeof *caps);
    }
    caps->max_value = std::numeric_limits<std::uint64_t>::max();
    caps->max_counters = most;
    caps->supported_qp_attach_ops = kAllCountedOperations;
    return 0;
}

SIMVERBS_ABI CompCntr* simverbs_abi_ibv_create_comp_cntr(ibv_context* handle,
                                                         const CompCntrInitAttr* attr) {
    constexpr int kRequests = 0;  // IBV_COMP_CNTR_TYPE_WRS
    Context& context = as_object(handle);
    if (attr->comp_mask != 0 || attr->flags != 0 || attr->type != kRequests) {
        refuse("ibv_create_comp_cntr", EOPNOTSUPP,
               "comp_mask, flags and type have to be 0: requests are counted, not bytes");
        return nullptr;
    }
    CreateCompletionCounterReply reply;
    int descriptor = -1;
    if (const int error = context.execute(CreateCompletionCounter{}, reply, descriptor);
        error != 0) {
        errno = error;
        return nullptr;
    }
    std::byte* ring = context.channel().map_ring(reply.ring, descriptor);
    if (ring == nullptr) {
        refuse_unmapped("ibv_create_comp_cntr");
        return nullptr;
    }
    return new CompletionCounter(context, reply, ring);
}

SIMVERBS_ABI int simverbs_abi_ibv_destroy_comp_cntr(CompCntr* handle) {
    DestroyCompletionCounter command;
    command.handle = handle->handle;
    const int error = as_object(handle->context).execute(command);
    if (error == 0) {
        delete &as_object(handle);
    }
    return error;
}

SIMVERBS_ABI int simverbs_abi_ibv_qp_attach_comp_cntr(ibv_qp* qp, CompCntr* counter,
                                                      const QpAttachCompCntrAttr* attr) {
    Context& context = as_object(qp->context);
    if (attr->comp_mask != 0 || !is_same(context, as_object(counter->context))) {
        return refuse("ibv_qp_attach_comp_cntr", EINVAL,
                      "comp_mask has to be 0, and queue pair and counter of one context");
    }
    AttachCompletionCounter command;
    command.handle = counter->handle;
    command.qp = qp->handle;
    command.operations = attr->op_mask;
    return context.execute(command);
}

SIMVERBS_ABI int simverbs_abi_ibv_set_comp_cntr(CompCntr* counter, std::uint64_t value) {
    return set(counter, CounterEntry::kCompleted, value);
}

SIMVERBS_ABI int simverbs_abi_ibv_set_err_comp_cntr(CompCntr* counter, std::uint64_t value) {
    return set(counter, CounterEntry::kFailed, value);
}

SIMVERBS_ABI int simverbs_abi_ibv_inc_comp_cntr(CompCntr* counter, std::uint64_t amount) {
    return increment(counter, CounterEntry::kCompleted, amount);
}

SIMVERBS_ABI int simverbs_abi_ibv_inc_err_comp_cntr(CompCntr* counter, std::uint64_t amount) {
    return increment(counter, CounterEntry::kFailed, amount);
}

SIMVERBS_ABI int simverbs_abi_ibv_read_comp_cntr(CompCntr* counter, std::uint64_t* value) {
    return read(counter, CounterEntry::kCompleted, value);
}

SIMVERBS_ABI int simverbs_abi_ibv_read_err_comp_cntr(CompCntr* counter, std::uint64_t* value) {
    return read(counter, CounterEntry::kFailed, value);
}

}  // namespace simverbs::abi
