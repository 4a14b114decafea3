// Answers what devices ask the faults of a world: about work requests, completions and calls.
#include <algorithm>

#include "simverbs/faults/fault_board.hpp"
#include "simverbs/hca/queue_pair.hpp"

namespace simverbs {

using fabric::FaultId;

bool FaultBoard::waits_for(const Hca& hca, std::uint32_t qpn, CompletedQueue queue) const {
    return std::any_of(faults_.begin(), faults_.end(), [&](const auto& entry) {
        const auto* on = std::get_if<OnWorkRequest>(&entry.second.spec.on);
        return on != nullptr && on->hca == &hca && on->qp.qpn == qpn && on->queue == queue &&
               !on->as_it_completes && !entry.second.occasion.is_over();
    });
}

std::optional<InjectedFault> FaultBoard::work_request(QueuePair& qp, CompletedQueue queue) {
    Hca& hca = qp.context().hca();
    std::optional<InjectedFault> failure;
    for (auto& [id, fault] : faults_) {
        const auto* on = std::get_if<OnWorkRequest>(&fault.spec.on);
        if (on == nullptr || on->as_it_completes || (on->hca != nullptr && on->hca != &hca) ||
            on->queue != queue || !on->qp.fits(qp) ||
            !fault.occasion.arrives(clock_.now(), hca.node().value(), qp.qpn())) {
            continue;
        }
        const Site site{&hca, qp.qpn()};
        emit(id, fault, site, fault.occasion.seen());
        fault_fired(id);
        switch (fault.spec.action) {
            case SIMVERBS_FAULT_COMPLETION:
                failure = {static_cast<WcStatus>(fault.spec.with.value),
                           FaultCause::kInjectedStatus};
                break;
            case SIMVERBS_FAULT_EXECUTION:
                failure = {WcStatus::kFatalErr, FaultCause::kExecutionFault};
                break;
            case SIMVERBS_FAULT_SYNDROME:
                failure = {WcStatus::kGeneralErr, FaultCause::kUnknownSyndrome};
                break;
            default:
                act_later(id, site);
        }
    }
    return failure;
}

std::vector<FaultId> FaultBoard::called(const Hca& hca, CommandCode command) {
    ++commands_;
    std::vector<FaultId> due;
    for (auto& [id, fault] : faults_) {
        const auto* on = std::get_if<OnCall>(&fault.spec.on);
        if (on != nullptr && on->command == command && (on->hca == nullptr || on->hca == &hca) &&
            fault.occasion.arrives(clock_.now(), hca.node().value(),
                                   static_cast<std::uint64_t>(command))) {
            due.push_back(id);
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
    for (auto& [id, fault] : faults_) {
        const auto* on = std::get_if<OnWorkRequest>(&fault.spec.on);
        if (on != nullptr && on->as_it_completes && (on->hca == nullptr || on->hca == &hca) &&
            on->queue == queue && on->qp.fits(qp) &&
            fault.occasion.arrives(clock_.now(), hca.node().value(), qp.qpn())) {
            late = std::max(late, fire_within(id, {&hca, qp.qpn()}));
        }
    }
    return late;
}

fabric::SimDuration FaultBoard::completion_event(Hca& hca) {
    fabric::SimDuration late{};
    for (auto& [id, fault] : faults_) {
        const auto* on = std::get_if<OnCompletionEvent>(&fault.spec.on);
        if (on != nullptr && (on->hca == nullptr || on->hca == &hca) &&
            fault.occasion.arrives(clock_.now(), hca.node().value(), 0)) {
            late = std::max(late, fire_within(id, {&hca, 0}));
        }
    }
    return late;
}

}  // namespace simverbs
