// Flow rules, and what they count.
#include <algorithm>
#include <cerrno>

#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"

namespace simverbs {
namespace {

// Limits of one context: each frame is compared with all of its rules.
constexpr std::size_t kMaxFlowRules = 4'096;
constexpr std::size_t kMaxCounterSets = 4'096;
constexpr std::uint32_t kMaxFlowTag = (1U << 24U) - 1;  // Linux mlx5, parse_flow_attr
constexpr std::size_t kMaxCounterPoints = 64;  // of one: each frame that matches goes through them

}  // namespace

int DeviceContext::execute(const CreateFlow& command, HandleReply& reply) {
    if (!hca_.personality().limits.caps.contains(DeviceCap::kManagedFlowSteering)) {
        return refuse(EOPNOTSUPP, "the device steers no frames");
    }
    QueuePair* qp = find_qp(command.qp);
    if (qp != nullptr && qp->attributes().service == Service::kUd) {
        // mlx4 steers datagrams; mlx5 has receive queues of raw packets alone
        return refuse(EOPNOTSUPP, "the device steers raw packets, not datagrams (UD)");
    }
    if (qp == nullptr || qp->attributes().service != Service::kRawPacket) {
        return refuse(EINVAL, "QP {:#x} is none of this context for raw packets", command.qp);
    }
    if (!hca_.has_port(command.port) ||
        hca_.port(command.port).attributes().link_layer != fabric::LinkLayer::kEthernet) {
        return refuse(EINVAL, "port {} is no port on Ethernet", command.port);
    }
    if (command.type > static_cast<std::uint32_t>(FlowType::kSniffer)) {
        return refuse(EINVAL, "type {} is none of 0 to {}", command.type,
                      static_cast<std::uint32_t>(FlowType::kSniffer));
    }
    CounterSet* counters = find(counters_, command.counters);
    const bool is_normal = command.type == static_cast<std::uint32_t>(FlowType::kNormal);
    const bool needs_normal = command.tag != 0 || command.egress != 0;
    if (counters == nullptr && command.counters != 0) {
        return refuse_handle(EINVAL, "counters", command.counters);
    }
    if (command.tag > kMaxFlowTag) {
        return refuse(EINVAL, "tag {:#x} is more than {:#x}", command.tag, kMaxFlowTag);
    }
    if (needs_normal && !is_normal) {
        return refuse(EINVAL, "{} goes with rules of type IBV_FLOW_ATTR_NORMAL (0) alone, not {}",
                      command.tag != 0 ? "a tag" : "EGRESS", command.type);
    }
    if (command.tag != 0 && command.egress != 0) {
        return refuse(EINVAL, "a tag is for frames that come in, EGRESS for those that go out");
    }
    if (flows_.size() >= kMaxFlowRules) {
        return refuse(ENOMEM, "the context has all of its {} rules", kMaxFlowRules);
    }
    auto rule = std::make_unique<FlowRule>();
    rule->type = static_cast<FlowType>(command.type);
    rule->priority = command.priority;
    rule->port = command.port;
    rule->traps = command.traps != 0;
    rule->drops = command.drops != 0;
    rule->tag = command.tag;
    rule->layers = FrameLayers::from_bits(command.layers);
    rule->value = command.value;
    rule->mask = command.mask;
    rule->egress = command.egress != 0;
    rule->qp = qp;
    rule->counters = counters;
    if (counters != nullptr) {
        ++counters->uses;
    }
    hca_.table_of(*rule).add(*rule);
    reply.handle = ++last_flow_;
    flows_.emplace(reply.handle, std::move(rule));
    return 0;
}

int DeviceContext::execute(const DestroyFlow& command, EmptyReply& /*reply*/) {
    const FlowRule* rule = find(flows_, command.handle);
    if (rule == nullptr) {
        return refuse_handle(ENOENT, "flow rule", command.handle);
    }
    hca_.table_of(*rule).erase(*rule);
    if (rule->counters != nullptr) {
        --rule->counters->uses;
    }
    flows_.erase(command.handle);
    return 0;
}

int DeviceContext::execute(const CreateCounters& /*command*/, HandleReply& reply) {
    if (!hca_.personality().limits.caps.contains(DeviceCap::kManagedFlowSteering)) {
        return refuse(EOPNOTSUPP, "the device counts no frames");
    }
    if (counters_.size() >= kMaxCounterSets) {
        return refuse(ENOMEM, "the context has all of its {} counters", kMaxCounterSets);
    }
    reply.handle = ++last_counters_;
    counters_.emplace(reply.handle, std::make_unique<CounterSet>());
    return 0;
}

int DeviceContext::execute(const DestroyCounters& command, EmptyReply& /*reply*/) {
    const CounterSet* counters = find(counters_, command.handle);
    if (counters == nullptr) {
        return refuse_handle(EINVAL, "counters", command.handle);
    }
    if (counters->uses > 0) {
        return refuse_use(command.handle, *counters);
    }
    counters_.erase(command.handle);
    return 0;
}

int DeviceContext::execute(const AttachCounters& command, EmptyReply& /*reply*/) {
    constexpr std::uint32_t kPackets = 0;  // enum ibv_counter_description
    constexpr std::uint32_t kBytes = 1;
    CounterSet* counters = find(counters_, command.handle);
    if (counters == nullptr) {
        return refuse_handle(EINVAL, "counters", command.handle);
    }
    if (command.index >= kMaxCounters) {
        return refuse(EINVAL, "index {} is none of 0 to {}", command.index, kMaxCounters - 1);
    }
    if (command.what != kPackets && command.what != kBytes) {
        return refuse(EOPNOTSUPP, "counter_desc {} is neither packets (0) nor bytes (1)",
                      command.what);
    }
    if (counters->uses > 0) {
        return refuse_use(command.handle, *counters);
    }
    if (counters->points.size() >= kMaxCounterPoints) {
        return refuse(ENOMEM, "the counters have all of their {} kinds", kMaxCounterPoints);
    }
    counters->points.push_back({command.what == kBytes, command.index});
    return 0;
}

int DeviceContext::execute(const ReadCounters& command, ReadCountersReply& reply) {
    const CounterSet* counters = find(counters_, command.handle);
    if (counters == nullptr) {
        return refuse_handle(EINVAL, "counters", command.handle);
    }
    for (const CounterSet::Point& point : counters->points) {
        reply.used = std::max(reply.used, point.index + 1);
    }
    reply.values = counters->values;
    return 0;
}

}  // namespace simverbs
