#include "fabric/faults/frame_fault.hpp"

#include <utility>

#include "fabric/net/node.hpp"

namespace fabric {

FrameFault::FrameFault(trace::Bus& bus, FaultId id, std::unique_ptr<FrameMatcher> matcher,
                       const OccasionRules& rules, std::unique_ptr<FrameAction> action,
                       std::vector<LinkDirection*> directions, FiringListener* listener)
    : bus_(bus),
      id_(id),
      matcher_(std::move(matcher)),
      occasion_(id, rules),
      action_(std::move(action)),
      directions_(std::move(directions)),
      listener_(listener) {
    for (LinkDirection* direction : directions_) {
        direction->add_filter(*this);
    }
}

FrameFault::~FrameFault() {
    withdraw();
}

void FrameFault::withdraw() {
    for (LinkDirection* direction : directions_) {
        direction->remove_filter(*this);
    }
}

Verdict FrameFault::inspect(SimTime now, Frame& frame, const LinkDirection& direction) {
    const auto point = std::uint64_t{direction.from().node().id().value()} << 16U |
                       direction.from().number().value();
    const auto flow = std::uint64_t{frame.source.value()} << 32U | frame.flow;
    if (!matcher_->matches(frame) || !action_->applies(frame) ||
        !occasion_.arrives(now, point, flow)) {
        return action_->pass(frame, direction);
    }
    FaultFired event =
        fired(direction, frame, id_, action_->name(), occasion_.seen(), matcher_->describe(frame));
    action_->describe_target(event);
    bus_.emit(now, event);
    if (listener_ != nullptr) {
        listener_->fault_fired(id_);
    }
    return action_->act(frame, direction);
}

}  // namespace fabric
