// Retries: what the requester does when an answer does not come, and how a request ends.
#include "fabric/core/assert.hpp"

#include "simverbs/transport/requester.hpp"

namespace simverbs {

EngineResult Requester::timer_expired(EngineTimer timer) {
    if (stopped()) {
        return {};
    }
    if (timer == EngineTimer::kTransmitted) {
        acknowledge_before(leaving_end_);
        return run();
    }
    if (timer == EngineTimer::kRate) {
        return run();
    }
    if (timer == EngineTimer::kRnr) {
        move(RequesterEvent::kRnrExpired);
        // Another copy of the packet may have found a receive in the meantime.
        if (distance(oldest_psn_, sent_end_) > 0) {
            rewind(resume_psn());
        }
        return run();
    }
    effects_.count(HwCounter::kLocalAckTimeoutErr);
    retry_from(resume_psn(), FaultCause::kPacketsLost);
    transmit_pending();
    if (waits_for_receive(state_)) {
        watch_for_answer();  // its time runs on, where waiting for a receiver counts
    }
    return take_failure();
}

// Later PSNs were answered, this one was not.
void Requester::response_lost(const Packet& answer) {
    effects_.discarded(answer, PacketFate::kResponseMissing);
    if (!stopped() && !is_recovering(state_)) {
        effects_.count(HwCounter::kImpliedNakSeqErr);
        retry_from(resume_psn(), FaultCause::kPacketsLost);
    }
}

// The PSN from which transmission would have to start again.
Psn Requester::resume_psn() const {
    return oldest_psn_;
}

void Requester::retry_from(Psn psn, FaultCause cause) {
    if (retries_left_ == 0 && effects_.migrate()) {
        retries_left_ = attributes_.retry_count;
    } else if (retries_left_ == 0) {
        fail_oldest(WcStatus::kRetryExcErr, cause);
        return;
    } else {
        --retries_left_;
    }
    rewind(psn);
}

void Requester::rewind(Psn psn) {
    for (std::uint32_t index = unacknowledged_; index != window_.fetched(); ++index) {
        const SendRequest& request = window_.at(index);
        if (!request.started) {
            break;
        }
        const std::int32_t into = distance(request.first_psn, psn);
        if (into >= 0 && into < static_cast<std::int32_t>(request.packets)) {
            cursor_ = index;
            cursor_packet_ = static_cast<std::uint32_t>(into);
            window_start_ = psn;
            since_ack_request_ = 0;
            move(RequesterEvent::kRewind);
            return;
        }
    }
    SIMVERBS_ASSERT(false, "QP {:#x} rewinds to PSN {}, which no request on the wire has",
                    attributes_.qpn, psn.value());
}

// Requests before the oldest unanswered one are complete: it fails, and the queue pair with it.
void Requester::fail_oldest(WcStatus status, FaultCause cause) {
    SIMVERBS_ASSERT(window_.head() == unacknowledged_ && window_.head() != window_.fetched(),
                    "QP {:#x} has no oldest request to fail", attributes_.qpn);
    move(RequesterEvent::kStop);
    effects_.disarm(EngineTimer::kAcknowledge);
    effects_.disarm(EngineTimer::kRnr);
    complete_head(status, cause);
    failure_ = EngineFailure{QpTrigger::kSendError, cause};
}

void Requester::complete_head(WcStatus status, FaultCause cause) {
    const SendRequest& request = window_.at(window_.head());
    if (request.of_device) [[unlikely]] {
        end_device_work(request.opcode->returns_data, cause);
        return;
    }
    SendCompletion completion;
    completion.wr_id = request.wqe.wr_id;
    completion.status = status;
    completion.cause = cause;
    completion.opcode = request.opcode == nullptr ? WcOpcode::kSend : request.opcode->completion;
    completion.freed_to = request.slot + 1;
    if (status == WcStatus::kSuccess &&
        (request.opcode->returns_data || personality_.send_completion_has_length)) {
        completion.byte_length = static_cast<std::uint32_t>(request.length);
        completion.has_immediate = request.opcode->trailer == Trailer::kImmediate;
    }
    const bool stays_silent =
        request.opcode != nullptr && request.opcode->opcode == WrOpcode::kBindMw &&
        !personality_.failed_unsignaled_bind_completes && status != WcStatus::kWrFlushErr;
    const bool signaled = (status != WcStatus::kSuccess && !stays_silent) ||
                          has_flag(request.wqe, SendFlag::kSignaled);
    if (request.retransmitted) {
        effects_.keep_payloads_in_flight();
    }
    window_.pop_head();
    if (!effects_.complete(completion, signaled)) {
        move(RequesterEvent::kStop);
    }
}

void Requester::end_device_work(bool is_read, FaultCause cause) {
    if (window_.at(window_.head()).retransmitted) {
        effects_.keep_payloads_in_flight();
    }
    window_.pop_head();
    if (is_read && !effects_.rendezvous_ended(cause)) {
        move(RequesterEvent::kStop);
    }
}

}  // namespace simverbs
