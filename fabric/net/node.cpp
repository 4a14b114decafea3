#include "fabric/net/node.hpp"

#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/net/link_direction.hpp"

namespace fabric {

Node::Node(NodeId id, std::string name, NodeKind kind, std::uint16_t port_count,
           const NetworkServices& services)
    : id_(id),
      name_(std::move(name)),
      kind_(kind),
      port_count_(port_count),
      label_{make_guid(id, PortNumber{0}), name_, name_} {
    ports_.resize(port_count + 1U);
    const std::uint16_t first = kind == NodeKind::kSwitch ? 0 : 1;
    for (std::uint16_t number = first; number <= port_count; ++number) {
        ports_[number] = std::make_unique<Port>(*this, PortNumber{number}, services);
    }
}

Port& Node::port(PortNumber number) const {
    Port* const found = port_or_null(number.value());
    SIMVERBS_ASSERT(found != nullptr, "{} has no port {}", name_, number.value());
    return *found;
}

void Node::give_back_buffer(Frame& frame, SimTime when) {
    ports_[frame.ingress]->incoming()->give_back(frame.ingress_vl, frame.wire_bytes, when);
    frame.ingress = 0;
}

void Node::receive_management(Port& port, FramePtr frame) {
    if (management_ == nullptr) {
        port.drop(std::move(frame), DropReason::kNoConsumer);
        return;
    }
    management_->management_arrived(port, std::move(frame));
}

void EndNode::receive(Port& port, FramePtr frame) {
    if (frame->is_management) {
        receive_management(port, std::move(frame));
        return;
    }
    if (listener_ == nullptr) {
        port.drop(std::move(frame), DropReason::kNoConsumer);
        return;
    }
    listener_->frame_arrived(port, std::move(frame));
}

void EndNode::port_changed(Port& port, PortEvent event) {
    if (listener_ != nullptr) {
        listener_->port_event(port, event);
    }
}

}  // namespace fabric
