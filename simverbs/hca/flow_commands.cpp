// Flow rules.
#include <cerrno>

#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"

namespace simverbs {
namespace {

// Of one context: each frame is held against all of them.
constexpr std::size_t kMaxFlowRules = 4'096;

}  // namespace

int DeviceContext::execute(const CreateFlow& command, HandleReply& reply) {
    if (!hca_.personality().limits.caps.contains(DeviceCap::kManagedFlowSteering)) {
        return EOPNOTSUPP;
    }
    QueuePair* qp = find(qps_, command.qp);
    if (qp == nullptr || qp->attributes().service != Service::kRawPacket ||
        !hca_.has_port(command.port) ||
        command.type > static_cast<std::uint32_t>(FlowType::kSniffer) ||
        hca_.port(command.port).attributes().link_layer != fabric::LinkLayer::kEthernet) {
        return EINVAL;
    }
    if (flows_.size() >= kMaxFlowRules) {
        return ENOMEM;
    }
    auto rule = std::make_unique<FlowRule>();
    rule->type = static_cast<FlowType>(command.type);
    rule->priority = command.priority;
    rule->port = command.port;
    rule->traps = command.traps != 0;
    rule->drops = command.drops != 0;
    rule->layers = FrameLayers::from_bits(command.layers);
    rule->value = command.value;
    rule->mask = command.mask;
    rule->qp = qp;
    hca_.flows().add(*rule);
    reply.handle = ++last_flow_;
    flows_.emplace(reply.handle, std::move(rule));
    return 0;
}

int DeviceContext::execute(const DestroyFlow& command, EmptyReply& /*reply*/) {
    const FlowRule* rule = find(flows_, command.handle);
    if (rule == nullptr) {
        return ENOENT;
    }
    hca_.flows().erase(*rule);
    flows_.erase(command.handle);
    return 0;
}

}  // namespace simverbs
