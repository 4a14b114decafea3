// Flow steering: the lists of specifications of verbs.h become one value and one mask.
//
// Modelled: every specification of a header, also within a tunnel, with any mask; ACTION_TAG,
// ACTION_DROP and ACTION_COUNT; rules for what is sent. ACTION_HANDLE (IPsec) answers EOPNOTSUPP.
// Linux asks for CAP_NET_RAW; here everybody may.
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

void take_fields(HeaderFields& to, const ibv_flow_eth_filter& from) {
    take(to.destination_mac, from.dst_mac);
    take(to.source_mac, from.src_mac);
    take(to.ether_type, from.ether_type);
    take(to.cvlan_tag, from.vlan_tag);
}

void take_fields(HeaderFields& to, const ibv_flow_ipv4_filter& from) {
    take(to.ipv4_source, from.src_ip);
    take(to.ipv4_destination, from.dst_ip);
}

void take_fields(HeaderFields& to, const ibv_flow_ipv4_ext_filter& from) {
    take(to.ipv4_source, from.src_ip);
    take(to.ipv4_destination, from.dst_ip);
    to.ipv4_protocol = from.proto;
    to.ipv4_tos = from.tos;
    to.ipv4_ttl = from.ttl;
    to.ipv4_flags = from.flags;
}

void take_fields(HeaderFields& to, const ibv_flow_ipv6_filter& from) {
    take(to.ipv6_source, from.src_ip);
    take(to.ipv6_destination, from.dst_ip);
    take(to.ipv6_flow_label, from.flow_label);
    to.ipv6_next_header = from.next_hdr;
    to.ipv6_traffic_class = from.traffic_class;
    to.ipv6_hop_limit = from.hop_limit;
}

void take_fields(HeaderFields& to, const ibv_flow_tcp_udp_filter& from) {
    take(to.source_port, from.src_port);
    take(to.destination_port, from.dst_port);
}

void take_fields(HeaderFields& to, const ibv_flow_esp_filter& from) {
    take(to.esp_spi, from.spi);
    take(to.esp_sequence, from.seq);
}

void take_fields(HeaderFields& to, const ibv_flow_mpls_filter& from) {
    take(to.mpls_entry, from.label);
}

void take_fields(TunnelFields& to, const ibv_flow_mpls_filter& from) {
    take(to.mpls_entry, from.label);
}

void take_fields(TunnelFields& to, const ibv_flow_tunnel_filter& from) {
    take(to.vxlan_vni, from.tunnel_id);
}

void take_fields(TunnelFields& to, const ibv_flow_gre_filter& from) {
    take(to.gre_flags, from.c_ks_res0_ver);
    take(to.gre_protocol, from.protocol);
    take(to.gre_key, from.key);
}

// Returns true if a number in network order has more bits than its field.
bool has_more_bits_than(unsigned bits, std::uint32_t value) {
    return __builtin_bswap32(value) >> bits != 0;
}
bool is_too_wide(const ibv_flow_ipv6_filter& filter) {
    constexpr unsigned kFlowLabelBits = 20;
    return has_more_bits_than(kFlowLabelBits, filter.flow_label);
}
bool is_too_wide(const ibv_flow_tunnel_filter& filter) {
    constexpr unsigned kVniBits = 24;
    return has_more_bits_than(kVniBits, filter.tunnel_id);
}
template <class Filter>
bool is_too_wide(const Filter& /*filter*/) {
    return false;
}

// Returns the layers that a frame needs besides the layer itself for a field that is not in all of
// them.
FrameLayers also_needed(const ibv_flow_eth_filter& mask) {
    return mask.vlan_tag != 0 ? FrameLayer::kCvlan : FrameLayers();
}
FrameLayers also_needed(const ibv_flow_gre_filter& mask) {
    return mask.key != 0 ? FrameLayer::kGreKey : FrameLayers();
}
template <class Filter>
FrameLayers also_needed(const Filter& /*mask*/) {
    return {};
}

// A list of specifications on its way into a command. Each method answers with an errno.
class Specifications {
  public:
    explicit Specifications(CreateFlow& command) : command_(command) {}
    int add(std::uint32_t type, const std::byte* bytes, std::size_t size);

  private:
    int add_action(std::uint32_t type, const std::byte* bytes, std::size_t size);
    int add_counters(const std::byte* bytes, std::size_t size);
    int add_mpls(bool inner_header, const std::byte* bytes, std::size_t size);
    template <class Spec>
    int add_header(bool inner_header, FrameLayer layer, const std::byte* bytes, std::size_t size);
    template <class Spec>
    int add_tunnel(FrameLayer layer, const std::byte* bytes, std::size_t size);

    CreateFlow& command_;
    std::uint32_t before_ = 0;  // the type of the specification of a header that came before
};

