// Flow steering: the lists of specifications of verbs.h become one value and one mask.
//
// Modelled: ETH, IPV4, IPV4_EXT, IPV6, TCP, UDP, ACTION_DROP and ACTION_COUNT, with any mask.
// Tunnels, ESP, MPLS, tags, VLAN tags and rules for what is sent answer EOPNOTSUPP. Linux asks for
// CAP_NET_RAW; here everybody may.
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <infiniband/verbs.h>

#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"

namespace simverbs::abi {
namespace {

class Flow final : public ibv_flow {
  public:
    Flow(ibv_context* owner, std::uint32_t number) : ibv_flow{0, owner, number} {}
};

template <std::size_t N, class T>
void take(std::array<std::uint8_t, N>& to, const T& from) {
    static_assert(sizeof(T) == N);
    std::memcpy(to.data(), &from, N);
}

void take_fields(FrameFields& to, const ibv_flow_eth_filter& from) {
    take(to.destination_mac, from.dst_mac);
    take(to.source_mac, from.src_mac);
    take(to.ether_type, from.ether_type);
}

void take_fields(FrameFields& to, const ibv_flow_ipv4_filter& from) {
    take(to.ipv4_source, from.src_ip);
    take(to.ipv4_destination, from.dst_ip);
}

void take_fields(FrameFields& to, const ibv_flow_ipv4_ext_filter& from) {
    take(to.ipv4_source, from.src_ip);
    take(to.ipv4_destination, from.dst_ip);
    to.ipv4_protocol = from.proto;
    to.ipv4_tos = from.tos;
    to.ipv4_ttl = from.ttl;
}

void take_fields(FrameFields& to, const ibv_flow_ipv6_filter& from) {
    take(to.ipv6_source, from.src_ip);
    take(to.ipv6_destination, from.dst_ip);
    take(to.ipv6_flow_label, from.flow_label);
    to.ipv6_next_header = from.next_hdr;
    to.ipv6_traffic_class = from.traffic_class;
    to.ipv6_hop_limit = from.hop_limit;
}

void take_fields(FrameFields& to, const ibv_flow_tcp_udp_filter& from) {
    take(to.source_port, from.src_port);
    take(to.destination_port, from.dst_port);
}

// What no field here can say.
bool is_beyond(const ibv_flow_eth_filter& mask) {
    return mask.vlan_tag != 0;
}
bool is_beyond(const ibv_flow_ipv4_ext_filter& mask) {
    return mask.flags != 0;
}
template <class Filter>
bool is_beyond(const Filter& /*mask*/) {
    return false;
}

template <class Spec>
int add_spec(const std::byte* bytes, std::size_t size, FrameLayer layer, CreateFlow& command) {
    if (size != sizeof(Spec)) {
        return EINVAL;
    }
    Spec spec;
    std::memcpy(&spec, bytes, sizeof spec);
    if (is_beyond(spec.mask)) {
        return EOPNOTSUPP;
    }
    take_fields(command.value, spec.val);
    take_fields(command.mask, spec.mask);
    command.layers |= static_cast<std::uint8_t>(layer);
    return 0;
}

// One set of counters a rule.
int add_counters(const std::byte* bytes, std::size_t size, CreateFlow& command) {
    ibv_flow_spec_counter_action action;
    if (size != sizeof action || command.counters != 0) {
        return EINVAL;
    }
    std::memcpy(&action, bytes, sizeof action);
    if (action.counters == nullptr) {
        return EINVAL;
    }
    command.counters = as_object(action.counters).number();
    return 0;
}

int add_spec(std::uint32_t type, const std::byte* bytes, std::size_t size, CreateFlow& command) {
    switch (type) {
        case IBV_FLOW_SPEC_ETH:
            return add_spec<ibv_flow_spec_eth>(bytes, size, FrameLayer::kEthernet, command);
        case IBV_FLOW_SPEC_IPV4:
            return add_spec<ibv_flow_spec_ipv4>(bytes, size, FrameLayer::kIpv4, command);
        case IBV_FLOW_SPEC_IPV4_EXT:
            return add_spec<ibv_flow_spec_ipv4_ext>(bytes, size, FrameLayer::kIpv4, command);
        case IBV_FLOW_SPEC_IPV6:
            return add_spec<ibv_flow_spec_ipv6>(bytes, size, FrameLayer::kIpv6, command);
        case IBV_FLOW_SPEC_TCP:
            return add_spec<ibv_flow_spec_tcp_udp>(bytes, size, FrameLayer::kTcp, command);
        case IBV_FLOW_SPEC_UDP:
            return add_spec<ibv_flow_spec_tcp_udp>(bytes, size, FrameLayer::kUdp, command);
        case IBV_FLOW_SPEC_ACTION_DROP:
            command.drops = 1;
            return size == sizeof(ibv_flow_spec_action_drop) ? 0 : EINVAL;
        case IBV_FLOW_SPEC_ACTION_COUNT:
            return add_counters(bytes, size, command);
        default:
            return EOPNOTSUPP;
    }
}

int add_specs(const ibv_flow_attr& attr, CreateFlow& command) {
    const auto* next = reinterpret_cast<const std::byte*>(&attr + 1);
    for (std::uint8_t i = 0; i < attr.num_of_specs; ++i) {
        std::uint32_t type = 0;
        std::uint16_t size = 0;
        std::memcpy(&type, next + offsetof(ibv_flow_spec_eth, type), sizeof type);
        std::memcpy(&size, next + offsetof(ibv_flow_spec_eth, size), sizeof size);
        if (const int error = add_spec(type, next, size, command); error != 0) {
            return error;
        }
        next += size;
    }
    return 0;
}

// Which of the layers can be on top of each other.
bool makes_sense(std::uint8_t layers) {
    const auto has = [layers](FrameLayer layer) {
        return (layers & static_cast<std::uint8_t>(layer)) != 0;
    };
    return !(has(FrameLayer::kIpv4) && has(FrameLayer::kIpv6)) &&
           !(has(FrameLayer::kTcp) && has(FrameLayer::kUdp));
}

int fill_command(const ibv_flow_attr& attr, CreateFlow& command) {
    constexpr std::uint32_t kFlags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP | IBV_FLOW_ATTR_FLAGS_EGRESS;
    const bool dont_trap = (attr.flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP) != 0;
    // A C program may put any number there, which is no value of the enumeration to C++.
    std::uint32_t type = 0;
    static_assert(sizeof type == sizeof attr.type);
    std::memcpy(&type, &attr.type, sizeof type);
    if (attr.comp_mask != 0 || (attr.flags & ~kFlags) != 0 ||
        (dont_trap && type != IBV_FLOW_ATTR_NORMAL)) {
        return EINVAL;
    }
    if ((attr.flags & IBV_FLOW_ATTR_FLAGS_EGRESS) != 0) {
        return EOPNOTSUPP;
    }
    command.type = type;
    command.priority = attr.priority;
    command.port = attr.port;
    command.traps = dont_trap ? 0 : 1;
    if (const int error = add_specs(attr, command); error != 0) {
        return error;
    }
    const bool empty = type == IBV_FLOW_ATTR_NORMAL && attr.num_of_specs == 0;
    return empty || !makes_sense(command.layers) ? EINVAL : 0;
}

}  // namespace

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attr) {
    CreateFlow command;
    command.qp = qp->handle;
    HandleReply reply;
    Context& context = as_object(qp->context);
    int error = EOPNOTSUPP;
    if (context.personality().limits.caps.contains(DeviceCap::kManagedFlowSteering)) {
        error = fill_command(*attr, command);
    }
    if (error == 0) {
        error = context.execute(command, reply);
    }
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    return new Flow(qp->context, reply.handle);
}

int destroy_flow(ibv_flow* handle) {
    DestroyFlow command;
    command.handle = handle->handle;
    const int error = as_object(handle->context).execute(command);
    if (error == 0) {
        delete static_cast<Flow*>(handle);
    }
    return error;
}

}  // namespace simverbs::abi
