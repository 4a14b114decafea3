// Completion channels, completion queues, polling and events.
#include <cerrno>
#include <memory>
#include <mutex>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "fabric/core/counted.hpp"

#include "simverbs/abi/destroyed_objects.hpp"
#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/event_acknowledgments.hpp"
#include "simverbs/abi/event_reader.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/misuse.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"
#include "simverbs/threads/uncancelled.hpp"

namespace simverbs::abi {
namespace {

void to_work_completion(const Cqe& entry, ibv_wc& wc) {
    wc.wr_id = entry.wr_id;
    wc.status = static_cast<ibv_wc_status>(entry.status);
    wc.opcode = static_cast<ibv_wc_opcode>(entry.opcode);
    wc.vendor_err = entry.vendor_error;
    wc.byte_len = entry.byte_length;
    wc.imm_data = entry.immediate;
    wc.qp_num = entry.qpn;
    wc.src_qp = entry.source_qpn;
    wc.wc_flags = entry.wc_flags;
    wc.pkey_index = entry.pkey_index;
    wc.slid = entry.slid;
    wc.sl = entry.sl;
    wc.dlid_path_bits = entry.dlid_path_bits;
}

}  // namespace

// A device that has died shortens nothing: what had completed is there.
int Context::completions_of_poll(CompletionQueue& cq, int found) {
    if (found == 0) {
        return 0;
    }
    AskForPollReply reply;
    int descriptor = -1;
    std::string refusal;
    const AskForPoll command{.handle = cq.handle, .found = static_cast<std::uint32_t>(found)};
    const int before = errno;
    const int error = execute(command, reply, descriptor, refusal);
    errno = before;
    return error == 0 ? static_cast<int>(reply.most) : found;
}

int poll_cq(ibv_cq* cq, int num_entries, ibv_wc* wc) {
    Context& context = as_object(cq->context);
    const bool admitted = context.admits_work();
    if (!admitted && context.is_foreign()) {
        context.refuse_use("ibv_poll_cq");
        return -1;
    }
    BufferWatch* watch = context.watch();
    const auto take = [&wc, watch](const Cqe& entry) {
        if (watch != nullptr) [[unlikely]] {
            watch->completed(entry);
        }
        to_work_completion(entry, *wc++);
    };
    driver::CompletionQueue& queue = as_object(cq).queue;
    int found = 0;
    int there = 0;
    if (context.asks_at_polls()) [[unlikely]] {
        there = queue.count(num_entries, admitted);
        found = queue.poll(context.completions_of_poll(as_object(cq), there), take);
    } else {
        found = admitted ? queue.poll_or_step(num_entries, take) : queue.poll(num_entries, take);
    }
    if (watch != nullptr) [[unlikely]] {
        count_poll(as_object(cq), found > 0 || there > 0);
        name_found(context);
    }
    if (found == 0 && !admitted) {  // what came before the end is taken
        context.refuse_use("ibv_poll_cq");
        return -1;
    }
    return found;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
    const Context& context = as_object(cq->context);
    if (!context.admits_work()) {
        return context.refuse_use("ibv_req_notify_cq");
    }
    driver::CompletionQueue& queue = as_object(cq).queue;
    const bool entries_wait = queue.arm(solicited_only != 0 ? CqArm::kSolicited : CqArm::kNext);
    if (entries_wait && context.personality().cq_arm_tells_of_waiting) {
        context.channel().ring(
            {.context = context.number(), .qpn = queue.number(), .queue = DoorbellQueue::kArm});
    }
    return 0;
}

SIMVERBS_ABI ibv_comp_channel* simverbs_abi_ibv_create_comp_channel(ibv_context* handle) {
    Context& context = as_object(handle);
    HandleReply reply;
    int descriptor = -1;
    if (context.execute(CreateChannel{}, reply, descriptor) != 0) {
        return nullptr;
    }
    return new CompletionChannel(context, reply.handle, descriptor);
}

SIMVERBS_ABI int simverbs_abi_ibv_destroy_comp_channel(ibv_comp_channel* handle) {
    if (was_destroyed(handle, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    CompletionChannel& channel = as_object(handle);
    if (channel.refcnt > 0) {
        return refuse("ibv_destroy_comp_channel", EBUSY,
                      "the channel is used by {}: destroy them first",
                      fabric::counted(static_cast<std::size_t>(channel.refcnt), "CQ"));
    }
    const Uncancelled uncancelled;
    DestroyChannel command;
    command.handle = channel.number();
    const int error = as_object(channel.context).execute(command);
    if (error == 0) {
        close(channel.fd);
        destroy(channel, {handle, channel.context, "completion channel", 0});
    }
    return error;
}

CompletionQueue* make_cq(ibv_context* handle, const ibv_cq_init_attr_ex& wanted) {
    Context& context = as_object(handle);
    if (wanted.comp_vector >= static_cast<std::uint32_t>(handle->num_comp_vectors)) {
        refuse("ibv_create_cq", EINVAL, "comp_vector {} is none of 0 to {} (num_comp_vectors {})",
               wanted.comp_vector, handle->num_comp_vectors - 1, handle->num_comp_vectors);
        return nullptr;
    }
    CreateCq command;
    command.entries = wanted.cqe;
    command.channel = wanted.channel == nullptr ? 0 : as_object(wanted.channel).number();
    command.ignores_overrun = (wanted.flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0;
    CreateCqReply reply;
    int descriptor = -1;
    if (context.execute(command, reply, descriptor) != 0) {
        return nullptr;
    }
    std::byte* ring = context.channel().map_ring(reply.ring, descriptor);
    if (ring == nullptr) {
        refuse_unmapped("ibv_create_cq");
        return nullptr;
    }
    auto* cq = new CompletionQueue(context, reply, ring);
    cq->context = handle;
    cq->channel = wanted.channel;
    cq->cq_context = wanted.cq_context;
    cq->handle = reply.handle;
    cq->cqe = static_cast<int>(reply.entries);
    pthread_mutex_init(&cq->mutex, nullptr);
    pthread_cond_init(&cq->cond, nullptr);
    const std::lock_guard lock(context.lock());
    if (wanted.channel != nullptr) {
        ++wanted.channel->refcnt;
    }
    context.cqs[reply.handle] = cq;
    return cq;
}

SIMVERBS_ABI ibv_cq* simverbs_abi_ibv_create_cq(ibv_context* handle, int cqe, void* cq_context,
                                                ibv_comp_channel* channel, int comp_vector) {
    if (cqe <= 0) {
        refuse("ibv_create_cq", EINVAL, "cqe {} is none of 1 to max_cqe {}", cqe,
               as_object(handle).personality().limits.max_cqe);
        return nullptr;
    }
    if (comp_vector < 0) {
        refuse("ibv_create_cq", EINVAL, "comp_vector {} is none of 0 to {}", comp_vector,
               handle->num_comp_vectors - 1);
        return nullptr;
    }
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = static_cast<std::uint32_t>(cqe);
    wanted.cq_context = cq_context;
    wanted.channel = channel;
    wanted.comp_vector = static_cast<std::uint32_t>(comp_vector);
    CompletionQueue* cq = make_cq(handle, wanted);
    return cq == nullptr ? nullptr : cq->c_handle();
}

SIMVERBS_ABI int simverbs_abi_ibv_resize_cq(ibv_cq* handle, int cqe) {
    if (is_used_after_destroy(handle, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    CompletionQueue& cq = as_object(handle);
    if (cqe <= 0) {
        return refuse("ibv_resize_cq", EINVAL, "cqe {} is none of 1 to max_cqe {}", cqe,
                      as_object(cq.context).personality().limits.max_cqe);
    }
    Context& context = as_object(cq.context);
    ResizeCq command;
    command.handle = cq.handle;
    command.entries = static_cast<std::uint32_t>(cqe);
    ResizeCqReply reply;
    int descriptor = -1;
    if (const int error = context.execute(command, reply, descriptor); error != 0) {
        return error;
    }
    std::byte* ring = context.channel().map_ring(reply.ring, descriptor);
    if (ring == nullptr) {
        return refuse_unmapped("ibv_resize_cq");
    }
    cq.queue.replace_ring(ring, reply);
    cq.cqe = static_cast<int>(reply.entries);
    return 0;
}

SIMVERBS_ABI int simverbs_abi_ibv_destroy_cq(ibv_cq* handle) {
    if (was_destroyed(handle, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    CompletionQueue& cq = as_object(handle);
    Context& context = as_object(cq.context);
    DestroyCq command;
    command.handle = cq.handle;
    if (const int error = context.execute(command); error != 0) {
        return error;
    }
    {
        const std::lock_guard lock(context.lock());
        context.cqs.erase(cq.handle);
        if (cq.channel != nullptr) {
            --cq.channel->refcnt;
        }
    }
    await_acknowledgments(context, cq, cq.handle, "completion queue", [&cq] {
        const EventBalance completions{cq.completion_events.given, cq.comp_events_completed};
        return completions.is_even()
                   ? EventBalance{cq.async_events.given, cq.async_events_completed}
                   : completions;
    });
    destroy(cq, {handle, cq.context, "completion queue", cq.handle, true});
    return 0;
}

SIMVERBS_ABI int simverbs_abi_ibv_get_cq_event(ibv_comp_channel* handle, ibv_cq** cq,
                                               void** cq_context) {
    CompletionChannel& channel = as_object(handle);
    Context& context = as_object(channel.context);
    EventMessage message;
    while (read_event(context, channel.number(), channel.fd, channel.use, message)) {
        const std::lock_guard lock(context.lock());
        const auto found = context.cqs.find(message.subject);
        if (found == context.cqs.end()) {
            continue;  // destroyed since
        }
        ++found->second->completion_events.given;
        *cq = found->second->c_handle();
        *cq_context = found->second->cq_context;
        return 0;
    }
    return -1;
}

SIMVERBS_ABI void simverbs_abi_ibv_ack_cq_events(ibv_cq* handle, unsigned int nevents) {
    CompletionQueue& cq = as_object(handle);
    pthread_mutex_lock(&cq.mutex);
    cq.comp_events_completed += nevents;
    pthread_cond_signal(&cq.cond);
    pthread_mutex_unlock(&cq.mutex);
}

}  // namespace simverbs::abi