template <class Spec>
int copy_spec(const std::byte* bytes, std::size_t size, Spec& spec) {
    if (size != sizeof spec) {
        return EINVAL;
    }
    std::memcpy(&spec, bytes, sizeof spec);
    return is_too_wide(spec.val) || is_too_wide(spec.mask) ? EINVAL : 0;
}

template <class Spec>
int Specifications::add_header(bool inner_header, FrameLayer layer, const std::byte* bytes,
                               std::size_t size) {
    Spec spec;
    if (const int error = copy_spec(bytes, size, spec); error != 0) {
        return error;
    }
    take_fields(inner_header ? command_.value.inner : command_.value.outer, spec.val);
    take_fields(inner_header ? command_.mask.inner : command_.mask.outer, spec.mask);
    const FrameLayers needed = FrameLayers(layer) | also_needed(spec.mask);
    command_.layers |= (inner_header ? inner(needed) : needed).bits;
    return 0;
}

template <class Spec>
int Specifications::add_tunnel(FrameLayer layer, const std::byte* bytes, std::size_t size) {
    Spec spec;
    if (const int error = copy_spec(bytes, size, spec); error != 0) {
        return error;
    }
    take_fields(command_.value.tunnel, spec.val);
    take_fields(command_.mask.tunnel, spec.mask);
    command_.layers |= (FrameLayers(layer) | also_needed(spec.mask)).bits;
    return 0;
}

// A label stands where the specification before it says (ibv_create_flow(3), "Rules definition
// ordering"): behind UDP, GRE or an Ethernet header.
int Specifications::add_mpls(bool inner_header, const std::byte* bytes, std::size_t size) {
    const std::uint32_t level = inner_header ? IBV_FLOW_SPEC_INNER : 0;
    if (before_ == IBV_FLOW_SPEC_UDP && !inner_header) {
        return add_tunnel<ibv_flow_spec_mpls>(FrameLayer::kMplsOverUdp, bytes, size);
    }
    if (before_ == IBV_FLOW_SPEC_GRE && !inner_header) {
        return add_tunnel<ibv_flow_spec_mpls>(FrameLayer::kMplsOverGre, bytes, size);
    }
    const bool is_first_of_its_level = (before_ & IBV_FLOW_SPEC_INNER) != level || before_ == 0;
    if (before_ != (IBV_FLOW_SPEC_ETH | level) && !is_first_of_its_level) {
        return EINVAL;
    }
    return add_header<ibv_flow_spec_mpls>(inner_header, FrameLayer::kMpls, bytes, size);
}

// One set of counters a rule.
int Specifications::add_counters(const std::byte* bytes, std::size_t size) {
    ibv_flow_spec_counter_action action;
    if (size != sizeof action || command_.counters != 0) {
        return EINVAL;
    }
    std::memcpy(&action, bytes, sizeof action);
    if (action.counters == nullptr) {
        return EINVAL;
    }
    command_.counters = as_object(action.counters).number();
    return 0;
}

int Specifications::add_action(std::uint32_t type, const std::byte* bytes, std::size_t size) {
    switch (type) {
        case IBV_FLOW_SPEC_ACTION_TAG: {
            ibv_flow_spec_action_tag action;
            if (size != sizeof action) {
                return EINVAL;
            }
            std::memcpy(&action, bytes, sizeof action);
            command_.tag = action.tag_id;
            return 0;
        }
        case IBV_FLOW_SPEC_ACTION_DROP:
            command_.drops = 1;
            return size == sizeof(ibv_flow_spec_action_drop) ? 0 : EINVAL;
        case IBV_FLOW_SPEC_ACTION_COUNT:
            return add_counters(bytes, size);
        default:
            return type == IBV_FLOW_SPEC_ACTION_HANDLE ? EOPNOTSUPP : EINVAL;
    }
}

