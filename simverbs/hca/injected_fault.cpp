// What the device does wrong because somebody asked for it.
#include "simverbs/hca/injected_fault.hpp"

#include <utility>

#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/queue_pair.hpp"

namespace simverbs {

bool QueuePair::fail_next(CompletedQueue queue, const InjectedFault& fault) {
    if (injected_ == nullptr) {
        injected_ = std::make_unique<InjectedFaults>();
    }
    auto& place = queue == CompletedQueue::kSend ? injected_->send : injected_->receive;
    if (place) {
        return false;
    }
    place = fault;
    return true;
}

bool QueuePair::spare_next(fabric::FaultId fault) {
    if (injected_ == nullptr) {
        return false;
    }
    for (std::optional<InjectedFault>* place : {&injected_->send, &injected_->receive}) {
        if (*place && (*place)->id == fault) {
            place->reset();
            return true;
        }
    }
    return false;
}

std::optional<InjectedFault> QueuePair::take_fault(CompletedQueue queue) {
    const bool send = queue == CompletedQueue::kSend;
    const auto fault = std::exchange(send ? injected_->send : injected_->receive, std::nullopt);
    if (fault) {
        hca_.trace_fault(fault->id, send ? "fail send" : "fail receive", attributes_.qpn);
    }
    return fault;
}

}  // namespace simverbs
