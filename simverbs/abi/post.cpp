// Posting lists of work requests. No allocation, and no lock but the queue's own.
#include <cerrno>
#include <cstring>
#include <mutex>

#include <infiniband/verbs.h>

#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/misuse.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"
#include "simverbs/abi/receive_request.hpp"
#include "simverbs/abi/refusal_reason.hpp"
#include "simverbs/abi/send_request.hpp"

namespace simverbs::abi {
namespace {

std::span<const std::byte> bytes_of(const ibv_sge& sge) {
    return {reinterpret_cast<const std::byte*>(sge.addr), sge.length};
}

// Which member of the request's union counts depends on the service and on the operation.
int fill_target(const QueuePair& qp, const Personality& personality, const ibv_send_wr& wr,
                Binder binder, SendDraft& draft) {
    SendWqe& wqe = draft.wqe;
    if (draft.opcode != nullptr && draft.opcode->opcode == WrOpcode::kFlush) {
        return EINVAL;  // no ibv_send_wr can say what it is to do: ibv_wr_flush() can
    }
    wqe.immediate = wr.imm_data;
    const std::uint32_t opcode = opcode_of(wr);
    if (opcode == IBV_WR_BIND_MW && wr.bind_mw.mw == nullptr) {
        return EINVAL;
    }
    if (opcode == IBV_WR_TSO && qp.service->service == Service::kRawPacket) {
        return put_header(qp, wr.tso.hdr, wr.tso.hdr_sz, wr.tso.mss, draft);
    }
    if (qp.service->uses_ah) {
        if (wr.wr.ud.ah == nullptr) {
            return EINVAL;
        }
        wqe.address_handle = wr.wr.ud.ah->handle;
        wqe.remote_qpn = wr.wr.ud.remote_qpn;
        wqe.remote_qkey = wr.wr.ud.remote_qkey;
        return 0;
    }
    if (qp.service->service == Service::kXrcIni) {
        wqe.remote_qpn = wr.qp_type.xrc.remote_srqn;
    }
    if (opcode == IBV_WR_BIND_MW) {
        return write_binding(wr, personality, binder, wqe);
    }
    if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wqe.remote_address = wr.wr.atomic.remote_addr;
        wqe.rkey = wr.wr.atomic.rkey;
        wqe.compare_add = wr.wr.atomic.compare_add;
        wqe.swap = wr.wr.atomic.swap;
    } else {
        wqe.remote_address = wr.wr.rdma.remote_addr;
        wqe.rkey = wr.wr.rdma.rkey;
    }
    return 0;
}

int write_send(QueuePair& qp, const Personality& personality, const ibv_send_wr& wr,
               Binder binder) {
    SendDraft draft;
    int error = begin_send(qp, personality, opcode_of(wr), wr.wr_id, wr.send_flags, draft);
    if (error == 0) {
        error = fill_target(qp, personality, wr, binder, draft);
    }
    if (error != 0) {
        return error;
    }
    if (wr.num_sge < 0 ||
        static_cast<std::uint32_t>(wr.num_sge) > qp.queues.send().shape().max_segments) {
        return EINVAL;
    }
    const bool is_local = draft.opcode != nullptr && draft.opcode->message == MessageKind::kNone;
    const auto count = is_local ? 0 : static_cast<std::size_t>(wr.num_sge);
    const bool is_inline = (draft.wqe.flags & IBV_SEND_INLINE) != 0 && draft.opcode != nullptr &&
                           draft.opcode->may_be_inline;
    error = is_inline
                ? put_inline(
                      qp, count, [&wr](std::size_t i) { return bytes_of(wr.sg_list[i]); }, draft)
                : put_segments(qp, wr.sg_list, count, draft);
    return error == 0 ? finish_send(qp, personality, draft) : error;
}

// Requests before the first bad one are executed (ibv_post_send(3)).
int write_sends(QueuePair& qp, const Personality& personality, ibv_send_wr* wr, Binder binder,
                ibv_send_wr** bad_wr, std::optional<Misuse>& mistake) {
    driver::WorkQueue& queue = qp.queues.send();
    const std::lock_guard guard(queue.lock());
    const std::optional<PostTooEarly> too_early = too_early_to_send(qp, personality);
    const std::uint32_t before = queue.producer();
    int error = 0;
    for (; wr != nullptr; wr = wr->next) {
        error =
            too_early == PostTooEarly::kRefuse ? EINVAL : write_send(qp, personality, *wr, binder);
        if (error == 0 && too_early == PostTooEarly::kRefuseButQueue) {
            error = EINVAL;  // and yet it is in the ring, for the next doorbell
        }
        if (error != 0) {
            *bad_wr = wr;
            break;
        }
    }
    if (queue.producer() != before && !too_early) {
        qp.queues.ring_send();
    }
    mistake = take_mistake(qp);
    return error;
}

int write_receives(QueuePair& qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr, WatchedReceives& watched) {
    driver::WorkQueue& queue = qp.queues.receive();
    const std::lock_guard guard(queue.lock());
    const std::uint32_t before = queue.producer();
    int error = 0;
    for (; wr != nullptr; wr = wr->next) {
        error = qp.queues.state() == QpState::kReset ? EINVAL : put_receive(queue, *wr, watched);
        if (error != 0) {
            *bad_wr = wr;
            break;
        }
    }
    if (queue.producer() != before) {
        qp.queues.ring_receive();
    }
    return error;
}

int post_sends(ibv_qp* handle, ibv_send_wr* wr, Binder binder, ibv_send_wr** bad_wr) {
    QueuePair& qp = as_object(handle);
    Context& context = as_object(handle->context);
    const char* const verb = binder == Binder::kVerb ? "ibv_bind_mw" : "ibv_post_send";
    if (!context.admits_work()) {
        *bad_wr = wr;
        return context.refuse_use(verb);
    }
    if (const int refused = context.refused_post<CommandCode::kPostSend>(handle->qp_num);
        refused != 0) [[unlikely]] {
        *bad_wr = wr;
        return refused;
    }
    std::optional<Misuse> mistake;
    const int error = write_sends(qp, context.personality(), wr, binder, bad_wr, mistake);
    if (mistake) [[unlikely]] {
        name_misuse(context, *mistake, handle->qp_num, {});
    }
    if (error != 0) [[unlikely]] {
        explain_send(context, qp, **bad_wr, verb, error);
    }
    return with_errno(error);
}

}  // namespace

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
    return post_sends(qp, wr, Binder::kWorkRequest, bad_wr);
}

