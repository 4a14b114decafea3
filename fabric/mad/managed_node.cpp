#include "fabric/mad/managed_node.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/mad/datagram_address.hpp"
#include "fabric/mad/directed_route.hpp"
#include "fabric/mad/mad_events.hpp"
#include "fabric/net/ethernet_addresses.hpp"

namespace fabric {

namespace {

using mad::Datagram;
using mad::DirectedStep;
using mad::Method;
using mad::Status;

bool is_on_ethernet(const Port& port) {
    return port.attributes().link_layer == LinkLayer::kEthernet;
}

bool has_lid(const PortAttributes& own, Lid lid) {
    return own.lid != kNoLid && lid.value() >> own.lmc == own.lid.value() >> own.lmc;
}

void turn_into_answer(Datagram& datagram) {
    datagram.set(mad::header::kMethod, static_cast<std::uint64_t>(Method::kGetResp));
    if (datagram.is_directed()) {
        datagram.set(mad::smp::kDirection, 1);
    }
}

// As ib_mad of Linux answers what nobody takes.
bool refuse(Datagram& request) {
    if (request.method() != Method::kGet && request.method() != Method::kSet) {
        return false;
    }
    request.set(mad::header::kStatus, static_cast<std::uint64_t>(Status::kBadMethodOrAttribute));
    turn_into_answer(request);
    return true;
}

}  // namespace

ManagedNode::ManagedNode(Network& network, Node& node, DatagramPool& pool,
                         const NodeIdentity& identity)
    : network_(network),
      node_(node),
      pool_(pool),
      subnet_(network, node, identity, *this),
      performance_(node),
      key_(EventClass::kTimer, node.id(), PortNumber{kManagedNodeKey}, 0) {
    ports_.resize(node.port_count() + 1U);
    const bool is_switch = node.kind() == NodeKind::kSwitch;
    const std::uint16_t last = is_switch ? 0 : node.port_count();
    for (std::uint16_t number = is_switch ? 0 : 1; number <= last; ++number) {
        DatagramCarrier& carrier = *this;
        ports_[number] = std::make_unique<ManagementPort>(node.port(PortNumber{number}),
                                                          network.loop(), carrier);
    }
    node_.set_management_listener(this);
}

ManagedNode::~ManagedNode() {
    node_.set_management_listener(nullptr);
    if (!waiting_.empty()) {
        network_.loop().cancel(waiting_.front().due, key_);
    }
}

ManagementPort* ManagedNode::find_port(PortNumber port) const {
    return port.value() < ports_.size() ? ports_[port.value()].get() : nullptr;
}

PortNumber ManagedNode::own_port(PortNumber arrived_by) const {
    return node_.kind() == NodeKind::kSwitch ? PortNumber{0} : arrived_by;
}

void ManagedNode::management_arrived(Port& port, FramePtr frame) {
    const auto& header = frame->transport_as<ManagementHeader>();
    const PortNumber own = own_port(port.number());
    const PortAttributes& attributes = node_.port(own).attributes();
    // Ethernet ports have no queue pair 0.
    const bool is_taken = is_on_ethernet(port) ? header.destination_qp == kGeneralServicesQp &&
                                                     is_for_gid_of(attributes, *frame)
                                               : header.destination_qp <= kGeneralServicesQp;
    if (!is_taken || find_port(own) == nullptr) {
        port.drop(std::move(frame), DropReason::kNoConsumer);
        return;
    }
    if (header.destination_qp == kGeneralServicesQp &&
        !subnet_.admits(own, header.qkey, index_of_pkey(attributes, frame->pkey).has_value())) {
        port.drop(std::move(frame), DropReason::kNoConsumer);
        return;
    }
    enqueue(
        {datagram_of(*frame), sender_of(*frame, attributes), port.number(), header.destination_qp});
}

void ManagedNode::enqueue(const ArrivedDatagram& arrived) {
    SIMVERBS_ASSERT(waiting_.size() < kMaxWaiting, "{} datagrams wait at {}", waiting_.size(),
                    node_.name());
    free_at_ = std::max(free_at_, network_.loop().now()) + kAgentDelay;
    waiting_.push_back({free_at_, arrived});
    if (waiting_.size() == 1) {
        network_.loop().schedule({free_at_, key_, this, 0});
    }
}

void ManagedNode::handle(const Event& /*event*/) {
    ArrivedDatagram arrived = waiting_.front().arrived;
    waiting_.pop_front();
    if (!waiting_.empty()) {
        network_.loop().schedule({waiting_.front().due, key_, this, 0});
    }
    if (arrived.destination_qp == kGeneralServicesQp) {
        process_general(arrived);
    } else if (arrived.datagram.is_smp()) {
        process_smp(arrived);
    }
}

void ManagedNode::process_smp(ArrivedDatagram& arrived) {
    if (arrived.datagram.is_directed() &&
        !advance(arrived, static_cast<std::uint8_t>(arrived.port.value()))) {
        return;
    }
    Datagram response = arrived.datagram;
    switch (subnet_.process(arrived, response)) {
        case SubnetAgent::Verdict::kAnswer:
            turn_into_answer(response);
            answer(arrived, response);
            return;
        case SubnetAgent::Verdict::kSilence:
            return;
        case SubnetAgent::Verdict::kNotMine:
            break;
    }
    if (!find_port(own_port(arrived.port))->deliver(arrived) && refuse(response)) {
        answer(arrived, response);
    }
}

void ManagedNode::process_general(ArrivedDatagram& arrived) {
    Datagram response = arrived.datagram;
    if (performance_.process(own_port(arrived.port), arrived.datagram, response)) {
        turn_into_answer(response);
        answer(arrived, response);
    } else if (!find_port(own_port(arrived.port))->deliver(arrived) && refuse(response)) {
        answer(arrived, response);
    }
}

// True: it has come to its node, which is this one.
bool ManagedNode::advance(ArrivedDatagram& arrived, std::uint8_t port) {
    const bool is_switch = node_.kind() == NodeKind::kSwitch;
    const DirectedStep step = mad::advance_route(arrived.datagram, is_switch, port);
    switch (step.kind) {
        case DirectedStep::Kind::kHere:
            return true;
        case DirectedStep::Kind::kOut:
            send_directed(arrived.datagram, step.port);
            return false;
        case DirectedStep::Kind::kToLid:
            send_to_lid(node_.port(own_port(arrived.port)), arrived.datagram, kSubnetManagementQp,
                        {.lid = step.lid});
            return false;
        case DirectedStep::Kind::kDiscard:
            return false;
    }
    return false;
}

void ManagedNode::answer(const ArrivedDatagram& request, const Datagram& response) {
    Port& own = node_.port(own_port(request.port));
    if (!response.is_directed() || response.get(mad::smp::kDrDlid) != kPermissiveLid.value()) {
        DatagramAddress to = request.from;
        if (request.destination_qp == kGeneralServicesQp) {
            to.qkey = kWellKnownQkey;
        }
        static_cast<void>(send_to(own, response, request.destination_qp, to));
        return;
    }
    ArrivedDatagram returning = request;
    returning.datagram = response;
    if (advance(returning, static_cast<std::uint8_t>(request.port.value()))) {
        enqueue(returning);
    }
}

void ManagedNode::send_directed(const Datagram& datagram, std::uint8_t out) {
    if (out == 0 || out > node_.port_count()) {
        return;
    }
    const DatagramAddress to{.lid = kPermissiveLid};
    FramePtr frame = make_frame(datagram, kSubnetManagementQp, to);
    address_by_lid(*frame, node_.port(PortNumber{out}).attributes(), to);
    frame->slid = kPermissiveLid;
    node_.port(PortNumber{out}).send(std::move(frame));
}

int ManagedNode::send_to(Port& port, const Datagram& datagram, std::uint32_t source_qp,
                         const DatagramAddress& to) {
    if (is_on_ethernet(port)) {
        return send_to_gid(port, datagram, source_qp, to);
    }
    send_to_lid(port, datagram, source_qp, to);
    return 0;
}

// A port that is addressed by itself takes the frame back before it leaves.
int ManagedNode::send_to_gid(Port& port, const Datagram& datagram, std::uint32_t source_qp,
                             const DatagramAddress& to) {
    const PortAttributes& own = port.attributes();
    if (!to.global || to.global->gid_index >= own.gids.size()) {
        return EINVAL;
    }
    MacAddress destination;
    if (const int error =
            resolve_mac(network_, own.gids[to.global->gid_index], to.global->gid, destination);
        error != 0) {
        return error;
    }
    FramePtr frame = make_frame(datagram, source_qp, to);
    address_by_gid(*frame, own, to, destination);
    if (destination == own.mac) {
        management_arrived(port, std::move(frame));
    } else {
        port.send(std::move(frame));
    }
    return 0;
}

void ManagedNode::send_to_lid(Port& port, const Datagram& datagram, std::uint32_t source_qp,
                              const DatagramAddress& to) {
    const PortAttributes& own = port.attributes();
    if (has_lid(own, to.lid)) {
        ArrivedDatagram arrived{datagram, to, port.number(), to.qp};
        arrived.from.qp = source_qp;
        enqueue(arrived);
        return;
    }
    FramePtr frame = make_frame(datagram, source_qp, to);
    address_by_lid(*frame, own, to);
    if (node_.kind() == NodeKind::kHca) {
        port.send(std::move(frame));
        return;
    }
    const std::uint16_t out = static_cast<Switch&>(node_).route(to.lid);
    if (out == 0 || out > node_.port_count()) {
        port.drop(std::move(frame), DropReason::kNoRoute);
        return;
    }
    node_.port(PortNumber{out}).send(std::move(frame));
}

FramePtr ManagedNode::make_frame(const Datagram& datagram, std::uint32_t source_qp,
                                 const DatagramAddress& to) {
    DatagramCargo& cargo = pool_.take();
    cargo.datagram = datagram;
    FramePtr frame = network_.frames().make();
    frame->cargo = &cargo;
    frame->is_management = true;
    frame->source = node_.id();
    frame->flow = source_qp;
    frame->number = ++frames_made_;
    frame->transport_as<ManagementHeader>() = {source_qp, to.qp, to.qkey};
    if (network_.bus().wants(trace::Category::kPacket)) {
        network_.bus().emit(
            network_.loop().now(),
            DatagramSent{node_.id(), source_qp, frame->number, to.qp,
                         static_cast<std::uint8_t>(datagram.management_class()),
                         static_cast<std::uint8_t>(datagram.method()), datagram.attribute()});
    }
    return frame;
}

int ManagedNode::carry(Port& port, const Datagram& datagram, std::uint32_t source_qp,
                       const DatagramAddress& to) {
    if (!datagram.is_directed()) {
        return send_to(port, datagram, source_qp, to);
    }
    // A client may answer what came by directed route: SMInfo, say.
    const bool is_answer = datagram.get(mad::smp::kDirection) != 0;
    if (is_answer && datagram.get(mad::smp::kDrDlid) != kPermissiveLid.value()) {
        send_to_lid(port, datagram, source_qp, to);
        return 0;
    }
    Datagram smp = datagram;
    const auto number = static_cast<std::uint8_t>(port.number().value());
    const DirectedStep step =
        is_answer ? mad::advance_route(smp, number == 0, number) : mad::start_route(smp, number);
    switch (step.kind) {
        case DirectedStep::Kind::kDiscard:
            return EINVAL;
        case DirectedStep::Kind::kHere:
            // At the start the pointer moves on when the agent looks at it.
            enqueue({is_answer ? smp : datagram,
                     {.lid = kPermissiveLid},
                     port.number(),
                     kSubnetManagementQp});
            return 0;
        case DirectedStep::Kind::kOut:
            send_directed(smp, step.port);
            return 0;
        case DirectedStep::Kind::kToLid:
            send_to_lid(port, smp, source_qp, is_answer ? DatagramAddress{.lid = step.lid} : to);
            return 0;
    }
    return EINVAL;
}

void ManagedNode::mark_sm(Port& port, bool is_sm) {
    subnet_.set_is_sm(port.number(), is_sm);
}

}  // namespace fabric
