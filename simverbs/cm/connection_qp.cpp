// The attributes that a connection gives its queue pair, state by state.
#include "simverbs/cm/connection.hpp"

namespace simverbs::cm {
namespace {

// Returns true from the REQ on, until the connection ends.
bool has_request(CmState state) {
    return state >= CmState::kReqSent && state <= CmState::kEstablished;
}
// Returns true while both sides know each other's queue pair.
bool knows_peer(CmState state) {
    return has_request(state) && state != CmState::kReqSent && state != CmState::kMraReqReceived;
}

}  // namespace

std::optional<QpAttrs> Connection::qp_attributes(QpState to) const {
    using enum QpAttr;
    const bool is_responder = qp_.service == Service::kRc || qp_.service == Service::kXrcTgt;
    const bool is_requester = qp_.service == Service::kRc || qp_.service == Service::kXrcIni;
    const QpAttrs state(kState);
    if (to == QpState::kInit && has_request(state_)) {
        return state | kAccessFlags | kPkeyIndex | kPort;
    }
    if (to == QpState::kRtr && knows_peer(state_)) {
        return state | kAv | kPathMtu | kDestQpn | kRqPsn |
               (is_responder ? QpAttrs(kMaxDestRdAtomic) | kMinRnrTimer : QpAttrs()) |
               (qp_.alternate ? QpAttrs(kAltPath) : QpAttrs());
    }
    if (to == QpState::kRts && knows_peer(state_)) {
        if (lap_state_ != LapState::kUninitialized) {
            return QpAttrs(kAltPath) | kPathMigState;
        }
        return state | kSqPsn |
               (is_requester ? QpAttrs(kRetryCnt) | kRnrRetry | kMaxRdAtomic : QpAttrs()) |
               (is_requester || is_responder ? QpAttrs(kTimeout) : QpAttrs()) |
               (qp_.alternate ? QpAttrs(kPathMigState) : QpAttrs());
    }
    return std::nullopt;
}

}  // namespace simverbs::cm
