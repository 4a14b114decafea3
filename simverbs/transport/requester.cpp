// Commands of the queue pair, and the choice of the next request; checks of a request are in
// preparation.cpp, its packets in transmission.cpp, answers in completer.cpp, retries in
// recovery.cpp.
#include "simverbs/transport/requester.hpp"

#include "fabric/core/assert.hpp"

namespace simverbs {
namespace {

// A PSN is old or new relative to half the circle (IBA 9.7.2): never more than that on the wire.
constexpr std::uint32_t kMaxPsnsOutstanding = Psn::kModulus / 2 - 1;

}  // namespace

Requester::Requester(const QpAttributes& attributes, const Personality& personality,
                     const WorkQueueShape& shape, QpMemory memory, Effects& effects)
    : attributes_(attributes),
      personality_(personality),
      service_(properties(attributes.service)),
      memory_(memory),
      effects_(effects),
      window_(shape),
      next_psn_(attributes.sq_psn) {}

void Requester::start() {
    next_psn_ = oldest_psn_ = sent_end_ = window_start_ = attributes_.sq_psn;
    transmissions_.start(next_psn_);
    retries_left_ = attributes_.retry_count;
    rnr_retries_left_ = attributes_.rnr_retry;
    rnr_naks_ = 0;
    since_ack_request_ = 0;
    move(RequesterEvent::kStart);
}

void Requester::move(RequesterEvent event) {
    const std::optional<RequesterState> to = next_state(state_, event);
    SIMVERBS_ASSERT(to, "QP {:#x}: a requester in {} has no move on '{}'", attributes_.qpn,
                    to_string(state_), to_string(event));
    state_ = *to;
}

void Requester::resume() {
    next_psn_ = sent_end_;
    const Psn psn = next_psn_;
    start();
    next_psn_ = oldest_psn_ = sent_end_ = window_start_ = psn;
    transmissions_.start(psn);
}

void Requester::post(std::uint32_t producer) {
    window_.set_posted(producer);
}

bool Requester::drained() const {
    return unacknowledged_ == cursor_ && cursor_packet_ == 0 &&
           distance(oldest_psn_, sent_end_) <= 0;
}

EngineResult Requester::run() {
    transmit_pending();
    return take_failure();
}

void Requester::transmit_pending() {
    if (stopped() || waits_for_receive(state_)) {
        return;
    }
    while (!stopped() && transmit_next()) {
    }
    if (!stopped()) {
        watch_for_answer();
    }
}

bool Requester::transmit_next() {
    SendRequest* request = at_cursor();
    if (request == nullptr) {
        return false;
    }
    if (!request->started && attributes_.state != QpState::kRts) {
        return false;  // SQD: those that have started go on, no other begins
    }
    if (request->failure != WcStatus::kSuccess) {
        // Found before a packet left: it fails in its turn, after those before it.
        if (cursor_ == window_.head()) {
            fail_oldest(request->failure, request->cause);
        }
        return false;
    }
    if (!request->started && !may_start(*request)) {
        return false;
    }
    if (request->is_local()) {
        return execute_local(*request);
    }
    if (window_full(*request) || waits_for_its_rate()) {
        return false;
    }
    if (!request->opcode->returns_data && effects_.key_generation() != request->key_generation &&
        !open_spans(*request, cursor_)) {
        return true;  // look at it again: it has failed
    }
    if (const std::uint16_t packets = transmit(*request); packets > 0) {
        advance_cursor(*request, packets);
    }
    return true;
}

// The request to send from, fetched if need be; null when there is none that may be sent.
SendRequest* Requester::at_cursor() {
    if (cursor_ != window_.fetched()) {
        return &window_.at(cursor_);
    }
    if (!window_.may_fetch() || attributes_.state != QpState::kRts) {
        return nullptr;  // what is posted in SQD is looked at when it may start
    }
    const std::uint32_t index = window_.fetched();
    SendRequest& request = window_.fetch(effects_);
    prepare(request, index);
    return &request;
}

// READs and atomics that were asked for and not answered.
std::uint32_t Requester::initiated() {
    std::uint32_t count = 0;
    for (std::uint32_t index = unacknowledged_; index != cursor_; ++index) {
        count += window_.at(index).expects_response() ? 1U : 0U;
    }
    return count;
}

bool Requester::may_start(const SendRequest& request) {
    if (attributes_.state != QpState::kRts) {
        return false;
    }
    if (has_flag(request.wqe, SendFlag::kFence) && initiated() > 0) {
        return false;
    }
    if (request.opcode->opcode == WrOpcode::kLocalInv && unacknowledged_ != cursor_) {
        return false;  // requests before it may still need the key (IBA 10.8.3)
    }
    if (request.expects_response() && initiated() >= attributes_.max_rd_atomic) {
        return false;
    }
    const std::int32_t span = distance(oldest_psn_, request.first_psn);
    return static_cast<std::uint32_t>(span) + request.packets <= kMaxPsnsOutstanding || span == 0;
}

// The packet has arrived where its bytes are missing, so those before it have too; a READ among
// them is still answered, and the request fails in its turn.
EngineResult Requester::fail_source(Psn psn) {
    if (stopped() || !awaited(psn)) {
        return {};
    }
    acknowledge_before(psn);
    if (stopped()) {
        return {};
    }
    rewind(psn);
    SendRequest& request = window_.at(cursor_);
    fail_request(request, FaultCause::kGatherRange);
    return run();
}

void Requester::flush(FaultCause cause) {
    effects_.disarm(EngineTimer::kAcknowledge);
    effects_.disarm(EngineTimer::kRnr);
    effects_.disarm(EngineTimer::kTransmitted);
    move(RequesterEvent::kStop);
    while (!window_.empty()) {
        if (window_.head() == window_.fetched()) {
            SendRequest& request = window_.fetch(effects_);
            request.opcode = find_wr_opcode(request.wqe.opcode);
        }
        complete_head(WcStatus::kWrFlushErr, cause);
    }
    cursor_ = unacknowledged_ = window_.head();
    cursor_packet_ = 0;
}

}  // namespace simverbs