int post_bind(ibv_qp* qp, ibv_send_wr& wr) {
    ibv_send_wr* bad_wr = nullptr;
    return post_sends(qp, &wr, Binder::kVerb, &bad_wr);
}

int post_recv(ibv_qp* handle, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
    QueuePair& qp = as_object(handle);
    Context& context = as_object(handle->context);
    if (!context.admits_work()) {
        *bad_wr = wr;
        return context.refuse_use("ibv_post_recv");
    }
    if (const int refused = context.refused_post<CommandCode::kPostReceive>(handle->qp_num);
        refused != 0) [[unlikely]] {
        *bad_wr = wr;
        return refused;
    }
    WatchedReceives watched{qp.watch(), {CompletedQueue::kReceive, handle->qp_num}, {}};
    const int error = write_receives(qp, wr, bad_wr, watched);
    if (watched.mistake) [[unlikely]] {
        name_misuse(context, *watched.mistake, handle->qp_num, {});
    }
    if (error != 0) [[unlikely]] {
        explain_receive({.verb = "ibv_post_recv",
                         .number = handle->qp_num,
                         .queue = qp.queues.receive().shape(),
                         .in_reset = qp.queues.state() == QpState::kReset,
                         .has_shared_queue = handle->srq != nullptr},
                        **bad_wr, error);
    }
    return with_errno(error);
}

}  // namespace simverbs::abi
