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

void DeviceContext::die(std::string_view why) {
    if (!is_dead_) {
        why_dead_ = why;
    }
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

void DeviceContext::abandon(std::string_view why) {
    die(why);
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

EventPipe* DeviceContext::events_of(std::uint32_t channel) {
    if (channel == 0) {
        return &events_;
    }
    CompletionChannel* const found = find(channels_, channel);
    return found == nullptr ? nullptr : &found->events;
}

void DeviceContext::send_event(EventPipe& pipe, const EventMessage& message) {
    pipe.send(message);
    client_.event_delivered();
}

int DeviceContext::execute(const AllocatePd& /*command*/, HandleReply& reply) {
    if (exceeds(pds_.size() + 1, hca_.personality().limits.max_pd)) {
        return refuse(ENOMEM, "the context has max_pd {} PDs", hca_.personality().limits.max_pd);
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
        return refuse_handle(ENOENT, "PD", command.handle);
    }
    if (pd->uses > 0) {
        return refuse_use(*pd);
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
        return refuse_handle(ENOENT, "completion channel", command.handle);
    }
    if (channel->uses > 0) {
        return refuse_use(*channel);
    }
    channels_.erase(command.handle);
    return 0;
}

int DeviceContext::execute(const CreateCq& command, CreateCqReply& reply) {
    const Personality& personality = hca_.personality();
    CompletionChannel* channel = find(channels_, command.channel);
    if (channel == nullptr && command.channel != 0) {
        return refuse_handle(ENOENT, "completion channel", command.channel);
    }
    if (command.entries == 0 || exceeds(command.entries, personality.limits.max_cqe)) {
        return refuse(EINVAL, "cqe {} is none of 1 to max_cqe {}", command.entries,
                      personality.limits.max_cqe);
    }
    if (exceeds(cqs_.size() + 1, personality.limits.max_cq)) {
        return refuse(ENOMEM, "the context has max_cq {} CQs", personality.limits.max_cq);
    }
    const std::uint32_t entries = rounded(command.entries, personality.cq_rounding);
    const RingMemory ring =
        client_.make_ring(completion_ring_bytes(slots_for(entries)), sizeof(CompletionRing));
    if (ring.base == nullptr) {
        return refuse_ring();
    }
    auto cq = std::make_unique<CompletionQueue>(*this, ring, entries, channel);
    cq->set_handle(++last_cq_);
    if (command.ignores_overrun) {
        cq->ignore_overrun();
    }
    reply = {last_cq_, entries, client_.ring_reply(ring)};
    cqs_.emplace(last_cq_, std::move(cq));
    return 0;
}

int DeviceContext::execute(const DestroyCq& command, EmptyReply& /*reply*/) {
    const CompletionQueue* cq = find(cqs_, command.handle);
    if (cq == nullptr) {
        return refuse_handle(ENOENT, "CQ", command.handle);
    }
    if (cq->in_use()) {
        return refuse_use(*cq);
    }
    cqs_.erase(command.handle);
    return 0;
}

int DeviceContext::execute(const ResizeCq& command, ResizeCqReply& reply) {
    CompletionQueue* cq = find(cqs_, command.handle);
    if (cq == nullptr) {
        return refuse_handle(ENOENT, "CQ", command.handle);
    }
    if (command.entries == 0 || command.entries < cq->unconsumed() ||
        exceeds(command.entries, hca_.personality().limits.max_cqe)) {
        return refuse(
            EINVAL, "cqe {} is none of {} (completions that were not polled) to max_cqe {}",
            command.entries, std::max(1U, cq->unconsumed()), hca_.personality().limits.max_cqe);
    }
    const std::uint32_t entries = rounded(command.entries, hca_.personality().cq_rounding);
    const RingMemory ring =
        client_.make_ring(completion_ring_bytes(slots_for(entries)), sizeof(CompletionRing));
    if (ring.base == nullptr) {
        return refuse_ring();
    }
    const std::uint32_t first = cq->replace_ring(ring, entries);
    reply = {entries, first, client_.ring_reply(ring)};
    return 0;
}

int DeviceContext::execute(const ModifyQp& command, ModifyQpReply& reply) {
    QueuePair* qp = find_qp(command.handle);
    if (qp == nullptr) {
        return refuse_handle(EINVAL, "QP", command.handle);
    }
    if (qp->spreads_frames()) {
        return refuse_spread();
    }
    const int error =
        qp->modify(QpAttrs::from_bits(command.mask), command.values, command.capacity, reply);
    reply.state = static_cast<std::uint32_t>(qp->attributes().state);
    if (error != 0 && QpAttrs::from_bits(command.mask) == QpAttrs(QpAttr::kRateLimit)) {
        return refuse(error, "rate_limit {} kbit/s is not 0, nor {} to {}",
                      command.values.pacing.rate_kbps,
                      hca_.personality().limits.rate_limit_min_kbps,
                      hca_.personality().limits.rate_limit_max_kbps);
    }
    return error;
}

int DeviceContext::execute(const QueryQp& command, QueryQpReply& reply) {
    const QueuePair* qp = find_qp(command.handle);
    if (qp == nullptr) {
        return refuse_handle(EINVAL, "QP", command.handle);
    }
    if (qp->spreads_frames()) {
        return refuse_spread();
    }
    reply = qp->query();
    return 0;
}

int DeviceContext::execute(const DestroyQp& command, EmptyReply& /*reply*/) {
    QueuePair* qp = find_qp(command.handle);
    if (qp == nullptr) {
        return refuse_handle(EINVAL, "QP", command.handle);
    }
    if (hca_.multicast().is_attached(*qp) || hca_.flows().steers_to(*qp) ||
        hca_.egress_flows().steers_to(*qp)) {
        return refuse_use(*qp);
    }
    unbind_windows_of(qp->qpn());
    leave(*qp, command.handle);
    return 0;
}

// Completions that are left out are as good as not there yet: an armed queue tells of them.
int DeviceContext::execute(const AskForPoll& command, AskForPollReply& reply) {
    CompletionQueue* cq = find(cqs_, command.handle);
    if (cq == nullptr) {
        return refuse_handle(ENOENT, "CQ", command.handle);
    }
    DeviceFaults* const faults = hca_.faults();
    reply.most = faults == nullptr ? command.found : faults->poll(hca_, command.found);
    if (reply.most < command.found) {
        cq->notify_again();
    }
    return 0;
}

int DeviceContext::execute(const ModifyCq& command, EmptyReply& /*reply*/) {
    const DeviceLimits& limits = hca_.personality().limits;
    CompletionQueue* cq = find(cqs_, command.handle);
    if (cq == nullptr) {
        return refuse_handle(ENOENT, "CQ", command.handle);
    }
    if (limits.max_cq_moderation_count == 0) {
        return refuse(EOPNOTSUPP, "the device does not moderate completion events");
    }
    if (command.count > limits.max_cq_moderation_count) {
        return refuse(EINVAL, "cq_count {} is more than {}", command.count,
                      limits.max_cq_moderation_count);
    }
    if (command.period_us > limits.max_cq_moderation_microseconds) {
        return refuse(EINVAL, "cq_period {} us is more than {} us", command.period_us,
                      limits.max_cq_moderation_microseconds);
    }
    cq->moderate(command.count, fabric::SimDuration(std::chrono::microseconds(command.period_us)));
    return 0;
}

int DeviceContext::execute(const QueryClock& /*command*/, QueryClockReply& reply) {
    if (hca_.personality().limits.core_clock_khz == 0) {
        return refuse(EOPNOTSUPP, "the device has no clock");
    }
    reply.now_ps = static_cast<std::uint64_t>(to_picoseconds(hca_.loop().now()));
    return 0;
}

int DeviceContext::execute(const QueryPd& command, EmptyReply& /*reply*/) {
    return find(pds_, command.handle) == nullptr ? refuse_handle(ENOENT, "PD", command.handle) : 0;
}

int DeviceContext::execute(const QueryMr& command, QueryMrReply& reply) {
    const ProtectionDomain* pd = find(pds_, command.pd);
    const MemoryRegion* region = find(regions_, command.handle);
    if (pd == nullptr || region == nullptr || region->pd != pd) {
        return refuse(ENOENT, "MR {} is none of PD {}", command.handle, command.pd);
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
