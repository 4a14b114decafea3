// Address handles, and the multicast groups that datagrams go to.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>

#include <infiniband/verbs.h>

#include "simverbs/abi/address_vector.hpp"
#include "simverbs/abi/destroyed_objects.hpp"
#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/objects.hpp"

namespace simverbs::abi {

AddressVector to_address_vector(const ibv_ah_attr& attr) {
    AddressVector path;
    std::memcpy(path.dgid.data(), attr.grh.dgid.raw, path.dgid.size());
    path.flow_label = attr.grh.flow_label;
    path.sgid_index = attr.grh.sgid_index;
    path.hop_limit = attr.grh.hop_limit;
    path.traffic_class = attr.grh.traffic_class;
    path.dlid = attr.dlid;
    path.sl = attr.sl;
    path.src_path_bits = attr.src_path_bits;
    path.static_rate = attr.static_rate;
    path.is_global = attr.is_global != 0;
    path.port = attr.port_num;
    return path;
}

ibv_ah_attr to_ah_attr(const AddressVector& path) {
    ibv_ah_attr attr{};
    std::memcpy(attr.grh.dgid.raw, path.dgid.data(), path.dgid.size());
    attr.grh.flow_label = path.flow_label;
    attr.grh.sgid_index = path.sgid_index;
    attr.grh.hop_limit = path.hop_limit;
    attr.grh.traffic_class = path.traffic_class;
    attr.dlid = path.dlid;
    attr.sl = path.sl;
    attr.src_path_bits = path.src_path_bits;
    attr.static_rate = path.static_rate;
    attr.is_global = path.is_global ? 1 : 0;
    attr.port_num = path.port;
    return attr;
}

namespace {

template <class C>
int change_membership(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
    C command;
    command.handle = qp->handle;
    std::memcpy(command.gid.data(), gid->raw, command.gid.size());
    command.lid = lid;
    return as_object(qp->context).execute(command);
}

// A global header as a receive's first 40 bytes hold it: IPv6 or IBA, or, for RoCE v2 over IPv4, an
// IPv4 header in its last 20 bytes (IBA A17.4.5.2).
struct GlobalHeader {
    ibv_gid source{};
    ibv_gid destination{};
    std::uint32_t flow_label = 0;
    std::uint8_t traffic_class = 0;
    std::uint8_t hop_limit = 0;
    bool over_udp = false;
};

ibv_gid mapped(const std::byte* ipv4) {
    ibv_gid gid{};
    gid.raw[10] = gid.raw[11] = 0xFF;
    std::memcpy(gid.raw + 12, ipv4, 4);
    return gid;
}

GlobalHeader parse(const ibv_grh& grh) {
    constexpr unsigned kVersionShift = 28;
    constexpr std::size_t kIpv4At = 20;
    GlobalHeader header;
    const std::uint32_t first = ntohl(grh.version_tclass_flow);
    if (first >> kVersionShift == 6) {
        header.source = grh.sgid;
        header.destination = grh.dgid;
        header.flow_label = first & 0xFFFFF;
        header.traffic_class = static_cast<std::uint8_t>(first >> 20U);
        header.hop_limit = grh.hop_limit;
        header.over_udp = grh.next_hdr == IPPROTO_UDP;
    } else {
        const std::byte* ipv4 = reinterpret_cast<const std::byte*>(&grh) + kIpv4At;
        header.traffic_class = std::to_integer<std::uint8_t>(ipv4[1]);
        header.hop_limit = std::to_integer<std::uint8_t>(ipv4[8]);
        header.over_udp = true;
        header.source = mapped(ipv4 + 12);
        header.destination = mapped(ipv4 + 16);
    }
    return header;
}

// -1 with errno when the port has no such GID, or has it for RoCE v1 (or InfiniBand) only or for v2
// only, and the other is wanted.
int find_gid(ibv_context& context, std::uint8_t port, const ibv_gid& wanted, bool over_udp) {
    ibv_gid gid{};
    for (int index = 0; simverbs_abi_ibv_query_gid(&context, port, index, &gid) == 0; ++index) {
        ibv_gid_entry entry{};
        if (std::memcmp(gid.raw, wanted.raw, sizeof gid.raw) == 0 &&
            simverbs_abi_ibv_query_gid_ex(&context, port, static_cast<std::uint32_t>(index), &entry,
                                          0, sizeof entry) == 0 &&
            (entry.gid_type == IBV_GID_TYPE_ROCE_V2) == over_udp) {
            return index;
        }
    }
    refuse("ibv_init_ah_from_wc", EINVAL,
           "port {} has no GID {} of the kind of the datagram's header", port,
           fabric::to_string(fabric::Gid{std::to_array(wanted.raw)}));
    return -1;
}

}  // namespace

// Where a datagram came from, as the attributes of a handle that leads back
// (ibv_create_ah_from_wc(3)).
SIMVERBS_ABI int simverbs_abi_ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port_num,
                                                  ibv_wc* wc, ibv_grh* grh, ibv_ah_attr* attr) {
    *attr = {};
    attr->dlid = wc->slid;
    attr->sl = wc->sl;
    attr->src_path_bits = wc->dlid_path_bits;
    attr->port_num = port_num;
    if ((wc->wc_flags & IBV_WC_GRH) == 0) {
        return 0;
    }
    const GlobalHeader header = parse(*grh);
    const int index = find_gid(*context, port_num, header.destination, header.over_udp);
    if (index < 0) {
        return -1;
    }
    attr->is_global = 1;
    attr->grh.dgid = header.source;
    attr->grh.sgid_index = static_cast<std::uint8_t>(index);
    attr->grh.flow_label = header.flow_label;
    attr->grh.traffic_class = header.traffic_class;
    attr->grh.hop_limit = header.hop_limit;
    return 0;
}

SIMVERBS_ABI ibv_ah* simverbs_abi_ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh,
                                                        std::uint8_t port_num) {
    ibv_ah_attr attr;
    if (simverbs_abi_ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0) {
        return nullptr;
    }
    return simverbs_abi_ibv_create_ah(pd, &attr);
}

SIMVERBS_ABI ibv_ah* simverbs_abi_ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
    CreateAh command;
    command.pd = pd->handle;
    command.path = to_address_vector(*attr);
    HandleReply reply;
    if (const int error = as_object(pd->context).execute(command, reply); error != 0) {
        errno = error;
        return nullptr;
    }
    return std::make_unique<ibv_ah>(ibv_ah{pd->context, pd, reply.handle}).release();
}

SIMVERBS_ABI int simverbs_abi_ibv_destroy_ah(ibv_ah* ah) {
    if (was_destroyed(ah, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    DestroyAh command;
    command.handle = ah->handle;
    const int error = as_object(ah->context).execute(command);
    if (error == 0) {
        destroy(*ah, {ah, ah->context, "address handle", ah->handle});
    }
    return error;
}

SIMVERBS_ABI int simverbs_abi_ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
    if (is_used_after_destroy(qp, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    return change_membership<AttachMulticast>(qp, gid, lid);
}

SIMVERBS_ABI int simverbs_abi_ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
    if (is_used_after_destroy(qp, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    return change_membership<DetachMulticast>(qp, gid, lid);
}

}  // namespace simverbs::abi
