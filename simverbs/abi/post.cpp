// Posting: from the lists of verbs.h to slots of the rings. No allocation, and no lock but the
// queue's own.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include <infiniband/verbs.h>

#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"
#include "simverbs/model/opcodes.hpp"

namespace simverbs::abi {
namespace {

static_assert(sizeof(Segment) == sizeof(ibv_sge) &&
              offsetof(Segment, address) == offsetof(ibv_sge, addr) &&
              offsetof(Segment, length) == offsetof(ibv_sge, length) &&
              offsetof(Segment, lkey) == offsetof(ibv_sge, lkey));

constexpr unsigned kSendFlagBits = 0x1F;
constexpr unsigned kSignaledBit = IBV_SEND_SIGNALED;
constexpr unsigned kInlineBit = IBV_SEND_INLINE;

bool may_post_sends(QpState state) {
    return state == QpState::kRts || state == QpState::kSqd || state == QpState::kSqe ||
           state == QpState::kErr;
}

bool copy_inline(const ibv_send_wr& wr, SendWqe& wqe, std::byte* tail, std::uint32_t most) {
    std::uint32_t length = 0;
    for (int i = 0; i < wr.num_sge; ++i) {
        const ibv_sge& sge = wr.sg_list[i];
        if (sge.length > most - length) {
            return false;
        }
        std::copy_n(reinterpret_cast<const std::byte*>(sge.addr), sge.length, tail + length);
        length += sge.length;
    }
    wqe.inline_length = length;
    return true;
}

// Neither messages that invalidate a key nor those of IBA 1.5 and later, nor local operations.
bool is_modelled(const WrOpcodeProperties& opcode) {
    switch (opcode.message) {
        case MessageKind::kSend:
            return opcode.trailer != Trailer::kInvalidate;
        case MessageKind::kWrite:
        case MessageKind::kRead:
        case MessageKind::kCompareSwap:
        case MessageKind::kFetchAdd:
            return true;
        default:
            return false;
    }
}

// An errno: what a provider finds out before it rings the doorbell.
int write_send(QueuePair& qp, const Personality& personality, const ibv_send_wr& wr,
               std::byte* slot) {
    const WrOpcodeProperties* opcode = find_wr_opcode(static_cast<std::uint32_t>(wr.opcode));
    const bool wants_inline = (wr.send_flags & kInlineBit) != 0;
    if (opcode == nullptr || wr.num_sge < 0 ||
        static_cast<std::uint32_t>(wr.num_sge) > qp.capacity.send_segments ||
        (wants_inline && !opcode->may_be_inline &&
         personality.inline_on_read != BadRequest::kIgnore)) {
        return EINVAL;
    }
    const bool is_inline = wants_inline && opcode->may_be_inline;
    if (opcode->services.contains(Service::kRc) && !is_modelled(*opcode)) {
        return EOPNOTSUPP;  // what the service itself lacks completes in error
    }
    SendWqe wqe;
    wqe.wr_id = wr.wr_id;
    wqe.opcode = static_cast<std::uint8_t>(wr.opcode);
    wqe.flags = static_cast<std::uint8_t>((wr.send_flags & kSendFlagBits) |
                                          (qp.signals_all ? kSignaledBit : 0U));
    if (!is_inline) {
        wqe.flags &= static_cast<std::uint8_t>(~kInlineBit);
    }
    wqe.immediate = wr.imm_data;
    if (opcode->atomic) {
        wqe.remote_address = wr.wr.atomic.remote_addr;
        wqe.rkey = wr.wr.atomic.rkey;
        wqe.compare_add = wr.wr.atomic.compare_add;
        wqe.swap = wr.wr.atomic.swap;
    } else {
        wqe.remote_address = wr.wr.rdma.remote_addr;
        wqe.rkey = wr.wr.rdma.rkey;
    }
    std::byte* tail = slot + sizeof wqe;
    if (is_inline) {
        if (!copy_inline(wr, wqe, tail, qp.capacity.inline_bytes)) {
            return EINVAL;
        }
    } else {
        wqe.segment_count = static_cast<std::uint16_t>(wr.num_sge);
        std::copy_n(wr.sg_list, wr.num_sge, reinterpret_cast<ibv_sge*>(tail));
    }
    std::memcpy(slot, &wqe, sizeof wqe);
    return 0;
}

}  // namespace

// Requests before the first bad one are executed (ibv_post_send(3)).
int post_send(ibv_qp* handle, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
    QueuePair& qp = as_object(handle);
    const Context& context = as_object(handle->context);
    if (context.is_foreign()) {
        *bad_wr = wr;
        return EIO;
    }
    const Personality& personality = context.personality();
    driver::WorkQueue& queue = qp.queues.send();
    const std::lock_guard guard(queue.lock());
    const std::uint32_t before = queue.producer();
    int error = 0;
    for (; wr != nullptr; wr = wr->next) {
        if (!may_post_sends(qp.queues.state())) {
            if (personality.post_send_before_rts == PostTooEarly::kDrop) {
                continue;
            }
            error = EINVAL;
        } else if (std::byte* slot = queue.free_slot(); slot == nullptr) {
            error = ENOMEM;
        } else {
            error = write_send(qp, personality, *wr, slot);
        }
        if (error != 0) {
            *bad_wr = wr;
            break;
        }
        queue.push();
    }
    if (queue.producer() != before) {
        qp.queues.ring_send();
    }
    return error;
}

int post_recv(ibv_qp* handle, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
    QueuePair& qp = as_object(handle);
    const Context& context = as_object(handle->context);
    if (context.is_foreign()) {
        *bad_wr = wr;
        return EIO;
    }
    const bool drops_early = context.personality().post_recv_in_reset == PostTooEarly::kDrop;
    driver::WorkQueue& queue = qp.queues.receive();
    const std::lock_guard guard(queue.lock());
    const std::uint32_t before = queue.producer();
    int error = 0;
    for (; wr != nullptr; wr = wr->next) {
        std::byte* slot = nullptr;
        if (drops_early && qp.queues.state() == QpState::kReset) {
            continue;
        }
        if (qp.queues.state() == QpState::kReset || wr->num_sge < 0 ||
            static_cast<std::uint32_t>(wr->num_sge) > qp.capacity.receive_segments) {
            error = EINVAL;
        } else if (slot = queue.free_slot(); slot == nullptr) {
            error = ENOMEM;
        }
        if (error != 0) {
            *bad_wr = wr;
            break;
        }
        const RecvWqe wqe{wr->wr_id, static_cast<std::uint32_t>(wr->num_sge), 0};
        std::memcpy(slot, &wqe, sizeof wqe);
        std::copy_n(wr->sg_list, wr->num_sge, reinterpret_cast<ibv_sge*>(slot + sizeof wqe));
        queue.push();
    }
    if (queue.producer() != before) {
        qp.queues.ring_receive();
    }
    return error;
}

}  // namespace simverbs::abi
