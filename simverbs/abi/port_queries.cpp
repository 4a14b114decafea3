// Queries of a port: its attributes, speed, GIDs and P_Keys.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <infiniband/verbs.h>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"
#include "simverbs/abi/provider_abi.hpp"

namespace simverbs::abi {
namespace {

// enum ibv_gid_type_sysfs: what rdma-core reads of sysfs, where InfiniBand and RoCE v1 are one.
constexpr int kSysfsInfinibandOrRoceV1 = 0;
constexpr int kSysfsRoceV2 = 1;

int query_gid(ibv_context* handle, std::uint32_t port, std::uint32_t index, QueryGidReply& reply) {
    QueryGid command;
    command.port = port;
    command.index = index;
    return as_object(handle).execute(command, reply);
}

void fill_port(ibv_port_attr& attr, const QueryPortReply& reply, const DeviceLimits& limits) {
    attr = {};
    attr.state = static_cast<ibv_port_state>(reply.state);
    attr.max_mtu = static_cast<ibv_mtu>(reply.max_mtu);
    attr.active_mtu = static_cast<ibv_mtu>(reply.active_mtu);
    attr.gid_tbl_len = static_cast<int>(reply.gid_entries);
    const bool is_ethernet = reply.link_layer == IBV_LINK_LAYER_ETHERNET;
    const PortCaps caps = is_ethernet ? limits.port.ethernet_caps : limits.port.infiniband_caps;
    const PortCaps of_manager = reply.is_sm != 0 ? PortCaps(PortCap::kSm) : PortCaps();
    attr.port_cap_flags = static_cast<std::uint32_t>((caps | of_manager).bits);
    attr.max_msg_sz = limits.port.max_message_bytes;
    attr.bad_pkey_cntr = reply.bad_pkey_count;
    attr.qkey_viol_cntr = reply.bad_qkey_count;
    attr.pkey_tbl_len = reply.pkey_entries;
    attr.lid = reply.lid;
    attr.sm_lid = reply.sm_lid;
    attr.lmc = reply.lmc;
    attr.max_vl_num = limits.port.max_vl_num;
    attr.sm_sl = reply.sm_sl;
    attr.subnet_timeout = is_ethernet ? 0 : limits.port.subnet_timeout;
    attr.active_width = static_cast<std::uint8_t>(reply.width);
    // XDR needs the newer member; the older one then says NDR.
    attr.active_speed = static_cast<std::uint8_t>(std::min(reply.speed, 128U));
    attr.phys_state = static_cast<std::uint8_t>(reply.physical_state);
    attr.link_layer = reply.link_layer;
    attr.flags = static_cast<std::uint8_t>(is_ethernet ? IBV_QPF_GRH_REQUIRED : 0);
}

}  // namespace

// The client says how much of the structure it knows: 48, 52 or 56 bytes.
int query_port(ibv_context* handle, std::uint8_t port, ibv_port_attr* attr, std::size_t size) {
    Context& context = as_object(handle);
    QueryPort command;
    command.port = port;
    QueryPortReply reply;
    if (const int error = context.execute(command, reply); error != 0) {
        return error;
    }
    NewerPortAttr newer{};
    fill_port(newer.older, reply, context.personality().limits);
    newer.active_speed_ex = reply.speed;
    std::memcpy(attr, &newer, std::min(size, sizeof newer));
    return 0;
}

// The width and the speed of the link, whether or not the port is active: what Linux's sysfs states
// as its rate.
SIMVERBS_ABI int simverbs_abi_ibv_query_port_speed(ibv_context* handle, std::uint32_t port,
                                                   std::uint64_t* speed) {
    Context& context = as_object(handle);
    if (!context.personality().reports_port_speed) {
        return refuse("ibv_query_port_speed", EOPNOTSUPP, "the device does not report it");
    }
    QueryPort command;
    command.port = port;
    QueryPortReply reply;
    if (const int error = context.execute(command, reply); error != 0) {
        return error;
    }
    *speed = nominal_rate(static_cast<fabric::LinkWidth>(reply.width),
                          static_cast<fabric::LinkSpeed>(reply.speed));
    return 0;
}

// The exported function writes the structure as it was before its last members came.
SIMVERBS_ABI int simverbs_abi_ibv_query_port(ibv_context* context, std::uint8_t port,
                                             _compat_ibv_port_attr* attr) {
    constexpr std::size_t kCompatBytes = 48;
    return query_port(context, port, reinterpret_cast<ibv_port_attr*>(attr), kCompatBytes);
}

SIMVERBS_ABI int simverbs_abi_ibv_query_gid(ibv_context* handle, std::uint8_t port, int index,
                                            ibv_gid* gid) {
    QueryGidReply reply;
    if (const int error = query_gid(handle, port, static_cast<std::uint32_t>(index), reply);
        error != 0) {
        errno = error;
        return -1;
    }
    std::memcpy(gid->raw, reply.gid.data(), sizeof gid->raw);
    return 0;
}

SIMVERBS_ABI int simverbs_abi_ibv_query_pkey(ibv_context* handle, std::uint8_t port, int index,
                                             __be16* pkey) {
    QueryPkey command;
    command.port = port;
    command.index = static_cast<std::uint32_t>(index);
    QueryPkeyReply reply;
    if (const int error = as_object(handle).execute(command, reply); error != 0) {
        errno = error == EINVAL ? ENOENT : error;  // rdma-core looks for a file of sysfs
        return -1;
    }
    *pkey = __builtin_bswap16(reply.pkey);
    return 0;
}

SIMVERBS_ABI int simverbs_abi_ibv_get_pkey_index(ibv_context* context, std::uint8_t port,
                                                 __be16 pkey) {
    __be16 entry = 0;
    for (int index = 0; simverbs_abi_ibv_query_pkey(context, port, index, &entry) == 0; ++index) {
        if (entry == pkey) {
            return index;
        }
    }
    refuse("ibv_get_pkey_index", EINVAL, "port {} has no P_Key {:#x}", port,
           __builtin_bswap16(pkey));
    return -1;
}

SIMVERBS_ABI int simverbs_abi_ibv_query_gid_type(ibv_context* context, std::uint8_t port,
                                                 unsigned int index, int* type) {
    QueryGidReply reply;
    if (const int error = query_gid(context, port, index, reply); error != 0) {
        errno = error;
        return -1;
    }
    *type = reply.type == IBV_GID_TYPE_ROCE_V2 ? kSysfsRoceV2 : kSysfsInfinibandOrRoceV1;
    return 0;
}

SIMVERBS_ABI int simverbs_abi_ibv_query_gid_ex(ibv_context* context, std::uint32_t port,
                                               std::uint32_t index, ibv_gid_entry* entry,
                                               std::uint32_t flags, std::size_t entry_size) {
    if (flags != 0 || entry_size < sizeof(ibv_gid_entry)) {
        return refuse("ibv_query_gid_ex", EINVAL,
                      "flags {:#x} has to be 0 and entry_size at least {}", flags,
                      sizeof(ibv_gid_entry));
    }
    QueryGidReply reply;
    if (query_gid(context, port, index, reply) != 0) {
        return with_errno(EINVAL);
    }
    ibv_gid_entry found{};
    std::memcpy(found.gid.raw, reply.gid.data(), sizeof found.gid.raw);
    if (found.gid.global.subnet_prefix == 0 && found.gid.global.interface_id == 0) {
        keep_reason("ibv_query_gid_ex",
                    fmt::format("entry {} of port {}'s GID table is empty", index, port));
        return with_errno(ENODATA);
    }
    found.gid_index = index;
    found.port_num = port;
    found.gid_type = reply.type;
    found.ndev_ifindex = reply.ndev;
    std::memset(entry, 0, entry_size);
    std::memcpy(entry, &found, sizeof found);
    return 0;
}

SIMVERBS_ABI ssize_t simverbs_abi_ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries,
                                                      std::size_t max_entries, std::uint32_t flags,
                                                      std::size_t entry_size) {
    if (flags != 0 || entry_size < sizeof(ibv_gid_entry)) {
        return -refuse("ibv_query_gid_table", EINVAL,
                       "flags {:#x} has to be 0 and entry_size at least {}", flags,
                       sizeof(ibv_gid_entry));
    }
    const std::uint32_t ports = as_object(context).device().info().ports;
    const std::uint32_t length = as_object(context).personality().limits.port.gid_entries;
    std::size_t found = 0;
    for (std::uint32_t port = 1; port <= ports; ++port) {
        for (std::uint32_t index = 0; index < length; ++index) {
            alignas(ibv_gid_entry) char entry[sizeof(ibv_gid_entry)];
            auto* read = reinterpret_cast<ibv_gid_entry*>(entry);
            if (simverbs_abi_ibv_query_gid_ex(context, port, index, read, 0, sizeof entry) != 0) {
                continue;
            }
            if (found == max_entries) {
                return -refuse("ibv_query_gid_table", EINVAL,
                               "there are more than max_entries {} GIDs", max_entries);
            }
            auto* place = reinterpret_cast<std::byte*>(entries) + found * entry_size;
            std::memset(place, 0, entry_size);
            std::memcpy(place, read, sizeof entry);
            ++found;
        }
    }
    return static_cast<ssize_t>(found);
}

}  // namespace simverbs::abi
