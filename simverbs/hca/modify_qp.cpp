// The life of a queue pair: the only file in which its state changes (IBA 10.3.1, 11.2.5.2).
#include <algorithm>
#include <cerrno>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/core/counted.hpp"

#include "simverbs/hca/addressing.hpp"
#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/hca_events.hpp"
#include "simverbs/hca/queue_pair.hpp"

namespace simverbs {
namespace {

constexpr std::uint32_t kMaxPsn = Psn::kModulus - 1;
constexpr std::uint32_t kMaxQpn = 0xFFFFFF;
constexpr auto kMaxMigrationState = static_cast<std::uint32_t>(MigrationState::kArmed);

constexpr QpAttrs kKnownAttrs = [] {
    QpAttrs all;
    for (const QpAttrName& row : kQpAttrNames) {
        all = all | row.attr;
    }
    return all;
}();

// A queue that it needs is dead.
bool takes_queue_pairs_down(FaultCause cause) {
    return cause == FaultCause::kCqOverrun || cause == FaultCause::kSendRingUnreadable ||
           cause == FaultCause::kReceiveRingUnreadable || cause == FaultCause::kSrqRingUnreadable ||
           cause == FaultCause::kInternalError;
}

bool is_state(std::uint32_t value) {
    return value <= static_cast<std::uint32_t>(QpState::kErr);
}

// Returns the bits of values that a device keeps which does not look at them.
QpValues cut(QpValues values, const Personality& personality) {
    if (personality.attr_values == AttrValues::kRefuse) {
        return values;
    }
    values.retry_count &= kMaxRetryCount;
    values.rnr_retry &= kMaxRetryCount;
    if (personality.attr_values == AttrValues::kRefuseButCutRetries) {
        return values;
    }
    const DeviceLimits& limits = personality.limits;
    values.rq_psn &= kMaxPsn;
    values.sq_psn &= kMaxPsn;
    values.dest_qpn &= kMaxQpn;
    values.min_rnr_timer %= kRnrTimerCodes;
    values.max_dest_rd_atomic = static_cast<std::uint8_t>(
        std::min<std::int32_t>(values.max_dest_rd_atomic, limits.max_qp_rd_atom));
    values.access &= kKnownAccess.bits;
    values.path_mtu = std::max(values.path_mtu, 1U);
    values.pkey_index = values.pkey_index < limits.port.pkey_entries ? values.pkey_index : 0;
    values.path_mig_state = static_cast<std::uint32_t>(MigrationState::kMigrated);
    cut_path(values.path);
    return values;
}

// Returns true if the device paces like that: 0 is no pace, and then without a burst.
bool is_rate(const PacingRule& pacing, const DeviceLimits& limits) {
    return pacing.rate_kbps == 0 ? pacing.burst_bytes == 0
                                 : pacing.rate_kbps >= limits.rate_limit_min_kbps &&
                                       pacing.rate_kbps <= limits.rate_limit_max_kbps;
}

// A path has to leave by the queue pair's own port.
void refuse_port_of_path(const DeviceContext& context, std::uint32_t given, std::uint32_t own) {
    const Hca& hca = context.hca();
    if (hca.has_port(given)) {
        context.refuse(EINVAL, "ah_attr.port_num {} is not the queue pair's port_num {}", given,
                       own);
    } else {
        context.refuse(EINVAL, "ah_attr.port_num {} is none of the ports 1 to {}", given,
                       hca.port_count());
    }
}

}  // namespace

int QueuePair::modify(QpAttrs given, const QpValues& asked, const QpCapacity& capacity,
                      ModifyQpReply& reply) {
    const Personality& personality = hca_.personality();
    const QpValues values = cut(asked, personality);
    if (given.contains(QpAttr::kAltPath) &&
        hca_.port(attributes_.port).attributes().link_layer == fabric::LinkLayer::kEthernet) {
        return context().refuse(EINVAL, "path migration is InfiniBand's, and the port on Ethernet");
    }
    if (given.contains(QpAttr::kCap) && !personality.resizes_queues) {
        return context().refuse(EINVAL, "CAP: the device does not resize queues");
    }
    const bool is_paced = personality.limits.rate_limit_max_kbps > 0;
    if (!kKnownAttrs.contains(given) || (given.contains(QpAttr::kRateLimit) && !is_paced)) {
        return EOPNOTSUPP;
    }
    if (given.contains(QpAttr::kState) && !is_state(values.state)) {
        return EINVAL;
    }
    QpState from = attributes_.state;
    if (given.contains(QpAttr::kCurState) &&
        values.current_state != static_cast<std::uint32_t>(from)) {
        if (!personality.cur_state_is_believed || !is_state(values.current_state)) {
            return EINVAL;
        }
        from = static_cast<QpState>(values.current_state);
    }
    const QpState to = given.contains(QpAttr::kState) ? static_cast<QpState>(values.state) : from;
    const QpTransition* row = find_modify(personality, from, to, attributes_.service);
    if (row == nullptr || !check_modify(personality, *row, attributes_.service, given).ok()) {
        return EINVAL;
    }
    QpAttrs refused;
    if (const int error = check_values(given, values, refused); error != 0) {
        reply.refused = refused.bits;
        const std::uint8_t port = given.contains(QpAttr::kPort) ? values.port : attributes_.port;
        if (hca_.has_port(port)) {
            reply.active_mtu = static_cast<std::uint32_t>(hca_.port(port).attributes().active_mtu);
        }
        return error;
    }
    if (const int error = check_migration(given, values); error != 0) {
        return error;
    }
    if (from == QpState::kSqd && to == QpState::kRts && !drained_ &&
        !personality.sqd_to_rts_while_draining) {
        return context().refuse(EINVAL, "SQD to RTS: the send queue has not drained (SQ_DRAINED)");
    }
    if (given.contains(QpAttr::kCap)) {
        if (const int error = check_resize(capacity); error != 0) {
            return context().refuse(
                error,
                "CAP: more than max_qp_wr {}, less than what waits, or more segments or "
                "inline bytes than the queue pair was made with",
                personality.limits.max_qp_wr);
        }
        if (!resize(capacity, reply)) {
            return context().refuse(ENOMEM, "CAP: there is no memory for the queues");
        }
    }
    apply(given, values);
    apply_migration(given, values);
    if (to == QpState::kSqd && from != to) {
        notify_drained_ =
            given.contains(QpAttr::kEnSqdAsyncNotify) && values.en_sqd_async_notify != 0;
    }
    if (given.contains(QpAttr::kState)) {
        enter(to, QpTrigger::kModify, FaultCause::kSuccess);
    }
    return 0;
}

int QueuePair::check_values(QpAttrs given, const QpValues& values, QpAttrs& refused) const {
    const DeviceLimits& limits = hca_.personality().limits;
    const auto refuse = [&refused](QpAttr attr) {
        refused = attr;
        return EINVAL;
    };
    const auto exceeds = [given, &refuse](QpAttr attr, auto value, auto most) {
        return given.contains(attr) &&
               static_cast<std::uint64_t>(value) > static_cast<std::uint64_t>(most) &&
               refuse(attr) != 0;
    };
    if (given.contains(QpAttr::kPort) && !hca_.has_port(values.port)) {
        return refuse(QpAttr::kPort);
    }
    const std::uint8_t port = given.contains(QpAttr::kPort) ? values.port : attributes_.port;
    const fabric::PortAttributes& of_port = hca_.port(port).attributes();
    if (given.contains(QpAttr::kPkeyIndex) && values.pkey_index >= of_port.pkeys.size()) {
        context().refuse(EINVAL, "pkey_index {}: port {} has {}, indices 0 to {}",
                         values.pkey_index, port, fabric::counted(of_port.pkeys.size(), "P_Key"),
                         of_port.pkeys.size() - 1);
        return refuse(QpAttr::kPkeyIndex);
    }
    if (given.contains(QpAttr::kPathMtu) &&
        (values.path_mtu < 1 || values.path_mtu > static_cast<std::uint32_t>(of_port.active_mtu))) {
        return refuse(QpAttr::kPathMtu);
    }
    if (exceeds(QpAttr::kRqPsn, values.rq_psn, kMaxPsn) ||
        exceeds(QpAttr::kSqPsn, values.sq_psn, kMaxPsn) ||
        exceeds(QpAttr::kDestQpn, values.dest_qpn, kMaxQpn) ||
        exceeds(QpAttr::kTimeout, values.timeout, kAckTimeoutCodes - 1) ||
        exceeds(QpAttr::kRetryCnt, values.retry_count, kMaxRetryCount) ||
        exceeds(QpAttr::kRnrRetry, values.rnr_retry, kMaxRetryCount) ||
        exceeds(QpAttr::kMinRnrTimer, values.min_rnr_timer, kRnrTimerCodes - 1) ||
        exceeds(QpAttr::kMaxRdAtomic, values.max_rd_atomic, limits.max_qp_init_rd_atom) ||
        exceeds(QpAttr::kMaxDestRdAtomic, values.max_dest_rd_atomic, limits.max_qp_rd_atom) ||
        exceeds(QpAttr::kPathMigState, values.path_mig_state, kMaxMigrationState)) {
        return EINVAL;
    }
    if (given.contains(QpAttr::kRateLimit) &&
        (!is_rate(values.pacing, limits) ||
         !limits.rate_limit_services.contains(attributes_.service))) {
        return refuse(QpAttr::kRateLimit);
    }
    if (given.contains(QpAttr::kAccessFlags) && (values.access & ~kKnownAccess.bits) != 0) {
        return refuse(QpAttr::kAccessFlags);
    }
    if (attributes_.service == Service::kRawPacket &&
        of_port.link_layer != fabric::LinkLayer::kEthernet) {
        return context().refuse(EINVAL, "raw packets need a port on Ethernet, port {} is not",
                                port);
    }
    // A path leaves by the queue pair's own port, also when either changes in SQD.
    AddressVector path = given.contains(QpAttr::kAv) ? values.path : attributes_.path;
    const bool has_path = given.contains(QpAttr::kAv) || attributes_.path.port != kNoPort;
    if (has_path && path.port != port && given.intersects(QpAttr::kAv | QpAttr::kPort)) {
        refuse_port_of_path(context(), path.port, port);
        return refuse(QpAttr::kAv);
    }
    std::string why;
    const int error = given.contains(QpAttr::kAv) ? resolve_path(hca_, path, why) : 0;
    if (error != 0) {
        context().refuse(error, "ah_attr: {}", why);
    }
    refused = error == 0 ? QpAttrs() : QpAttrs(QpAttr::kAv);
    return error;
}

void QueuePair::apply(QpAttrs given, const QpValues& values) {
    const auto set = [given](QpAttr attr, auto& target, auto value) {
        if (given.contains(attr)) {
            target = value;
        }
    };
    set(QpAttr::kPkeyIndex, attributes_.pkey_index, values.pkey_index);
    set(QpAttr::kPort, attributes_.port, values.port);
    set(QpAttr::kQkey, attributes_.qkey, values.qkey);
    set(QpAttr::kAccessFlags, attributes_.access, AccessRights::from_bits(values.access));
    set(QpAttr::kAv, attributes_.path, values.path);
    if (given.contains(QpAttr::kAv)) {
        std::string why;
        resolve_path(hca_, attributes_.path, why);
    }
    if (given.contains(QpAttr::kPathMtu)) {
        attributes_.path_mtu = 128U << values.path_mtu;  // else it may be any number
    }
    set(QpAttr::kDestQpn, attributes_.dest_qpn, values.dest_qpn);
    const std::uint32_t first_psn = hca_.numbering().first_psn;
    set(QpAttr::kRqPsn, attributes_.rq_psn, Psn(values.rq_psn) + first_psn);
    set(QpAttr::kSqPsn, attributes_.sq_psn, Psn(values.sq_psn) + first_psn);
    set(QpAttr::kTimeout, attributes_.timeout, values.timeout);
    set(QpAttr::kRetryCnt, attributes_.retry_count, values.retry_count);
    set(QpAttr::kRnrRetry, attributes_.rnr_retry, values.rnr_retry);
    set(QpAttr::kMinRnrTimer, attributes_.min_rnr_timer, values.min_rnr_timer);
    set(QpAttr::kMaxRdAtomic, attributes_.max_rd_atomic, values.max_rd_atomic);
    set(QpAttr::kRateLimit, attributes_.pacing, values.pacing);
    set(QpAttr::kMaxDestRdAtomic, attributes_.max_dest_rd_atomic, values.max_dest_rd_atomic);
}

void QueuePair::fail(QpTrigger trigger, FaultCause cause) {
    if (calls_of_engine_ > 0) {
        failure_ = failure_ ? failure_ : EngineResult({trigger, cause});
        return;
    }
    const auto to = next_state(hca_.personality(), attributes_.state, trigger, attributes_.service);
    if (!to || *to == attributes_.state) {
        return;
    }
    enter(*to, trigger, cause);
    if (takes_queue_pairs_down(cause)) {
        raise(AsyncEvent::kQpFatal);
    }
}

// A failure while the engine was at work comes before what the engine found.
void QueuePair::end_failure(const EngineResult& of_engine) {
    failure_ = failure_ ? failure_ : of_engine;
    if (calls_of_engine_ == 0) {
        const EngineFailure failure = std::exchange(failure_, {}).failure();
        fail(failure.trigger, failure.cause);
    }
}

void QueuePair::enter(QpState to, QpTrigger trigger, FaultCause cause) {
    const QpState from = attributes_.state;
    attributes_.state = to;
    rings().state.value.store(static_cast<std::uint32_t>(to), std::memory_order_seq_cst);
    if (from != to) {
        hca_.trace(QpStateChanged{hca_.node(), attributes_.qpn, from, to, trigger, cause});
    } else {
        hca_.trace(QpStayed{hca_.node(), attributes_.qpn, to, trigger});
    }
    if (from < to && (to == QpState::kRtr || to == QpState::kRts) &&
        properties(attributes_.service).connected) {
        hca_.trace(QueuePairConnected{hca_.node(), attributes_.qpn, to, attributes_.dest_qpn,
                                      attributes_.rq_psn.value(), attributes_.sq_psn.value(),
                                      attributes_.path_mtu});
    }
    switch (to) {
        case QpState::kReset:
            reset();
            break;
        case QpState::kRtr:
            if (!properties(attributes_.service).segments) {
                attributes_.path_mtu =
                    to_bytes(hca_.port(attributes_.port).attributes().active_mtu);
            }
            if (engine_ != nullptr) {
                engine_->start_receiving();
            }
            break;
        case QpState::kRts:
            enter_rts(from);
            break;
        case QpState::kSqd:
            report_drained();
            break;
        case QpState::kErr:
            keep_payloads_in_flight();
            flush_sends();
            if (engine_ != nullptr) {
                engine_->flush_receive();
            }
            flush_receives();
            if (receives_.shared_queue() != nullptr && from != to) {
                raise(AsyncEvent::kQpLastWqeReached);
            }
            break;
        case QpState::kSqe:
            flush_sends();
            break;
        case QpState::kInit:
            break;
    }
}

void QueuePair::enter_rts(QpState from) {
    drained_ = false;
    const std::uint32_t producer = rings().send_producer.value.load(std::memory_order_acquire);
    if (engine_ != nullptr && from < QpState::kRts) {
        engine_->start_sending();
    } else if (engine_ != nullptr && from == QpState::kSqe) {
        engine_->resume_sending();
    }
    if (from == QpState::kSqd && !hca_.personality().rts_starts_sends_of_sqd) {
        return;
    }
    if (engine_ != nullptr || producer != 0) {
        engine().post(producer);
        run_engine([](Engine& engine) { return engine.run(); });
    }
}

void QueuePair::flush_sends() {
    const std::uint32_t producer = rings().send_producer.value.load(std::memory_order_seq_cst);
    if (engine_ != nullptr || producer != 0) {
        engine().post(producer);
        engine().flush_sends();
    }
}

QpAttributes QueuePair::fresh_attributes(Service service, std::uint32_t qpn) const {
    const Psn first(hca_.numbering().first_psn);
    return {.service = service, .qpn = qpn, .sq_psn = first, .rq_psn = first};
}

// Forgets every work request; the driver takes the completions that were not polled out of the CQ.
void QueuePair::reset() {
    SIMVERBS_ASSERT(calls_of_engine_ == 0, "QP {:#x}: RESET inside its engine", attributes_.qpn);
    for (CompletionQueue* const queue : {send_cq_, receive_cq_}) {
        if (queue != nullptr) {
            queue->write_late();
        }
    }
    stop_timers();
    give_up_tags();
    engine_ = nullptr;
    receives_.reset();
    rings().sends_done.value.store(0, std::memory_order_release);
    rings().send_producer.value.store(0, std::memory_order_release);
    rings().receive_producer.value.store(0, std::memory_order_release);
    const Service service = attributes_.service;
    const std::uint32_t qpn = attributes_.qpn;
    attributes_ = fresh_attributes(service, qpn);
    migration_ = nullptr;
    if (congestion_ != nullptr) {
        congestion_->reaction.reset();
    }
    notify_drained_ = drained_ = false;
}

// In SQD: once nothing that had started is left (IBA 10.3.1.5).
void QueuePair::report_drained() {
    if (attributes_.state != QpState::kSqd || drained_ ||
        (engine_ != nullptr && !engine_->drained())) {
        return;
    }
    drained_ = true;
    hca_.trace(QpStayed{hca_.node(), attributes_.qpn, QpState::kSqd, QpTrigger::kDrained});
    if (notify_drained_ || hca_.personality().drained_event_unasked) {
        raise(AsyncEvent::kSqDrained);
    }
}

Psn QueuePair::next_psn() const {
    return attributes_.state < QpState::kRts ? attributes_.sq_psn
                                             : progress().next_psn.value_or(attributes_.sq_psn);
}

Psn QueuePair::expected_psn() const {
    return attributes_.state < QpState::kRtr ? attributes_.rq_psn
                                             : progress().expected_psn.value_or(attributes_.rq_psn);
}

QueuePairReport QueuePair::report() const {
    QueuePairReport report;
    report.qpn = attributes_.qpn;
    report.dest_qpn = attributes_.dest_qpn;
    report.service = attributes_.service;
    report.state = attributes_.state;
    const EngineProgress progress = this->progress();
    report.next_psn = next_psn().value();
    report.expected_psn = expected_psn().value();
    report.sends = progress.sends;
    report.sends_done = progress.first_send;
    report.messages_received = messages_received_;
    report.sends_started = progress.started;
    report.receives = receives_.waiting(progress.last_srq) + (progress.keeps_receive ? 1U : 0U);
    report.dropped = dropped_;
    report.drop_cause = drop_cause_;
    report.retries_left = progress.retries_left;
    report.rnr_retries_left = progress.rnr_retries_left;
    report.rnr_naks = progress.rnr_naks;
    report.why_dead = context_->why_dead();
    if (armed(EngineTimer::kAcknowledge)) {
        report.answer_until = find_timer(EngineTimer::kAcknowledge)->deadline();
    }
    if (armed(EngineTimer::kRnr)) {
        report.rnr_until = find_timer(EngineTimer::kRnr)->deadline();
    }
    return report;
}

QueryQpReply QueuePair::query() const {
    QueryQpReply reply;
    reply.capacity = capacity();
    reply.draining = attributes_.state == QpState::kSqd && !drained_;
    QpValues& values = reply.values;
    values.state = static_cast<std::uint32_t>(attributes_.state);
    values.current_state = hca_.personality().query_reports_cur_state ? values.state : 0;
    values.path_mtu = static_cast<std::uint32_t>(
        fabric::largest_mtu_within(attributes_.path_mtu).value_or(fabric::Mtu::k256));
    values.qkey = attributes_.qkey;
    const std::uint32_t to_asked = Psn::kModulus - hca_.numbering().first_psn;
    values.rq_psn = (expected_psn() + to_asked).value();
    values.sq_psn = (next_psn() + to_asked).value();
    values.dest_qpn = attributes_.dest_qpn;
    values.access = attributes_.access.bits;
    values.pkey_index = attributes_.pkey_index;
    values.port = attributes_.state == QpState::kReset ? 0 : attributes_.port;
    values.timeout = attributes_.timeout;
    values.retry_count = attributes_.retry_count;
    values.rnr_retry = attributes_.rnr_retry;
    values.min_rnr_timer = attributes_.min_rnr_timer;
    values.max_rd_atomic = attributes_.max_rd_atomic;
    values.max_dest_rd_atomic = attributes_.max_dest_rd_atomic;
    values.path = attributes_.path;
    if (attributes_.path.port == kNoPort && hca_.personality().unset_path_reads_global) {
        values.path.is_global = true;
        values.path_mtu = static_cast<std::uint32_t>(fabric::Mtu::k256);
    }
    values.alternate.port = kNoPort;
    values.pacing = attributes_.pacing;
    values.path_mig_state = static_cast<std::uint32_t>(migration_state());
    if (migration_ != nullptr) {
        values.alternate = migration_->alternate.path;
        values.alternate_pkey_index = migration_->alternate.pkey_index;
        values.alternate_timeout = migration_->alternate.timeout;
    }
    return reply;
}

}  // namespace simverbs
