// Work queues, indirection tables, and the queue pairs that spread frames by one.
#include <algorithm>
#include <cerrno>

#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"

namespace simverbs {

int DeviceContext::execute(const CreateWq& command, CreateWqReply& reply) {
    const Personality& personality = hca_.personality();
    const DeviceLimits& limits = personality.limits;
    if (limits.max_wq_type_rq == 0) {
        return refuse(EOPNOTSUPP, "the device has no receive work queues");
    }
    ProtectionDomain* pd = find(pds_, command.pd);
    CompletionQueue* cq = find(cqs_, command.cq);
    const FrameOffloads offloads = FrameOffloads::from_bits(command.flags);
    if (pd == nullptr) {
        return refuse_handle(EINVAL, "PD", command.pd);
    }
    if (cq == nullptr) {
        return refuse_handle(EINVAL, "CQ", command.cq);
    }
    if (command.requests == 0 || exceeds(command.requests, limits.max_qp_wr)) {
        return refuse(EINVAL, "max_wr {} is none of 1 to max_qp_wr {}", command.requests,
                      limits.max_qp_wr);
    }
    if (exceeds(command.segments, limits.max_sge)) {
        return refuse(EINVAL, "max_sge {} is more than {}", command.segments, limits.max_sge);
    }
    if (!kKnownFrameOffloads.contains(offloads)) {
        return refuse(EINVAL, "create_flags {:#x} has unknown bits", command.flags);
    }
    if (!offered_offloads(limits).contains(offloads)) {
        return refuse(EOPNOTSUPP, "create_flags {:#x}: the device has {:#x} alone", command.flags,
                      offered_offloads(limits).bits);
    }
    if (wqs_.size() >= limits.max_wq_type_rq) {
        return refuse(ENOMEM, "the context has max_wq_type_rq {} WQs", limits.max_wq_type_rq);
    }
    const WorkQueueShape shape =
        receive_queue_shape(rounded(command.requests, personality.receive_queue_rounding),
                            std::max(1U, command.segments));
    const RingMemory ring = client_.make_ring(work_queue_ring_bytes(shape), sizeof(WorkQueueRing));
    const auto number = ring.base == nullptr ? std::nullopt : hca_.wqs().reserve(handle_);
    if (!number) {
        if (ring.base != nullptr) {
            client_.release_ring(ring);
        }
        return refuse_ring();
    }
    auto wq = std::make_unique<ReceiveWorkQueue>(
        *this, ReceiveWorkQueueParts{*pd, *cq, ring, shape, *number, offloads});
    hca_.wqs().assign(*number, *wq);
    wqs_.emplace(*number, std::move(wq));
    reply = {*number, shape.limit, shape.max_segments, client_.ring_reply(ring)};
    return 0;
}

int DeviceContext::execute(const ModifyWq& command, HandleReply& reply) {
    ReceiveWorkQueue* wq = find(wqs_, command.handle);
    const WqAttrs given = WqAttrs::from_bits(command.mask);
    constexpr WqAttrs kKnown = WqAttr::kState | WqAttr::kCurState | WqAttr::kFlags;
    if (wq == nullptr) {
        return refuse_handle(EINVAL, "WQ", command.handle);
    }
    if (given.empty() || !kKnown.contains(given)) {
        return refuse(EINVAL, "attr_mask {:#x} is none of 1 to {:#x}", command.mask, kKnown.bits);
    }
    const auto now = static_cast<std::uint32_t>(wq->state());
    const std::uint32_t to = given.contains(WqAttr::kState) ? command.state : now;
    const bool is_elsewhere = given.contains(WqAttr::kCurState) && command.current_state != now;
    const FrameOffloads changed =
        FrameOffloads::from_bits(given.contains(WqAttr::kFlags) ? command.flags_mask : 0);
    if (is_elsewhere || to > static_cast<std::uint32_t>(WqState::kErr) ||
        !kKnownFrameOffloads.contains(changed)) {
        return refuse(
            EINVAL,
            "curr_wq_state is not the {} that the queue is in, wq_state {} is unknown, or "
            "flags_mask {:#x} has unknown bits",
            now, to, changed.bits);
    }
    const FrameOffloads changeable =
        offered_offloads(hca_.personality().limits) & FrameOffload::kCvlanStripping;
    if (!changeable.contains(changed)) {
        return refuse(EOPNOTSUPP, "flags_mask {:#x}: only {:#x} can change", changed.bits,
                      changeable.bits);
    }
    const int error = given.contains(WqAttr::kState) ? wq->modify(static_cast<WqState>(to)) : 0;
    if (error == 0) {
        wq->set_offloads(wq->offloads().without(changed) |
                         (changed & FrameOffloads::from_bits(command.flags)));
    }
    reply.handle = static_cast<std::uint32_t>(wq->state());
    return error == 0 ? 0 : refuse(error, "state {} to {} is no transition of a WQ", now, to);
}

int DeviceContext::execute(const DestroyWq& command, EmptyReply& /*reply*/) {
    const ReceiveWorkQueue* wq = find(wqs_, command.handle);
    if (wq == nullptr) {
        return refuse_handle(EINVAL, "WQ", command.handle);
    }
    if (wq->in_use()) {
        return refuse_use(*wq);
    }
    hca_.wqs().erase(command.handle);
    wqs_.erase(command.handle);
    return 0;
}

int DeviceContext::execute(const CreateIndirectionTable& command, HandleReply& reply) {
    const DeviceLimits& limits = hca_.personality().limits;
    if (limits.max_rwq_indirection_tables == 0) {
        return refuse(EOPNOTSUPP, "the device has no indirection tables");
    }
    if (command.log_size >= 32 || 1U << command.log_size > limits.max_rwq_indirection_table_size) {
        return refuse(EINVAL, "2^{} entries are more than {}", command.log_size,
                      limits.max_rwq_indirection_table_size);
    }
    if (tables_.size() >= limits.max_rwq_indirection_tables) {
        return refuse(ENOMEM, "the context has all of its {} indirection tables",
                      limits.max_rwq_indirection_tables);
    }
    std::vector<std::uint32_t> handles(1U << command.log_size);
    const auto bytes = std::as_writable_bytes(std::span(handles));
    if (!client_.memory().read(command.queues, bytes.data(), bytes.size())) {
        return refuse(EFAULT, "ind_tbl cannot be read");
    }
    auto table = std::make_unique<IndirectionTable>();
    for (const std::uint32_t handle : handles) {
        table->queues.push_back(find(wqs_, handle));
    }
    if (std::ranges::count(table->queues, nullptr) > 0) {
        return refuse(EINVAL, "an entry of ind_tbl is no WQ of this context");
    }
    std::ranges::for_each(table->queues, &ReceiveWorkQueue::add_use);
    reply.handle = ++last_table_;
    tables_.emplace(reply.handle, std::move(table));
    return 0;
}

int DeviceContext::execute(const DestroyIndirectionTable& command, EmptyReply& /*reply*/) {
    const IndirectionTable* table = find(tables_, command.handle);
    if (table == nullptr) {
        return refuse_handle(EINVAL, "indirection table", command.handle);
    }
    if (table->uses > 0) {
        return refuse_use(command.handle, *table);
    }
    std::ranges::for_each(table->queues, &ReceiveWorkQueue::remove_use);
    tables_.erase(command.handle);
    return 0;
}

// As Linux mlx5 answers (create_rss_raw_qp_tir).
int DeviceContext::check_spread(const CreateQp& command, const IndirectionTable* table) const {
    const DeviceLimits& limits = hca_.personality().limits;
    const ReceiveHash& hash = command.hash;
    const QpCapacity& asked = command.capacity;
    if (!limits.rss_services.contains(command.service)) {
        return refuse(EOPNOTSUPP, "the device spreads no frames (RSS) of {}",
                      properties(command.service).name);
    }
    if (table == nullptr) {
        return refuse(EINVAL, "rwq_ind_tbl is none of this context");
    }
    if (asked.send_requests > 0 || asked.receive_requests > 0 || asked.receive_segments > 0 ||
        command.srq != 0) {
        return refuse(EINVAL,
                      "with rwq_ind_tbl the queue pair has no queues of its own (max_send_wr, "
                      "max_recv_wr, max_recv_sge, srq)");
    }
    if (hash.function != kToeplitzHash || (limits.rx_hash_functions & kToeplitzHash) == 0) {
        return refuse(EOPNOTSUPP, "rx_hash_function {} is none that the device has: {:#x}",
                      hash.function, limits.rx_hash_functions);
    }
    if (const auto known = HashFields::from_bits(limits.rx_hash_fields);
        !known.contains(hash.fields)) {
        return refuse(EOPNOTSUPP,
                      "rx_hash_fields_mask {:#x} has bits that the device has not: {:#x}",
                      hash.fields.bits, known.bits);
    }
    const bool chooses_nothing = hash.fields.empty() && table->queues.size() > 1;
    return hash.key_bytes != kHashKeyBytes || !can_be_of_one_frame(hash.fields) || chooses_nothing
               ? refuse(
                     EINVAL,
                     "rx_hash_key_len {} is not {}, or rx_hash_fields_mask is empty or has fields "
                     "that no frame has together",
                     hash.key_bytes, kHashKeyBytes)
               : 0;
}

}  // namespace simverbs
