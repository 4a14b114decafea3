// The inputs of a connection: messages of its peer, and the ends of its times.
#include <utility>

#include "fabric/core/assert.hpp"

#include "simverbs/cm/connection.hpp"
#include "simverbs/cm/times.hpp"

namespace simverbs::cm {
namespace {

// Returns a path of the peer as seen from this side.
Path reversed(Path path) {
    std::swap(path.local_lid, path.remote_lid);
    std::swap(path.local_gid, path.remote_gid);
    return path;
}

// Returns the ACK timeout of a path; 0 would be the life time of no packet (Linux).
std::uint8_t timewait_code(const Path& path) {
    return path.local_ack_timeout > 0 ? path.local_ack_timeout : 1;
}

}  // namespace

void Connection::request_arrived(const Req& request, Service service, const Address& from) {
    move(CmTrigger::kReq);
    service_id_ = request.service_id;
    transaction_ = request.transaction_id;
    address_ = from;
    timeout_ = coded_time(request.local_cm_response_timeout);
    max_cm_retries_ = request.max_cm_retries;
    remote_ = {request.local_ca_guid, request.local_comm_id, request.local_qpn};
    qp_ = {.service = service,
           .send_psn = request.starting_psn,
           .pkey = request.pkey,
           .path_mtu = request.path_mtu,
           .responder_resources = request.initiator_depth,
           .initiator_depth = request.responder_resources,
           .retry_count = request.retry_count,
           .rnr_retry_count = request.rnr_retry_count,
           .ack_timeout = timewait_code(request.primary),
           .primary = reversed(request.primary)};
    // A sender in another subnet does not know the LIDs of this one (Linux cm_process_routed_req).
    if (!request.primary.subnet_local && qp_.primary.remote_lid == fabric::kPermissiveLid) {
        qp_.primary.remote_lid = from.remote.lid;
        qp_.primary.sl = from.remote.sl;
    }
    if (request.alternate.local_lid != fabric::kNoLid) {
        qp_.alternate = reversed(request.alternate);
        qp_.alternate_ack_timeout = timewait_code(request.alternate);
    }
}

void Connection::request_arrived(const SidrReq& request, const Address& from) {
    move(CmTrigger::kSidrReq);
    service_id_ = request.service_id;
    transaction_ = request.transaction_id;
    address_ = from;
    remote_.comm_id = request.request_id;
}

void Connection::request_repeated(const Address& from) {
    if (!accepts(CmTrigger::kReqAgain)) {
        return;
    }
    if (state_ == CmState::kTimewait) {
        Rej reject = answer<Rej>();
        reject.reason = RejectReason::kStaleConnection;
        effects_.send(from, build(reject));
    } else {
        effects_.send(from, *answer_);
    }
}

std::optional<EventType> Connection::arrived(const Mra& message, const Address&) {
    const fabric::SimDuration timeout =
        coded_time(message.service_timeout) + coded_time(qp_.ack_timeout);
    const auto wait_longer = [this, timeout] {
        pending_->timeout = timeout;
        effects_.set_timer(id_, timeout);
        return EventType::kMraReceived;
    };
    switch (message.answers) {
        case CmAnswered::kReq:
        case CmAnswered::kRep: {
            const CmTrigger trigger =
                message.answers == CmAnswered::kReq ? CmTrigger::kMraReq : CmTrigger::kMraRep;
            if (!accepts(trigger)) {
                return std::nullopt;
            }
            move(trigger);
            return wait_longer();
        }
        case CmAnswered::kOther:
            if (lap_accepts(LapTrigger::kMra)) {
                move(LapTrigger::kMra);
                return wait_longer();
            }
            return std::nullopt;
    }
    return std::nullopt;  // a value that is reserved
}

std::optional<EventType> Connection::arrived(const Rej& message, const Address&) {
    const CmTrigger trigger =
        message.reason == RejectReason::kStaleConnection ? CmTrigger::kRejStale : CmTrigger::kRej;
    if (!accepts(trigger)) {
        return std::nullopt;
    }
    move(trigger);
    return EventType::kRejReceived;
}

std::optional<EventType> Connection::arrived(const Rep& message, const Address& from) {
    if (!accepts(CmTrigger::kRep)) {
        return std::nullopt;
    }
    move(CmTrigger::kRep);
    if (state_ != CmState::kRepReceived) {
        if (answer_) {
            effects_.send(from, *answer_);
        }
        return std::nullopt;
    }
    remote_ = {message.local_ca_guid, message.local_comm_id, qpn_of(message)};
    qp_.send_psn = message.starting_psn;
    qp_.initiator_depth = message.responder_resources;
    qp_.responder_resources = message.initiator_depth;
    qp_.rnr_retry_count = message.rnr_retry_count;
    const auto with_delay = [&message](std::uint8_t& code) {
        code = ack_timeout_code(message.target_ack_delay, static_cast<std::uint8_t>(code - 1));
    };
    with_delay(qp_.ack_timeout);
    if (qp_.alternate) {
        with_delay(qp_.alternate_ack_timeout);
    }
    return EventType::kRepReceived;
}

std::optional<EventType> Connection::arrived(const Rtu&, const Address&) {
    if (!accepts(CmTrigger::kRtu)) {
        return std::nullopt;
    }
    move(CmTrigger::kRtu);
    return EventType::kRtuReceived;
}

std::optional<EventType> Connection::arrived(const Dreq& message, const Address& from) {
    if (!accepts(CmTrigger::kDreq) || message.remote_qpn != qp_.qpn) {
        return std::nullopt;
    }
    transaction_ = message.transaction_id;
    if (state_ == CmState::kTimewait) {
        Datagram reply = answer_ ? *answer_ : build(answer<Drep>());
        reply.set(fabric::mad::header::kTransactionId, transaction_);
        effects_.send(from, reply);
        return std::nullopt;
    }
    move(CmTrigger::kDreq);
    return EventType::kDreqReceived;
}

std::optional<EventType> Connection::arrived(const Drep&, const Address&) {
    if (!accepts(CmTrigger::kDrep)) {
        return std::nullopt;
    }
    move(CmTrigger::kDrep);
    return EventType::kDrepReceived;
}

std::optional<EventType> Connection::arrived(const SidrRep&, const Address&) {
    if (!accepts(CmTrigger::kSidrRep)) {
        return std::nullopt;
    }
    move(CmTrigger::kSidrRep);
    return EventType::kSidrRepReceived;
}

std::optional<EventType> Connection::arrived(const Lap& message, const Address& from) {
    if (!lap_accepts(LapTrigger::kLap)) {
        return std::nullopt;
    }
    move(LapTrigger::kLap);
    if (lap_state_ != LapState::kReceived) {
        effects_.send(from, *lap_answer_);
        return std::nullopt;
    }
    transaction_ = message.transaction_id;
    qp_.alternate = reversed(message.alternate);
    qp_.alternate_ack_timeout = timewait_code(message.alternate);
    return EventType::kLapReceived;
}

std::optional<EventType> Connection::arrived(const Apr&, const Address&) {
    if (!lap_accepts(LapTrigger::kApr)) {
        return std::nullopt;
    }
    move(LapTrigger::kApr);
    return EventType::kAprReceived;
}

std::optional<EventType> Connection::timer_expired() {
    if (state_ == CmState::kTimewait) {
        move(CmTrigger::kTimewaitOver);
        return EventType::kTimewaitExit;
    }
    SIMVERBS_ASSERT(pending_, "connection {} in {} waits for nothing", id_.value(),
                    to_string(state_));
    if (pending_->retries_left > 0) {
        --pending_->retries_left;
        effects_.send(address_, pending_->datagram);
        effects_.set_timer(id_, pending_->timeout);
        return std::nullopt;
    }
    if (state_ == CmState::kEstablished) {
        move(LapTrigger::kTimeout);
        return EventType::kLapError;
    }
    const EventType error = state_ == CmState::kDreqSent      ? EventType::kDreqError
                            : state_ == CmState::kSidrReqSent ? EventType::kSidrReqError
                            : state_ == CmState::kRepSent || state_ == CmState::kMraRepReceived
                                ? EventType::kRepError
                                : EventType::kReqError;
    move(CmTrigger::kTimeout);
    return error;
}

}  // namespace simverbs::cm