int Specifications::add(std::uint32_t type, const std::byte* bytes, std::size_t size) {
    if (type >= IBV_FLOW_SPEC_ACTION_TAG) {
        return add_action(type, bytes, size);
    }
    const bool inner_header = (type & IBV_FLOW_SPEC_INNER) != 0;
    const auto header = [this, inner_header, bytes, size]<class Spec>(FrameLayer layer) {
        return add_header<Spec>(inner_header, layer, bytes, size);
    };
    int error = EINVAL;
    switch (type & ~static_cast<std::uint32_t>(IBV_FLOW_SPEC_INNER)) {
        case IBV_FLOW_SPEC_ETH:
            error = header.operator()<ibv_flow_spec_eth>(FrameLayer::kEthernet);
            break;
        case IBV_FLOW_SPEC_IPV4:
            error = header.operator()<ibv_flow_spec_ipv4>(FrameLayer::kIpv4);
            break;
        case IBV_FLOW_SPEC_IPV4_EXT:
            error = header.operator()<ibv_flow_spec_ipv4_ext>(FrameLayer::kIpv4);
            break;
        case IBV_FLOW_SPEC_IPV6:
            error = header.operator()<ibv_flow_spec_ipv6>(FrameLayer::kIpv6);
            break;
        case IBV_FLOW_SPEC_ESP:
            error = header.operator()<ibv_flow_spec_esp>(FrameLayer::kEsp);
            break;
        case IBV_FLOW_SPEC_TCP:
            error = header.operator()<ibv_flow_spec_tcp_udp>(FrameLayer::kTcp);
            break;
        case IBV_FLOW_SPEC_UDP:
            error = header.operator()<ibv_flow_spec_tcp_udp>(FrameLayer::kUdp);
            break;
        case IBV_FLOW_SPEC_MPLS:
            error = add_mpls(inner_header, bytes, size);
            break;
        case IBV_FLOW_SPEC_VXLAN_TUNNEL:
            error = inner_header
                        ? EINVAL
                        : add_tunnel<ibv_flow_spec_tunnel>(FrameLayer::kVxlan, bytes, size);
            break;
        case IBV_FLOW_SPEC_GRE:
            error = inner_header ? EINVAL
                                 : add_tunnel<ibv_flow_spec_gre>(FrameLayer::kGre, bytes, size);
            break;
        default:
            break;
    }
    before_ = type;
    return error;
}

int add_specs(const ibv_flow_attr& attr, CreateFlow& command) {
    Specifications specifications(command);
    const auto* next = reinterpret_cast<const std::byte*>(&attr + 1);
    for (std::uint8_t i = 0; i < attr.num_of_specs; ++i) {
        std::uint32_t type = 0;
        std::uint16_t size = 0;
        std::memcpy(&type, next + offsetof(ibv_flow_spec_eth, type), sizeof type);
        std::memcpy(&size, next + offsetof(ibv_flow_spec_eth, size), sizeof size);
        if (const int error = specifications.add(type, next, size); error != 0) {
            return error;
        }
        next += size;
    }
    return 0;
}

// Returns true if one frame can have all of these layers: at most one of each of these sets.
bool makes_sense(FrameLayers layers) {
    constexpr FrameLayers kNetworks = FrameLayer::kIpv4 | FrameLayer::kIpv6 | FrameLayer::kMpls;
    constexpr FrameLayers kTransports = FrameLayer::kTcp | FrameLayer::kUdp | FrameLayer::kEsp |
                                        FrameLayer::kGre | FrameLayer::kMpls;
    constexpr FrameLayers kNotOverUdp = kTransports.without(FrameLayer::kUdp);
    constexpr FrameLayers kNotOverGre = kTransports.without(FrameLayer::kGre);
    for (const FrameLayers alternatives :
         {kNetworks, kTransports, inner(kNetworks), inner(kTransports),
          kNotOverUdp | FrameLayer::kVxlan | FrameLayer::kMplsOverUdp,
          kNotOverGre | FrameLayer::kMplsOverGre}) {
        if ((layers & alternatives).size() > 1) {
            return false;
        }
    }
    return true;
}

// Layers behind labels are not looked at.
bool looks_behind_labels(FrameLayers layers) {
    constexpr FrameLayers kLabels =
        FrameLayer::kMpls | FrameLayer::kMplsOverUdp | FrameLayer::kMplsOverGre;
    constexpr FrameLayers kAnyInner = inner(FrameLayers::from_bits(0xFFFF));
    return layers.intersects(kLabels) && layers.intersects(kAnyInner);
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
    command.egress = (attr.flags & IBV_FLOW_ATTR_FLAGS_EGRESS) != 0 ? 1 : 0;
    command.type = type;
    command.priority = attr.priority;
    command.port = attr.port;
    command.traps = dont_trap ? 0 : 1;
    if (const int error = add_specs(attr, command); error != 0) {
        return error;
    }
    const bool empty = type == IBV_FLOW_ATTR_NORMAL && attr.num_of_specs == 0;
    const FrameLayers layers = FrameLayers::from_bits(command.layers);
    if (empty || !makes_sense(layers)) {
        return EINVAL;
    }
    return looks_behind_labels(layers) ? EOPNOTSUPP : 0;
}

}  // namespace

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attr) {
    CreateFlow command;
    command.qp = qp->handle;
    HandleReply reply;
    Context& context = as_object(qp->context);
    if (!context.personality().limits.caps.contains(DeviceCap::kManagedFlowSteering)) {
        refuse("ibv_create_flow", EOPNOTSUPP, "the device steers no frames");
        return nullptr;
    }
    if (const int error = fill_command(*attr, command); error != 0) {
        refuse("ibv_create_flow", error,
               "an attribute of the rule or one of its {} specifications is unknown, out of range, "
               "or not taken by the device",
               attr->num_of_specs);
        return nullptr;
    }
    if (context.execute(command, reply) != 0) {
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
