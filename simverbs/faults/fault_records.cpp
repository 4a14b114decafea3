#include "simverbs/faults/fault_records.hpp"

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

}  // namespace simverbs
