#include "simverbs/world/fault_board.hpp"

namespace simverbs {

fabric::FaultId FaultBoard::drop_nth(fabric::LinkDirection& direction, std::uint64_t nth) {
    const fabric::FaultId id(++last_id_);
    faults_.emplace(id, std::make_unique<fabric::DropNth>(direction, network_.bus(), nth, id));
    return id;
}

fabric::FaultId FaultBoard::drop_all(fabric::LinkDirection& direction) {
    const fabric::FaultId id(++last_id_);
    faults_.emplace(id, std::make_unique<fabric::DropAll>(direction, network_.bus(), id));
    return id;
}

fabric::FaultId FaultBoard::rewrite_nth(fabric::LinkDirection& direction, std::uint64_t nth,
                                        std::uint8_t opcode) {
    const fabric::FaultId id(++last_id_);
    const auto rewrite = [opcode](fabric::Frame& frame) {
        if (!frame.is_management) {
            frame.transport_as<Packet>().opcode = opcode;
        }
    };
    faults_.emplace(
        id, std::make_unique<fabric::RewriteNth>(direction, network_.bus(), nth, rewrite, id));
    return id;
}

std::optional<fabric::FaultId> FaultBoard::fail_next(Hca& hca, QueuePair& qp, CompletedQueue queue,
                                                     WcStatus status, FaultCause cause) {
    const fabric::FaultId id(last_id_ + 1);
    if (!qp.fail_next(queue, {id, status, cause})) {
        return std::nullopt;
    }
    ++last_id_;
    faults_.emplace(id, OfQueuePair{&hca, qp.qpn()});
    return id;
}

bool FaultBoard::clear(fabric::FaultId id) {
    const auto found = faults_.find(id);
    if (found == faults_.end()) {
        return false;
    }
    if (const auto* fault = std::get_if<OfQueuePair>(&found->second)) {
        if (QueuePair* qp = fault->hca->qps().find(fault->qpn); qp != nullptr) {
            qp->spare_next(id);
        }
    }
    faults_.erase(found);
    return true;
}

bool FaultBoard::break_ring(Hca& hca, QueuePair& qp, CompletedQueue queue) {
    const bool send = queue == CompletedQueue::kSend;
    const FaultCause cause =
        send ? FaultCause::kSendRingUnreadable : FaultCause::kReceiveRingUnreadable;
    const QpAttributes& attributes = qp.attributes();
    if (!next_state(hca.personality(), attributes.state, QpTrigger::kQpError, attributes.service) ||
        attributes.state == QpState::kErr) {
        return false;
    }
    hca.trace_fault(fabric::FaultId(++last_id_), send ? "break send ring" : "break receive ring",
                    qp.qpn());
    qp.fail(QpTrigger::kQpError, cause);
    return true;
}

void FaultBoard::break_ring(Hca& hca, SharedReceiveQueue& srq) {
    hca.trace_fault(fabric::FaultId(++last_id_), "break shared ring", 0);
    srq.fail();
}

void FaultBoard::kill(Hca& hca) {
    hca.trace_fault(fabric::FaultId(++last_id_), "kill device", 0);
    hca.die();
}

}  // namespace simverbs
