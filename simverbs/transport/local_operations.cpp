// Requests that the device carries out by itself, in the order of the send queue: BIND_MW and
// LOCAL_INV (IBA 10.8.3). They take no PSN, so nothing of them is ever sent again.
#include "simverbs/transport/requester.hpp"

namespace simverbs {

FaultCause Requester::bind(const SendWqe& wqe) {
    return effects_.bind_window(binding_of(wqe)) ? FaultCause::kSuccess : FaultCause::kBindRefused;
}

FaultCause Requester::invalidate(std::uint32_t rkey) {
    switch (effects_.invalidate(kNoSrq, rkey)) {
        case InvalidateVerdict::kInvalidated:
            return FaultCause::kSuccess;
        case InvalidateVerdict::kType1:
            return FaultCause::kLocalInvalidateOfType1;
        case InvalidateVerdict::kRefused:
            break;
    }
    return FaultCause::kLocalInvalidateRefused;
}

// At the cursor. One that was carried out before a rewind is passed over. True: look on.
bool Requester::execute_local(SendRequest& request) {
    if (!request.started) {
        const FaultCause cause = request.opcode->opcode == WrOpcode::kBindMw
                                     ? bind(request.wqe)
                                     : invalidate(request.wqe.immediate);
        if (cause != FaultCause::kSuccess) {
            fail_request(request, cause);
            return true;  // it fails in its turn
        }
        request.started = true;
    }
    ++cursor_;
    retire_local();
    complete_acknowledged();
    return true;
}

// Those that everything before is acknowledged of are complete.
void Requester::retire_local() {
    while (unacknowledged_ != window_.fetched()) {
        SendRequest& request = window_.at(unacknowledged_);
        if (!request.is_local() || !request.started) {
            return;
        }
        request.acknowledged = true;
        ++unacknowledged_;
    }
}

}  // namespace simverbs
