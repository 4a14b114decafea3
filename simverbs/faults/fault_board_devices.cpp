// Answers what devices ask the faults of a world: about work requests, completions and calls.
#include <algorithm>

#include "simverbs/faults/fault_board.hpp"
#include "simverbs/hca/queue_pair.hpp"

namespace simverbs {

using fabric::FaultId;

bool FaultBoard::waits_for(const Hca& hca, std::uint32_t qpn, CompletedQueue queue) const {
    return std::ranges::any_of(waiting_for<OnWorkRequest>(), [&](const Fault* fault) {
        const auto& on = std::get<OnWorkRequest>(fault->spec.on);
        return on.hca == &hca && on.qp.qpn == qpn && on.queue == queue && !on.as_it_completes &&
               !fault->occasion.is_over();
    });
}

std::optional<InjectedFault> FaultBoard::work_request(QueuePair& qp, CompletedQueue queue) {
    Hca& hca = qp.context().hca();
    std::optional<InjectedFault> failure;
    for (Fault* const fault : waiting_for<OnWorkRequest>()) {
        const auto& on = std::get<OnWorkRequest>(fault->spec.on);
        if (on.as_it_completes || (on.hca != nullptr && on.hca != &hca) || on.queue != queue ||
            !on.qp.fits(qp) ||
            !fault->occasion.arrives(clock_.now(), hca.node().value(), qp.qpn())) {
            continue;
        }
        const Site site{&hca, qp.qpn()};
        emit(fault->id, *fault, site, fault->occasion.seen());
        fault_fired(fault->id);
        switch (fault->spec.action) {
            case SIMVERBS_FAULT_COMPLETION:
                failure = {static_cast<WcStatus>(fault->spec.with.value),
                           FaultCause::kInjectedStatus};
                break;
            case SIMVERBS_FAULT_EXECUTION:
                failure = {WcStatus::kFatalErr, FaultCause::kExecutionFault};
                break;
            case SIMVERBS_FAULT_SYNDROME:
                failure = {WcStatus::kGeneralErr, FaultCause::kUnknownSyndrome};
                break;
            default:
                act_later(fault->id, site);
        }
    }
    return failure;
}

std::vector<FaultId> FaultBoard::called(const Hca& hca, CommandCode command) {
    ++commands_;
    std::vector<FaultId> due;
    for (Fault* const fault : waiting_for<OnCall>()) {
        const auto& on = std::get<OnCall>(fault->spec.on);
        if (on.command == command && (on.hca == nullptr || on.hca == &hca) &&
            fault->occasion.arrives(clock_.now(), hca.node().value(),
                                    static_cast<std::uint64_t>(command))) {
            due.push_back(fault->id);
        }
    }
    return due;
}

// Nothing of a device is under way when a consumer asks for something.
int FaultBoard::command(Hca& hca, CommandCode command) {
    int error = 0;
    for (const FaultId id : called(hca, command)) {
        Fault& fault = faults_.at(id);
        if (!acts_here(fault.spec.name)) {
            continue;
        }
        if (fault.spec.action == SIMVERBS_FAULT_CALL) {
            error = static_cast<int>(fault.spec.with.value);
        }
        fire(id, fault, {&hca, 0}, fault.occasion.seen());
    }
    return error;
}

std::uint32_t FaultBoard::poll(Hca& hca, std::uint32_t found) {
    std::uint64_t left = found;
    for (const FaultId id : called(hca, CommandCode::kPollCq)) {
        Fault& fault = faults_.at(id);
        if (!acts_here(fault.spec.name)) {
            continue;
        }
        if (fault.spec.action == SIMVERBS_FAULT_SHORT_POLL) {
            left -= std::min(left, fault.spec.with.times);
        }
        fire(id, fault, {&hca, 0}, fault.occasion.seen());
    }
    return static_cast<std::uint32_t>(left);
}

fabric::SimDuration FaultBoard::fire_within(FaultId id, const Site& site) {
    Fault& fault = faults_.at(id);
    if (!acts_here(fault.spec.name)) {
        return {};
    }
    emit(id, fault, site, fault.occasion.seen());
    fault_fired(id);
    if (row_of(row_of(fault.spec.action).subject).is_the_match) {
        return fault.spec.with.duration;
    }
    act_later(id, site);
    return {};
}

fabric::SimDuration FaultBoard::completion(QueuePair& qp, CompletedQueue queue) {
    Hca& hca = qp.context().hca();
    fabric::SimDuration late{};
    for (Fault* const fault : waiting_for<OnWorkRequest>()) {
        const auto& on = std::get<OnWorkRequest>(fault->spec.on);
        if (on.as_it_completes && (on.hca == nullptr || on.hca == &hca) && on.queue == queue &&
            on.qp.fits(qp) && fault->occasion.arrives(clock_.now(), hca.node().value(), qp.qpn())) {
            late = std::max(late, fire_within(fault->id, {&hca, qp.qpn()}));
        }
    }
    return late;
}

fabric::SimDuration FaultBoard::completion_event(Hca& hca) {
    fabric::SimDuration late{};
    for (Fault* const fault : waiting_for<OnCompletionEvent>()) {
        const auto& on = std::get<OnCompletionEvent>(fault->spec.on);
        if ((on.hca == nullptr || on.hca == &hca) &&
            fault->occasion.arrives(clock_.now(), hca.node().value(), 0)) {
            late = std::max(late, fire_within(fault->id, {&hca, 0}));
        }
    }
    return late;
}

}  // namespace simverbs
