// Queries about the Ethernet side of a port.
#include <algorithm>
#include <cerrno>

#include <infiniband/verbs.h>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/objects.hpp"

namespace simverbs::abi {

// Returns what rdma-core's does: a negative errno, -1 with errno for an unknown GID index. `vlan`
// is that of the source GID; 0xFFFF: none.
SIMVERBS_ABI int simverbs_abi_ibv_resolve_eth_l2_from_gid(ibv_context* handle, ibv_ah_attr* attr,
                                                          std::uint8_t* mac, std::uint16_t* vlan) {
    constexpr std::uint16_t kNoVlan = 0xFFFF;
    ibv_gid source{};
    if (const int error =
            simverbs_abi_ibv_query_gid(handle, attr->port_num, attr->grh.sgid_index, &source);
        error != 0) {
        return error;
    }
    ResolveEthernet command;
    command.path.is_global = true;
    std::copy_n(attr->grh.dgid.raw, sizeof attr->grh.dgid.raw, command.path.dgid.begin());
    command.path.sgid_index = attr->grh.sgid_index;
    command.path.port = attr->port_num;
    ResolveEthernetReply reply;
    if (const int error = as_object(handle).execute(command, reply); error != 0) {
        return error == ETIMEDOUT ? -EHOSTUNREACH : -EINVAL;
    }
    std::copy(reply.mac.bytes.begin(), reply.mac.bytes.end(), mac);
    if (vlan != nullptr) {
        *vlan = reply.vlan == 0 ? kNoVlan : reply.vlan;
    }
    return 0;
}

}  // namespace simverbs::abi
