#include "fabric/net/link.hpp"

#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/net/net_events.hpp"
#include "fabric/net/node.hpp"

namespace fabric {

Link::Link(std::size_t index, std::string name, std::array<Port*, 2> ends,
           const LinkProperties& properties, const NetworkServices& services)
    : services_(services),
      index_(index),
      name_(std::move(name)),
      ends_(ends),
      rate_(properties.rate),
      latency_(properties.latency),
      directions_{LinkDirection(*ends[0], *ends[1], properties, services),
                  LinkDirection(*ends[1], *ends[0], properties, services)} {
    ends[0]->attach(*this, *ends[1], directions_[0], directions_[1]);
    ends[1]->attach(*this, *ends[0], directions_[1], directions_[0]);
}

LinkDirection& Link::direction_from(const Port& port) {
    SIMVERBS_ASSERT(&port == ends_[0] || &port == ends_[1], "port {} of {} is not on link {}",
                    port.number().value(), port.node().name(), name_);
    return directions_[&port == ends_[0] ? 0 : 1];
}

LinkDirection& Link::direction_from(NodeId node) {
    return direction_from(ends_[0]->node().id() == node ? *ends_[0] : *ends_[1]);
}

void Link::set_rate(LinkWidth width, LinkSpeed speed) {
    rate_ = effective_rate(width, speed);
    for (LinkDirection& direction : directions_) {
        direction.set_rate(rate_);
    }
    for (Port* const port : ends_) {
        PortAttributes& attributes = port->mutable_attributes();
        attributes.width = width;
        attributes.speed = speed;
        port->raise(PortEvent::kSpeedChange);
    }
    describe();
}

void Link::describe() const {
    const Port& a = *ends_[0];
    const Port& b = *ends_[1];
    services_.bus.emit(services_.loop.now(),
                       LinkDescribed{a.node().id(), name_, a.number(), b.node().id(), b.number(),
                                     a.attributes().link_layer, rate_.bits_per_second(),
                                     latency_.count(), state_});
}

void Link::drop_all(DropReason reason) {
    for (LinkDirection& direction : directions_) {
        direction.drop_all(reason);
    }
}

void Link::set_state(LinkState state) {
    plugged_ = state;
    if (std::any_of(ends_.begin(), ends_.end(), [](const Port* port) {
            return port->attributes().held != PhysicalState::kLinkUp;
        })) {
        state = LinkState::kDown;
    }
    if (state == state_) {
        return;
    }
    state_ = state;
    services_.bus.emit(services_.loop.now(), LinkStateChanged{ends_[0]->node().id(), name_, state});
    if (state == LinkState::kDown) {
        drop_all(DropReason::kLinkDown);
    }
    for (Port* const port : ends_) {
        const PortTrigger up = port->attributes().link_layer == LinkLayer::kEthernet
                                   ? PortTrigger::kCarrier
                                   : PortTrigger::kLinkUp;
        port->apply(state == LinkState::kUp ? up : PortTrigger::kLinkDown);
    }
    const bool is_ethernet = ends_[0]->attributes().link_layer == LinkLayer::kEthernet;
    if (is_ethernet && services_.ethernet_observer != nullptr) {
        services_.ethernet_observer->link_changed(*this);
    }
    if (services_.observer != nullptr) {
        services_.observer->link_changed(*this);
    }
}

}  // namespace fabric
