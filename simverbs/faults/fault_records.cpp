#include "simverbs/faults/fault_records.hpp"

#include "simverbs/hca/queue_pair.hpp"

namespace simverbs {

using fabric::FaultId;

fabric::NodeId place_of(const FaultTarget& target, const Hca* hca) {
    if (hca != nullptr || target.hca != nullptr) {
        return (hca != nullptr ? hca : target.hca)->node();
    }
    if (target.port != nullptr) {
        return target.port->node().id();
    }
    if (target.node != nullptr) {
        return target.node->id();
    }
    return target.link != nullptr ? target.link->end(0).node().id() : fabric::NodeId{};
}

fabric::FaultDescribed description_of(FaultId id, const FaultSpec& spec) {
    const FaultTarget& target = spec.target;
    fabric::FaultDescribed described{};
    described.node = place_of(target, nullptr);
    described.fault = id;
    described.action = to_string(spec.action);
    described.name = spec.name;
    if (target.hca != nullptr || target.port != nullptr || target.node != nullptr ||
        target.link != nullptr) {
        described.target = row_of(row_of(spec.action).subject).name;
    }
    if (target.link != nullptr) {
        described.link = target.link->name();
    }
    if (target.port != nullptr) {
        described.port = target.port->number();
    }
    described.qpn = target.qp.qpn;
    return described;
}

FaultTarget target_of(const FaultSpec& spec, Hca* hca_of_trigger, std::uint32_t qpn_of_trigger,
                      FaultEnvironment& environment) {
    FaultTarget target = spec.target;
    if (target.hca == nullptr && hca_of_trigger != nullptr) {
        target.hca = hca_of_trigger;
        target.node = &environment.network().node(hca_of_trigger->node());
        target.qp = {.qpn = qpn_of_trigger};
    }
    if (target.hca != nullptr && target.qp.qpn == 0) {
        const QueuePair* const qp = target.qp.find(*target.hca);
        target.qp.qpn = qp == nullptr ? 0 : qp->qpn();
    }
    return target;
}

void describe_target(const FaultTarget& target, fabric::FaultFired& event) {
    event.target = place_of(target, nullptr);
    event.target_port = {};
    if (target.port != nullptr) {
        event.target_port = target.port->number();
    } else if (target.link != nullptr) {
        event.target_port = target.link->end(0).number();
    }
    event.target_qpn = target.qp.qpn;
}

}  // namespace simverbs
