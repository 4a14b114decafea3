#include "simverbs/hca/device_context.hpp"

#include <algorithm>
#include <cerrno>

#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/hca_events.hpp"
#include "simverbs/model/personalities.hpp"

namespace simverbs {

// As many objects as are reported can be had from one context.
static_assert(std::ranges::all_of(kPersonalities, [](const Personality* personality) {
    const DeviceLimits& limits = personality->limits;
    return !exceeds(std::uint64_t(limits.max_mr) + std::uint64_t(limits.max_mw),
                    kNumbersOfAContext) &&
           !exceeds(std::uint64_t(limits.max_qp), kNumbersOfAContext) &&
           !exceeds(std::uint64_t(limits.max_srq), kNumbersOfAContext) &&
           !exceeds(limits.max_wq_type_rq, kNumbersOfAContext);
}));

DeviceContext::DeviceContext(Hca& hca, Client& client, std::uint32_t handle)
    : hca_(hca), client_(client), handle_(handle), events_(hca.event_backlog()) {}

DeviceContext::~DeviceContext() {
    hca_.late_landings().finish();
    for (const auto& [handle, rule] : flows_) {
        hca_.table_of(*rule).erase(*rule);
    }
    while (!opened_qps_.empty()) {
        const auto [handle, qp] = *opened_qps_.begin();
        leave(*qp, handle);
    }
    while (!qps_.empty()) {
        QueuePair& qp = *qps_.begin();
        leave(qp, qp.handle());
    }
    tables_.clear();
    for (const auto& [handle, wq] : wqs_) {
        hca_.wqs().erase(handle);
    }
    wqs_.clear();
    while (!srqs_.empty()) {
        drop_srq(srqs_.begin()->first);
    }
    cqs_.clear();
    for (const auto& [handle, window] : windows_) {
        hca_.keys().erase(*window);
    }
    for (const auto& [handle, region] : regions_) {
        hca_.keys().erase(*region);
    }
}

// By the device's table, which a doorbell is looked up in faster than in the context's own.
QueuePair* DeviceContext::find_qp(std::uint32_t handle) const {
    if (handle > kLargestNumber) [[unlikely]] {
        const auto opened = opened_qps_.find(handle);
        return opened == opened_qps_.end() ? nullptr : opened->second;
    }
    QueuePair* qp = hca_.qps().find(handle);
    return qp != nullptr && &qp->context() == this && qp->handle() == handle ? qp : nullptr;
}

void DeviceContext::die() {
    is_dead_ = true;
    for (QueuePair& qp : qps_) {
        qp.stop_timers();
    }
    for (const auto& [handle, cq] : cqs_) {
        cq->stop();
    }
    for (const auto& [handle, counter] : completion_counters_) {
        counter->stop();
    }
}

void DeviceContext::abandon() {
    die();
    is_abandoned_ = true;
}

void DeviceContext::raise(AsyncEvent event, std::uint32_t number, std::uint32_t handle) {
    if (is_dead_) {
        return;
    }
    hca_.trace(AsyncEventRaised{hca_.node(), event, number});
    send_event(events_, {.event = static_cast<std::uint32_t>(event),
                         .subject = handle,
                         .kind = static_cast<std::uint32_t>(properties(event).subject)});
}

void DeviceContext::send_event(EventPipe& pipe, const EventMessage& message) {
    pipe.send(message);
    client_.event_delivered();
}

int DeviceContext::execute(const AllocatePd& /*command*/, HandleReply& reply) {
    if (exceeds(pds_.size() + 1, hca_.personality().limits.max_pd)) {
        return ENOMEM;
    }
    auto pd = std::make_unique<ProtectionDomain>();
    pd->handle = reply.handle = ++last_pd_;
    pd->context = handle_;
    pds_.emplace(reply.handle, std::move(pd));
    return 0;
}

int DeviceContext::execute(const DeallocatePd& command, EmptyReply& /*reply*/) {
    const ProtectionDomain* pd = find(pds_, command.handle);
    if (pd == nullptr) {
        return ENOENT;
    }
    if (pd->uses > 0) {
        return EBUSY;
    }
    pds_.erase(command.handle);
    return 0;
}

int DeviceContext::execute(const CreateChannel& /*command*/, HandleReply& reply) {
    auto channel = std::make_unique<CompletionChannel>(hca_.event_backlog());
    channel->handle = reply.handle = ++last_channel_;
    client_.hand_over(channel->events.take_reader());
    channels_.emplace(reply.handle, std::move(channel));
    return 0;
}

int DeviceContext::execute(const DestroyChannel& command, EmptyReply& /*reply*/) {
    const CompletionChannel* channel = find(channels_, command.handle);
    if (channel == nullptr) {
        return ENOENT;
    }
    if (channel->uses > 0) {
        return EBUSY;
    }
    channels_.erase(command.handle);
    return 0;
}

int DeviceContext::execute(const CreateCq& command, CreateCqReply& reply) {
    const Personality& personality = hca_.personality();
    CompletionChannel* channel = find(channels_, command.channel);
    if (channel == nullptr && command.channel != 0) {
        return ENOENT;
    }
    if (command.entries == 0 || exceeds(command.entries, personality.limits.max_cqe)) {
        return EINVAL;
    }
    if (exceeds(cqs_.size() + 1, personality.limits.max_cq)) {
        return ENOMEM;
    }
    const std::uint32_t entries = rounded(command.entries, personality.cq_rounding);
    const RingMemory ring = client_.make_ring(completion_ring_bytes(slots_for(entries)));
    if (ring.base == nullptr) {
        return ENOMEM;
    }
    auto cq = std::make_unique<CompletionQueue>(*this, ring, entries, channel);
    cq->set_handle(++last_cq_);
    if (command.ignores_overrun) {
        cq->ignore_overrun();
    }
    reply = {last_cq_, entries, {reinterpret_cast<std::uint64_t>(ring.base), ring.bytes}};
    cqs_.emplace(last_cq_, std::move(cq));
    return 0;
}

int DeviceContext::execute(const DestroyCq& command, EmptyReply& /*reply*/) {
    const CompletionQueue* cq = find(cqs_, command.handle);
    if (cq == nullptr) {
        return ENOENT;
    }
    if (cq->in_use()) {
        return EBUSY;
    }
    cqs_.erase(command.handle);
    return 0;
}

int DeviceContext::execute(const ResizeCq& command, ResizeCqReply& reply) {
    CompletionQueue* cq = find(cqs_, command.handle);
    if (cq == nullptr) {
        return ENOENT;
    }
    if (command.entries == 0 || command.entries < cq->unconsumed() ||
        exceeds(command.entries, hca_.personality().limits.max_cqe)) {
        return EINVAL;
    }
    const std::uint32_t entries = rounded(command.entries, hca_.personality().cq_rounding);
    const RingMemory ring = client_.make_ring(completion_ring_bytes(slots_for(entries)));
    if (ring.base == nullptr) {
        return ENOMEM;
    }
    const std::uint32_t first = cq->replace_ring(ring, entries);
    reply = {entries, first, {reinterpret_cast<std::uint64_t>(ring.base), ring.bytes}};
    return 0;
}

int DeviceContext::check_capacity(const CreateQp& command) const {
    const DeviceLimits& limits = hca_.personality().limits;
    const QpCapacity& asked = command.capacity;
    if (exceeds(asked.send_requests, limits.max_qp_wr) ||
        exceeds(asked.receive_requests, limits.max_qp_wr) ||
        exceeds(asked.send_segments, limits.max_sge) ||
        exceeds(asked.receive_segments, limits.max_sge) ||
        asked.inline_bytes > limits.max_inline_bytes) {
        return EINVAL;
    }
    const bool xrc = command.service == Service::kXrcIni || command.service == Service::kXrcTgt;
    if (xrc && !limits.caps.contains(DeviceCap::kXrc)) {
        return EOPNOTSUPP;
    }
    if (asked.tso_header_bytes > 0 && !limits.tso_services.contains(command.service)) {
        return EOPNOTSUPP;
    }
    if (asked.tso_header_bytes > limits.max_inline_bytes) {
        return EINVAL;
    }
    const bool raw = command.service == Service::kRawPacket;
    if (raw && limits.max_raw_ethy_qp == 0) {
        return EOPNOTSUPP;
    }
    const auto is_raw = [](const QueuePair& qp) {
        return qp.attributes().service == Service::kRawPacket;
    };
    if (raw && std::ranges::count_if(qps_, is_raw) >= limits.max_raw_ethy_qp) {
        return ENOMEM;
    }
    return exceeds(qps_.size() + 1, limits.max_qp) ? ENOMEM : 0;
}

int DeviceContext::find_parts(const CreateQp& command, QueuePairParts& parts) const {
    const ServiceProperties& service = properties(command.service);
    parts.pd = find(pds_, command.pd);
    parts.send_cq = find(cqs_, command.send_cq);
    parts.receive_cq = find(cqs_, command.receive_cq);
    parts.srq = find(srqs_, command.srq);
    parts.xrcd = find(xrcds_, command.xrcd);
    parts.table = find(tables_, command.indirection_table);
    const auto is_stale = [](std::uint32_t handle, const void* object) {
        return handle != 0 && object == nullptr;
    };
    if (is_stale(command.pd, parts.pd) || is_stale(command.send_cq, parts.send_cq) ||
        is_stale(command.receive_cq, parts.receive_cq) || is_stale(command.srq, parts.srq) ||
        is_stale(command.xrcd, parts.xrcd)) {
        return ENOENT;
    }
    if (command.spreads) {
        parts.send_cq = parts.receive_cq = nullptr;
        parts.hash = command.hash;
        return parts.pd == nullptr ? EINVAL : check_spread(command, parts.table);
    }
    parts.table = nullptr;
    const bool has_all = service.srq_from_packet
                             ? parts.xrcd != nullptr
                             : parts.pd != nullptr && parts.send_cq != nullptr &&
                                   (parts.receive_cq != nullptr || !service.has_responder);
    const bool wrong_queue =
        parts.srq != nullptr && (!service.may_use_srq || parts.srq->domain() != nullptr);
    const bool no_tags = parts.srq != nullptr && parts.srq->tags() != nullptr &&
                         !hca_.personality().limits.tag_matching.services.contains(command.service);
    if (!has_all || wrong_queue || no_tags) {
        return EINVAL;
    }
    if (service.srq_from_packet) {
        parts.pd = nullptr;
        parts.send_cq = parts.receive_cq = nullptr;
    } else {
        parts.xrcd = nullptr;
    }
    if (!service.has_responder) {
        parts.receive_cq = nullptr;
    }
    return 0;
}

// As Linux mlx5 (process_create_flags, create_rss_raw_qp_tir): what is done to frames is for raw
// packets, padding for all; a queue pair that spreads frames leaves both to its work queues.
int DeviceContext::check_offloads(const CreateQp& command) const {
    const FrameOffloads asked = FrameOffloads::from_bits(command.offloads);
    if (command.spreads) {
        return asked.empty() ? 0 : EINVAL;
    }
    FrameOffloads offered = offered_offloads(hca_.personality().limits);
    if (command.service != Service::kRawPacket) {
        offered = offered & FrameOffload::kPciWriteEndPadding;
    }
    return offered.contains(asked) ? 0 : EOPNOTSUPP;
}

int DeviceContext::execute(const CreateQp& command, CreateQpReply& reply) {
    const Personality& personality = hca_.personality();
    if (find_service(properties(command.service).ibv_qp_type) == nullptr ||
        properties(command.service).service != command.service) {
        return EINVAL;
    }
    QueuePairParts parts{.service = command.service};
    if (const int error = find_parts(command, parts); error != 0) {
        return error;
    }
    if (const int error = check_capacity(command); error != 0) {
        return error;
    }
    const ServiceProperties& service = properties(command.service);
    if (command.blocks_own_multicast && (!service.multicast || command.spreads)) {
        return EINVAL;
    }
    if (command.blocks_own_multicast && !personality.blocks_own_multicast) {
        return EOPNOTSUPP;
    }
    parts.blocks_own_multicast = command.blocks_own_multicast;
    if (const int error = check_offloads(command); error != 0) {
        return error;
    }
    parts.offloads = FrameOffloads::from_bits(command.offloads);
    QpCapacity& granted = parts.capacity;
    granted = command.capacity;
    if (!service.has_requester) {
        granted.send_requests = granted.send_segments = granted.inline_bytes = 0;
    }
    if (!service.has_receive_queue || parts.srq != nullptr) {
        granted.receive_requests = granted.receive_segments = 0;
    }
    granted.send_requests = rounded(granted.send_requests, personality.send_queue_rounding);
    granted.receive_requests =
        rounded(granted.receive_requests, personality.receive_queue_rounding);
    if (const std::uint32_t bytes = personality.inline_bytes_per_sge; bytes > 0) {
        const std::uint32_t needed = (granted.inline_bytes + bytes - 1) / bytes;
        granted.send_segments = std::max(granted.send_segments, needed);
        granted.inline_bytes = bytes * granted.send_segments;
    }
    parts.send = send_shape(granted);
    parts.receive = receive_queue_shape(granted.receive_requests, granted.receive_segments);
    parts.ring = client_.make_ring(queue_pair_ring_bytes(parts.send, parts.receive));
    if (parts.ring.base == nullptr) {
        return ENOMEM;
    }
    const auto qpn = hca_.qps().reserve(handle_);
    if (!qpn) {
        client_.release_ring(parts.ring);
        return ENOMEM;
    }
    parts.qpn = *qpn;
    auto* const qp = new QueuePair(hca_, *this, parts);
    hca_.qps().assign(*qpn, *qp);
    qp->describe();
    qps_.insert(*qp);
    reply = {
        *qpn, *qpn, granted, {reinterpret_cast<std::uint64_t>(parts.ring.base), parts.ring.bytes}};
    return 0;
}

int DeviceContext::execute(const ModifyQp& command, ModifyQpReply& reply) {
    QueuePair* qp = find_qp(command.handle);
    if (qp == nullptr) {
        return EINVAL;
    }
    if (qp->spreads_frames()) {
        return EOPNOTSUPP;
    }
    const int error =
        qp->modify(QpAttrs::from_bits(command.mask), command.values, command.capacity, reply);
    reply.state = static_cast<std::uint32_t>(qp->attributes().state);
    return error;
}

int DeviceContext::execute(const QueryQp& command, QueryQpReply& reply) {
    const QueuePair* qp = find_qp(command.handle);
    if (qp == nullptr) {
        return EINVAL;
    }
    if (qp->spreads_frames()) {
        return EOPNOTSUPP;
    }
    reply = qp->query();
    return 0;
}

int DeviceContext::execute(const DestroyQp& command, EmptyReply& /*reply*/) {
    QueuePair* qp = find_qp(command.handle);
    if (qp == nullptr) {
        return EINVAL;
    }
    if (hca_.multicast().is_attached(*qp) || hca_.flows().steers_to(*qp) ||
        hca_.egress_flows().steers_to(*qp)) {
        return EBUSY;
    }
    unbind_windows_of(qp->qpn());
    leave(*qp, command.handle);
    return 0;
}

int DeviceContext::execute(const ModifyCq& command, EmptyReply& /*reply*/) {
    const DeviceLimits& limits = hca_.personality().limits;
    CompletionQueue* cq = find(cqs_, command.handle);
    if (cq == nullptr) {
        return ENOENT;
    }
    if (limits.max_cq_moderation_count == 0) {
        return EOPNOTSUPP;
    }
    if (command.count > limits.max_cq_moderation_count ||
        command.period_us > limits.max_cq_moderation_microseconds) {
        return EINVAL;
    }
    cq->moderate(command.count, fabric::SimDuration(std::chrono::microseconds(command.period_us)),
                 handle_);
    return 0;
}

int DeviceContext::execute(const QueryClock& /*command*/, QueryClockReply& reply) {
    if (hca_.personality().limits.core_clock_khz == 0) {
        return EOPNOTSUPP;
    }
    reply.now_ps = static_cast<std::uint64_t>(to_picoseconds(hca_.loop().now()));
    return 0;
}

int DeviceContext::execute(const QueryPd& command, EmptyReply& /*reply*/) {
    return find(pds_, command.handle) == nullptr ? ENOENT : 0;
}

int DeviceContext::execute(const QueryMr& command, QueryMrReply& reply) {
    const ProtectionDomain* pd = find(pds_, command.pd);
    const MemoryRegion* region = find(regions_, command.handle);
    if (pd == nullptr || region == nullptr || region->pd != pd) {
        return ENOENT;
    }
    reply = {region->lkey, region->rkey, region->length};
    return 0;
}

int DeviceContext::execute(const ReportMisuse& command, EmptyReply& /*reply*/) {
    if (static_cast<std::size_t>(command.misuse) >= kMisuseCount) {
        return EINVAL;
    }
    hca_.trace(MisuseNamed{hca_.node(), command.misuse, command.subject});
    return 0;
}

}  // namespace simverbs
