// Work queues and the tables that spread frames over them.
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include <infiniband/verbs.h>

#include "simverbs/abi/event_acknowledgments.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/misuse.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"
#include "simverbs/abi/receive_request.hpp"
#include "simverbs/abi/refusal_reason.hpp"

namespace simverbs::abi {
namespace {

class IndirectionTable final : public ibv_rwq_ind_table {
  public:
    IndirectionTable(ibv_context* owner, std::uint32_t number)
        : ibv_rwq_ind_table{owner, static_cast<int>(number), static_cast<int>(number), 0} {}
};

int write_receives(ReceiveWorkQueue& wq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr,
                   WatchedReceives& watched) {
    driver::WorkQueue& queue = wq.queue.receives();
    const std::lock_guard guard(queue.lock());
    const bool too_early = wq.queue.state() == WqState::kReset;
    const std::uint32_t before = queue.producer();
    int error = 0;
    for (; wr != nullptr; wr = wr->next) {
        error = too_early ? EINVAL : put_receive(queue, *wr, watched);
        if (error != 0) {
            *bad_wr = wr;
            break;
        }
    }
    if (queue.producer() != before) {
        wq.queue.ring();
    }
    return error;
}

int post_wq_recv(ibv_wq* handle, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
    Context& context = as_object(handle->context);
    if (!context.admits_work()) {
        *bad_wr = wr;
        return context.refuse_use("ibv_post_wq_recv");
    }
    if (const int refused = context.refused_post<CommandCode::kPostWqReceive>(handle->wq_num);
        refused != 0) [[unlikely]] {
        *bad_wr = wr;
        return refused;
    }
    WatchedReceives watched{context.watch(), {CompletedQueue::kWork, handle->wq_num}, {}};
    const int error = write_receives(as_object(handle), wr, bad_wr, watched);
    if (watched.mistake) [[unlikely]] {
        name_misuse(context, *watched.mistake, handle->wq_num, {});
    }
    if (error != 0) [[unlikely]] {
        explain_receive({.verb = "ibv_post_wq_recv",
                         .number = handle->wq_num,
                         .queue = as_object(handle).queue.receives().shape(),
                         .in_reset = handle->state == IBV_WQS_RESET},
                        **bad_wr, error);
    }
    return with_errno(error);
}

}  // namespace

// The caller initialises what waits for events (verbs.h, ibv_create_wq).
ibv_wq* create_wq(ibv_context* handle, ibv_wq_init_attr* init) {
    Context& context = as_object(handle);
    const bool known = init->wq_type == IBV_WQT_RQ &&
                       init->comp_mask < static_cast<std::uint32_t>(IBV_WQ_INIT_ATTR_RESERVED);
    if (!known || init->pd == nullptr || init->cq == nullptr) {
        refuse("ibv_create_wq", EINVAL, "{}",
               known ? "pd or cq is missing"
                     : "wq_type is not IBV_WQT_RQ, or comp_mask has unknown bits");
        return nullptr;
    }
    CreateWq command;
    command.pd = init->pd->handle;
    command.cq = init->cq->handle;
    command.requests = init->max_wr;
    command.segments = init->max_sge;
    command.flags = (init->comp_mask & IBV_WQ_INIT_ATTR_FLAGS) != 0 ? init->create_flags : 0;
    CreateWqReply reply;
    int descriptor = -1;
    if (const int error = context.execute(command, reply, descriptor); error != 0) {
        errno = error;
        return nullptr;
    }
    std::byte* ring = context.channel().map_ring(reply.ring, descriptor);
    if (ring == nullptr) {
        refuse_unmapped("ibv_create_wq");
        return nullptr;
    }
    auto* wq = new ReceiveWorkQueue(context, reply, ring, as_object(init->cq).queue);
    wq->context = handle;
    wq->pd = init->pd;
    wq->cq = init->cq;
    wq->wq_num = wq->handle = reply.handle;
    wq->state = IBV_WQS_RESET;
    wq->wq_type = init->wq_type;
    wq->post_recv = post_wq_recv;
    if (as_object(init->pd).threads != nullptr) {
        wq->queue.receives().lock().elide();
    }
    if (context.personality().create_returns_rounded) {
        init->max_wr = reply.requests;
    }
    init->max_sge = reply.segments;
    const std::lock_guard lock(context.lock());
    context.wqs[reply.handle] = wq;
    return wq;
}

namespace {

void forget_buffers(const ibv_wq& wq) {
    if (BufferWatch* watch = as_object(wq.context).watch(); watch != nullptr) {
        watch->forget({CompletedQueue::kWork, wq.wq_num});
    }
}

}  // namespace

int modify_wq(ibv_wq* handle, ibv_wq_attr* attr) {
    ModifyWq command;
    command.handle = handle->handle;
    command.mask = attr->attr_mask;
    std::memcpy(&command.state, &attr->wq_state, sizeof command.state);
    std::memcpy(&command.current_state, &attr->curr_wq_state, sizeof command.current_state);
    command.flags_mask = attr->flags_mask;
    command.flags = attr->flags;
    HandleReply reply;
    if (const int error = as_object(handle->context).execute(command, reply); error != 0) {
        return error;
    }
    if ((attr->attr_mask & IBV_WQ_ATTR_STATE) != 0) {
        handle->state = attr->wq_state;
        if (attr->wq_state == IBV_WQS_RESET) {
            as_object(handle).queue.forget_work();
            forget_buffers(*handle);
        }
    }
    return 0;
}

int destroy_wq(ibv_wq* handle) {
    ReceiveWorkQueue& wq = as_object(handle);
    Context& context = as_object(handle->context);
    DestroyWq command;
    command.handle = handle->handle;
    if (const int error = context.execute(command); error != 0) {
        return error;
    }
    {
        const std::lock_guard lock(context.lock());
        context.wqs.erase(handle->handle);
    }
    await_acknowledgments(context, *handle, handle->handle, "receive work queue", [&wq, handle] {
        return EventBalance{wq.async_events.given, handle->events_completed};
    });
    forget_buffers(*handle);
    delete &wq;
    return 0;
}

// The device reads the list where it is made here.
ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* handle, ibv_rwq_ind_table_init_attr* init) {
    Context& context = as_object(handle);
    const std::uint32_t most = context.personality().limits.max_rwq_indirection_table_size;
    const bool fits = init->log_ind_tbl_size < 32 && 1U << init->log_ind_tbl_size <= most;
    if (init->comp_mask != 0 || init->ind_tbl == nullptr || !fits) {
        refuse(
            "ibv_create_rwq_ind_table", EINVAL,
            "log_ind_tbl_size {} makes more than {} entries, ind_tbl is missing, or comp_mask is "
            "not 0",
            init->log_ind_tbl_size, most);
        return nullptr;
    }
    std::vector<std::uint32_t> queues;
    for (std::uint32_t i = 0; i < 1U << init->log_ind_tbl_size; ++i) {
        const ibv_wq* wq = init->ind_tbl[i];
        queues.push_back(wq == nullptr || wq->context != handle ? 0 : wq->handle);
    }
    CreateIndirectionTable command;
    command.log_size = init->log_ind_tbl_size;
    command.queues = reinterpret_cast<std::uint64_t>(queues.data());
    HandleReply reply;
    if (const int error = context.execute(command, reply); error != 0) {
        errno = error;
        return nullptr;
    }
    return new IndirectionTable(handle, reply.handle);
}

int destroy_rwq_ind_table(ibv_rwq_ind_table* table) {
    DestroyIndirectionTable command;
    command.handle = static_cast<std::uint32_t>(table->ind_tbl_handle);
    const int error = as_object(table->context).execute(command);
    if (error == 0) {
        delete static_cast<IndirectionTable*>(table);
    }
    return error;
}

}  // namespace simverbs::abi
