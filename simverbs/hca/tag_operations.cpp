// Operations on the tags of a shared receive queue: ADD, DEL and SYNC (ibv_post_srq_ops(3)). They
// are carried out when the doorbell rings, in the order of posting.
#include <cstring>

#include "simverbs/hca/completion_queue.hpp"
#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/hca_events.hpp"
#include "simverbs/hca/shared_receive_queue.hpp"

namespace simverbs {
namespace {

WcOpcode completion_opcode(TagOperationCode code) {
    switch (code) {
        case TagOperationCode::kAdd:
            return WcOpcode::kTmAdd;
        case TagOperationCode::kDelete:
            return WcOpcode::kTmDel;
        case TagOperationCode::kSync:
            break;
    }
    return WcOpcode::kTmSync;
}

}  // namespace

const std::byte* SharedReceiveQueue::operation_slot(std::uint32_t index) const {
    return ring_.base + tag_operation_ring_at(shape_) + sizeof(TagOperationRing) +
           std::size_t{index & (matching_->shape.slots - 1)} * matching_->shape.stride;
}

// A producer index is believed as far as the ring is deep.
void SharedReceiveQueue::posted_operations(std::uint32_t producer) {
    if (matching_ == nullptr || dead_ || producer - matching_->done > matching_->shape.slots) {
        return;
    }
    while (matching_->done != producer) {
        const std::uint32_t index = matching_->done++;
        TagOperation operation;
        std::memcpy(&operation, operation_slot(index), sizeof operation);
        carry_out(operation, index);
    }
}

// An unknown code does nothing but report.
void SharedReceiveQueue::carry_out(const TagOperation& operation, std::uint32_t index) {
    TagList& tags = matching_->tags;
    if ((operation.flags & kTagReports) != 0) {
        tags.report(operation.unexpected);
    }
    const auto code = static_cast<TagOperationCode>(operation.code);
    bool done = true;
    if (code == TagOperationCode::kAdd) {
        done = tags.add({operation.receive_wr_id, operation.tag, operation.mask, operation.segment,
                         operation.handle, operation.generation});
    } else if (code == TagOperationCode::kDelete) {
        done = tags.remove(operation.handle);
    }
    const FaultCause cause = done ? FaultCause::kSuccess : FaultCause::kTagNotInList;
    Hca& hca = context_.hca();
    hca.trace(TagListChanged{hca.node(), number_, completion_opcode(code), operation.handle,
                             operation.tag, operation.mask, tags.synchronized(), cause});
    if ((operation.flags & kTagSignaled) != 0) {
        complete(operation, index, cause);
    }
}

void SharedReceiveQueue::complete(const TagOperation& operation, std::uint32_t index,
                                  FaultCause cause) {
    Hca& hca = context_.hca();
    const CompletionFault fault = consequences(hca.personality(), cause);
    const WcStatus status = fault.responder.status.value_or(WcStatus::kSuccess);
    const WcOpcode opcode = completion_opcode(static_cast<TagOperationCode>(operation.code));
    const WorkCompleted record{hca.node(), cq_->handle(), 0, index, status, opcode, cause, 0};
    Cqe entry;
    entry.wr_id = operation.wr_id;
    entry.timestamp_ps = static_cast<std::uint64_t>(to_picoseconds(hca.loop().now()));
    entry.status = static_cast<std::uint8_t>(status);
    entry.opcode = static_cast<std::uint8_t>(opcode);
    if (status != WcStatus::kSuccess) {
        entry.vendor_error = vendor_err(hca.personality(), cause, fault.responder);
    }
    if (!matching_->tags.synchronized()) {
        entry.wc_flags = static_cast<std::uint32_t>(WcFlag::kTmSyncReq);
    }
    entry.flow_tag = index + 1;
    entry.tag_generation = operation.generation;
    put_tag_place(number_, operation.handle, entry);
    cq_->push(entry, record, status != WcStatus::kSuccess);
}

}  // namespace simverbs
