#include "fabric/faults/fault_clock.hpp"

#include <utility>

namespace fabric {

FaultClock::~FaultClock() {
    for (const auto& [appointment, due] : due_) {
        loop_.cancel(due.time, due.key);
    }
}

FaultClock::Appointment FaultClock::at(SimTime time, std::function<void()> act) {
    const EventClass order = time > now() ? EventClass::kLinkState : EventClass::kApplication;
    const EventKey key(order, kNode, PortNumber{}, ++last_);
    due_.emplace(last_, Due{time, key, std::move(act)});
    loop_.schedule({time, key, this, last_});
    return last_;
}

void FaultClock::cancel(Appointment appointment) {
    const auto found = due_.find(appointment);
    if (found != due_.end()) {
        loop_.cancel(found->second.time, found->second.key);
        due_.erase(found);
    }
}

void FaultClock::handle(const Event& event) {
    auto node = due_.extract(static_cast<Appointment>(event.argument));
    node.mapped().act();
}

}  // namespace fabric
