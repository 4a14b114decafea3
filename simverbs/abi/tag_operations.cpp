// ibv_post_srq_ops(): operations on the tags of a shared receive queue.
#include <cerrno>
#include <cstring>
#include <mutex>

#include <infiniband/verbs.h>

#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"

namespace simverbs::abi {
namespace {

static_assert(static_cast<int>(TagOperationCode::kAdd) == IBV_WR_TAG_ADD &&
              static_cast<int>(TagOperationCode::kDelete) == IBV_WR_TAG_DEL &&
              static_cast<int>(TagOperationCode::kSync) == IBV_WR_TAG_SYNC);
static_assert(static_cast<int>(kTagSignaled) == IBV_OPS_SIGNALED &&
              static_cast<int>(kTagReports) == IBV_OPS_TM_SYNC);

// Reads a C enum that may hold an out-of-range value.
std::uint32_t opcode_of(const ibv_ops_wr& op) {
    std::uint32_t opcode = 0;
    static_assert(sizeof opcode == sizeof op.opcode);
    std::memcpy(&opcode, &op.opcode, sizeof opcode);
    return opcode;
}

int fill_add(driver::TagOperations& tags, ibv_ops_wr& op, TagOperation& operation) {
    const auto& add = op.tm.add;
    const std::uint32_t most = tags.operations.shape().max_segments;
    if (add.num_sge < 0 || static_cast<std::uint32_t>(add.num_sge) > most) {
        return EINVAL;
    }
    const auto handle = tags.handles.take((op.flags & IBV_OPS_SIGNALED) != 0);
    if (!handle) {
        return ENOMEM;
    }
    operation.receive_wr_id = add.recv_wr_id;
    operation.tag = add.tag;
    operation.mask = add.mask;
    if (add.num_sge > 0) {
        operation.segment = {add.sg_list->addr, add.sg_list->length, add.sg_list->lkey};
    }
    operation.handle = handle->number;
    operation.generation = handle->generation;
    op.tm.handle = handle->number;
    return 0;
}

// A tag whose last completion was polled is no tag any more.
int fill_delete(driver::TagOperations& tags, const ibv_ops_wr& op, TagOperation& operation) {
    if (op.tm.handle >= tags.handles.count() || tags.handles.is_free(op.tm.handle)) {
        return EINVAL;
    }
    const driver::TagHandle handle =
        tags.handles.begin_delete(op.tm.handle, (op.flags & IBV_OPS_SIGNALED) != 0);
    operation.handle = handle.number;
    operation.generation = handle.generation;
    return 0;
}

// With the lock of the operations held. An errno, after which the operation does not exist.
int put_operation(driver::TagOperations& tags, ibv_ops_wr& op) {
    constexpr int kFlags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC;
    std::byte* slot = tags.operations.free_slot();
    if (slot == nullptr) {
        return ENOMEM;
    }
    TagOperation operation;
    operation.wr_id = op.wr_id;
    const std::uint32_t opcode = opcode_of(op);
    operation.code = static_cast<std::uint8_t>(opcode);
    operation.flags = static_cast<std::uint8_t>(op.flags & kFlags);
    operation.unexpected = static_cast<std::uint16_t>(op.tm.unexpected_cnt);
    int error = 0;
    switch (opcode) {
        case IBV_WR_TAG_ADD:
            error = fill_add(tags, op, operation);
            break;
        case IBV_WR_TAG_DEL:
            error = fill_delete(tags, op, operation);
            break;
        case IBV_WR_TAG_SYNC:
            break;
        default:
            error = EINVAL;
    }
    if (error == 0) {
        std::memcpy(slot, &operation, sizeof operation);
        tags.operations.push();
    }
    return error;
}

}  // namespace

int post_srq_ops(ibv_srq* handle, ibv_ops_wr* op, ibv_ops_wr** bad_op) {
    SharedReceiveQueue& srq = as_object(handle);
    driver::TagOperations* tags = srq.queue.tags();
    if (!as_object(handle->context).admits_work() || tags == nullptr) {
        *bad_op = op;
        return with_errno(tags == nullptr ? EINVAL : EIO);
    }
    const std::lock_guard guard(tags->operations.lock());
    const std::uint32_t first = tags->operations.producer();
    int error = 0;
    for (; op != nullptr && error == 0; op = op->next) {
        error = put_operation(*tags, *op);
        if (error != 0) {
            *bad_op = op;
        }
    }
    if (tags->operations.producer() != first) {
        srq.queue.ring_operations();
    }
    return with_errno(error);
}

}  // namespace simverbs::abi
