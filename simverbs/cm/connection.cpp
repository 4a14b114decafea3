#include "simverbs/cm/connection.hpp"

#include <cerrno>

#include "fabric/core/assert.hpp"

#include "simverbs/cm/times.hpp"

namespace simverbs::cm {
namespace {

bool fits(CmMessage message, const PrivateData& private_data) {
    return private_data.size() <= properties(message).private_bytes;
}
bool fits(CmMessage message, const PrivateData& info, const PrivateData& private_data) {
    return info.size() <= properties(message).info_bytes && fits(message, private_data);
}

// Returns the path with its ACK timeout, as a message carries it.
Path with_ack_timeout(const ConnectionPath& given, std::uint8_t ca_ack_delay) {
    Path path = given.path;
    path.local_ack_timeout = ack_timeout_code(ca_ack_delay, given.packet_life_time);
    return path;
}

// Returns the message that a REJ sent in this state refuses, or an MRA acknowledges.
CmAnswered refused_in(CmState state) {
    switch (state) {
        case CmState::kReqReceived:
        case CmState::kMraReqSent:
            return CmAnswered::kReq;
        case CmState::kRepReceived:
        case CmState::kMraRepSent:
            return CmAnswered::kRep;
        default:
            return CmAnswered::kOther;
    }
}

}  // namespace

// Leaving a state stops its timer and drops the answer that it would send again. An MRA is the
// exception: the message that it acknowledges stays outstanding.
void Connection::move(CmTrigger trigger) {
    const std::optional<CmState> to = next_state(state_, trigger);
    SIMVERBS_ASSERT(to, "connection {} in {} cannot {}", id_.value(), to_string(state_),
                    to_string(trigger));
    if (*to == state_) {
        return;
    }
    state_ = *to;
    if (state_ == CmState::kMraReqReceived || state_ == CmState::kMraRepReceived) {
        return;
    }
    stop_waiting();
    answer_.reset();
    if (state_ == CmState::kTimewait) {
        effects_.release_remote_qp(*this);
        effects_.set_timer(id_, coded_time(qp_.ack_timeout));
    } else if (state_ == CmState::kIdle) {
        effects_.release_remote(*this);
        remote_ = {};
        lap_state_ = LapState::kUninitialized;
    }
}

void Connection::move(LapTrigger trigger) {
    const std::optional<LapState> to = next_state(lap_state_, trigger);
    SIMVERBS_ASSERT(to, "connection {} in {} cannot {}", id_.value(), to_string(lap_state_),
                    to_string(trigger));
    if (*to == LapState::kIdle) {
        stop_waiting();
    }
    lap_state_ = *to;
}

bool Connection::lap_accepts(LapTrigger trigger) const {
    return state_ == CmState::kEstablished && next_state(lap_state_, trigger).has_value();
}

// Makes a transaction id as Linux does: the agent in the high half, the connection in the low half.
std::uint64_t Connection::new_transaction() const {
    return std::uint64_t{identity_.transaction_id_high} << 32 | local_comm_id();
}

void Connection::send_until_answered(const Message& message, fabric::SimDuration timeout) {
    pending_ = Pending{build(message), timeout, max_cm_retries_};
    effects_.send(address_, pending_->datagram);
    effects_.set_timer(id_, timeout);
}

void Connection::stop_waiting() {
    pending_.reset();
    effects_.stop_timer(id_);
}

void Connection::set_alternate(const ConnectionPath& alternate) {
    qp_.alternate = with_ack_timeout(alternate, identity_.ack_delay);
    qp_.alternate_ack_timeout = ack_timeout_code(alternate.packet_life_time);
}

void Connection::start_listening(std::uint64_t service_id) {
    move(CmTrigger::kListen);
    service_id_ = service_id;
}

int Connection::send_req(const ReqParameters& parameters) {
    const bool is_connected = parameters.service == Service::kRc ||
                              parameters.service == Service::kUc ||
                              parameters.service == Service::kXrcIni;
    if (!accepts(CmTrigger::kSendReq) || !is_connected ||
        !fits(CmMessage::kReq, parameters.private_data)) {
        return EINVAL;
    }
    service_id_ = parameters.service_id;
    address_ = parameters.primary.address;
    timeout_ = coded_time(parameters.primary.packet_life_time) * 2 +
               coded_time(parameters.remote_cm_response_timeout);
    max_cm_retries_ = parameters.max_cm_retries;
    qp_ = {.service = parameters.service,
           .qpn = parameters.qpn,
           .receive_psn = parameters.starting_psn,
           .pkey = parameters.pkey,
           .path_mtu = parameters.path_mtu,
           .responder_resources = parameters.responder_resources,
           .initiator_depth = parameters.initiator_depth,
           .retry_count = parameters.retry_count,
           .rnr_retry_count = parameters.rnr_retry_count,
           .ack_timeout = ack_timeout_code(parameters.primary.packet_life_time),
           .primary = with_ack_timeout(parameters.primary, identity_.ack_delay)};
    if (parameters.alternate) {
        set_alternate(*parameters.alternate);
    }
    transaction_ = new_transaction();
    Req request{.transaction_id = transaction_,
                .local_comm_id = local_comm_id(),
                .ece = parameters.ece,
                .service_id = parameters.service_id,
                .local_ca_guid = identity_.ca_guid,
                .local_qpn = parameters.qpn,
                .initiator_depth = parameters.initiator_depth,
                .remote_cm_response_timeout = parameters.remote_cm_response_timeout,
                .end_to_end_flow_control = parameters.end_to_end_flow_control,
                .starting_psn = parameters.starting_psn,
                .local_cm_response_timeout = parameters.local_cm_response_timeout,
                .pkey = parameters.pkey,
                .path_mtu = parameters.path_mtu,
                .max_cm_retries = parameters.max_cm_retries,
                .primary = qp_.primary,
                .alternate = qp_.alternate.value_or(Path{}),
                .private_data = parameters.private_data};
    set_transport(request, parameters.service);
    // An XRC initiator answers no request and has no receives (IBA A14).
    if (parameters.service != Service::kXrcIni) {
        request.responder_resources = parameters.responder_resources;
        request.retry_count = parameters.retry_count;
        request.rnr_retry_count = parameters.rnr_retry_count;
        request.srq = parameters.srq;
    }
    move(CmTrigger::kSendReq);
    send_until_answered(request, timeout_);
    return 0;
}

int Connection::send_rep(const RepParameters& parameters) {
    if (!accepts(CmTrigger::kSendRep) || !fits(CmMessage::kRep, parameters.private_data)) {
        return EINVAL;
    }
    qp_.qpn = parameters.qpn;
    qp_.receive_psn = parameters.starting_psn;
    qp_.responder_resources = parameters.responder_resources;
    qp_.initiator_depth = parameters.initiator_depth;
    Rep reply = answer<Rep>();
    reply.ece = parameters.ece;
    reply.starting_psn = parameters.starting_psn;
    reply.responder_resources = parameters.responder_resources;
    reply.target_ack_delay = identity_.ack_delay;
    reply.failover_accepted = parameters.failover_accepted;
    reply.rnr_retry_count = parameters.rnr_retry_count;
    reply.local_ca_guid = identity_.ca_guid;
    reply.private_data = parameters.private_data;
    if (qp_.service == Service::kXrcTgt) {
        reply.srq = true;
        reply.local_eecn = parameters.qpn;
    } else {
        reply.initiator_depth = parameters.initiator_depth;
        reply.end_to_end_flow_control = parameters.end_to_end_flow_control;
        reply.srq = parameters.srq;
        reply.local_qpn = parameters.qpn;
    }
    move(CmTrigger::kSendRep);
    send_until_answered(reply, timeout_);
    return 0;
}

int Connection::send_rtu(const PrivateData& private_data) {
    if (!accepts(CmTrigger::kSendRtu) || !fits(CmMessage::kRtu, private_data)) {
        return EINVAL;
    }
    Rtu ready = answer<Rtu>();
    ready.private_data = private_data;
    move(CmTrigger::kSendRtu);
    answer_ = build(ready);
    effects_.send(address_, *answer_);
    return 0;
}

int Connection::send_mra(std::uint8_t service_timeout, const PrivateData& private_data,
                         MraMoment moment) {
    const bool of_lap = lap_accepts(LapTrigger::kSendMra);
    if ((!of_lap && !accepts(CmTrigger::kSendMra)) || !fits(CmMessage::kMra, private_data)) {
        return EINVAL;
    }
    Mra acknowledgement = answer<Mra>();
    acknowledgement.answers = refused_in(state_);
    acknowledgement.service_timeout = service_timeout;
    acknowledgement.private_data = private_data;
    const Datagram datagram = build(acknowledgement);
    if (of_lap) {
        move(LapTrigger::kSendMra);
        lap_answer_ = datagram;
    } else {
        move(CmTrigger::kSendMra);
        answer_ = datagram;
    }
    if (moment == MraMoment::kNow) {
        effects_.send(address_, datagram);
    }
    return 0;
}

int Connection::send_rej(RejectReason reason, const PrivateData& info,
                         const PrivateData& private_data) {
    if (!accepts(CmTrigger::kSendRej) || !fits(CmMessage::kRej, info, private_data)) {
        return EINVAL;
    }
    Rej reject = answer<Rej>();
    if (state_ == CmState::kReqReceived) {
        reject.local_comm_id = 0;  // the peer has not heard of it (IBA 12.6.7)
    }
    reject.answers = refused_in(state_);
    reject.reason = reason;
    reject.info = info;
    reject.private_data = private_data;
    move(CmTrigger::kSendRej);
    effects_.send(address_, build(reject));
    return 0;
}

int Connection::send_dreq(const PrivateData& private_data) {
    if (!accepts(CmTrigger::kSendDreq) || !fits(CmMessage::kDreq, private_data)) {
        return EINVAL;
    }
    const Dreq request{.transaction_id = new_transaction(),
                       .local_comm_id = local_comm_id(),
                       .remote_comm_id = remote_.comm_id,
                       .remote_qpn = remote_.qpn,
                       .private_data = private_data};
    move(CmTrigger::kSendDreq);
    send_until_answered(request, timeout_);
    return 0;
}

int Connection::send_drep(const PrivateData& private_data) {
    if (!accepts(CmTrigger::kSendDrep) || !fits(CmMessage::kDrep, private_data)) {
        return EINVAL;
    }
    Drep reply = answer<Drep>();
    reply.private_data = private_data;
    move(CmTrigger::kSendDrep);
    answer_ = build(reply);
    effects_.send(address_, *answer_);
    return 0;
}

int Connection::send_lap(const LapParameters& parameters) {
    if (!lap_accepts(LapTrigger::kSendLap) || !fits(CmMessage::kLap, parameters.private_data)) {
        return EINVAL;
    }
    set_alternate(parameters.alternate);
    const Lap load{.transaction_id = new_transaction(),
                   .local_comm_id = local_comm_id(),
                   .remote_comm_id = remote_.comm_id,
                   .remote_qpn = remote_.qpn,
                   .remote_cm_response_timeout = parameters.remote_cm_response_timeout,
                   .alternate = *qp_.alternate,
                   .private_data = parameters.private_data};
    move(LapTrigger::kSendLap);
    send_until_answered(load, timeout_);
    return 0;
}

int Connection::send_apr(AprStatus status, const PrivateData& info,
                         const PrivateData& private_data) {
    if (!lap_accepts(LapTrigger::kSendApr) || !fits(CmMessage::kApr, info, private_data)) {
        return EINVAL;
    }
    Apr response = answer<Apr>();
    response.status = status;
    response.info = info;
    response.private_data = private_data;
    move(LapTrigger::kSendApr);
    effects_.send(address_, build(response));
    return 0;
}

int Connection::send_sidr_req(const SidrReqParameters& parameters) {
    if (!accepts(CmTrigger::kSendSidrReq) || !fits(CmMessage::kSidrReq, parameters.private_data)) {
        return EINVAL;
    }
    service_id_ = parameters.service_id;
    address_ = parameters.address;
    max_cm_retries_ = parameters.max_cm_retries;
    const SidrReq request{.transaction_id = new_transaction(),
                          .request_id = local_comm_id(),
                          .pkey = parameters.pkey,
                          .service_id = parameters.service_id,
                          .private_data = parameters.private_data};
    move(CmTrigger::kSendSidrReq);
    send_until_answered(request, parameters.timeout);
    return 0;
}

int Connection::send_sidr_rep(const SidrRepParameters& parameters) {
    if (!accepts(CmTrigger::kSendSidrRep) ||
        !fits(CmMessage::kSidrRep, parameters.info, parameters.private_data)) {
        return EINVAL;
    }
    const SidrRep reply{.transaction_id = transaction_,
                        .request_id = remote_.comm_id,
                        .status = parameters.status,
                        .ece = parameters.ece,
                        .qpn = parameters.qpn,
                        .service_id = service_id_,
                        .qkey = parameters.qkey,
                        .info = parameters.info,
                        .private_data = parameters.private_data};
    move(CmTrigger::kSendSidrRep);
    effects_.send(address_, build(reply));
    return 0;
}

int Connection::establish() {
    if (state_ == CmState::kEstablished) {
        return EISCONN;
    }
    if (!accepts(CmTrigger::kEstablish)) {
        return EINVAL;
    }
    move(CmTrigger::kEstablish);
    return 0;
}

int Connection::migrate(const Address& address) {
    if (!lap_accepts(LapTrigger::kMigrated) || !qp_.alternate) {
        return EINVAL;
    }
    move(LapTrigger::kMigrated);
    address_ = address;
    qp_.primary = *qp_.alternate;
    qp_.ack_timeout = qp_.alternate_ack_timeout;
    return 0;
}

// Sends what ib_destroy_cm_id() of Linux sends. A DREQ is not repeated.
void Connection::leave() {
    switch (state_) {
        case CmState::kReqSent:
        case CmState::kMraReqReceived: {
            PrivateData guid(8);
            fabric::mad::set(guid, {0, 64}, identity_.ca_guid.value());
            send_rej(RejectReason::kTimeout, guid, {});
            break;
        }
        case CmState::kReqReceived:
        case CmState::kMraReqSent:
        case CmState::kRepReceived:
        case CmState::kMraRepSent:
        case CmState::kRepSent:
        case CmState::kMraRepReceived:
            send_rej(RejectReason::kConsumerDefined, {}, {});
            break;
        case CmState::kEstablished:
            if (qp_.service != Service::kXrcTgt) {
                send_dreq({});
            }
            break;
        case CmState::kDreqReceived:
            send_drep({});
            break;
        case CmState::kSidrReqReceived:
            send_sidr_rep({.status = SidrStatus::kRejected});
            break;
        case CmState::kListening:
            move(CmTrigger::kStopListening);
            break;
        case CmState::kIdle:
        case CmState::kDreqSent:
        case CmState::kTimewait:
        case CmState::kSidrReqSent:
            break;
    }
    stop_waiting();
    effects_.release_remote(*this);
}

}  // namespace simverbs::cm
