// Address handles and multicast groups (IBA 11.2.2, 11.3).
#include <cerrno>

#include "fabric/net/ethernet.hpp"

#include "simverbs/hca/addressing.hpp"
#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"

namespace simverbs {
namespace {

fabric::Gid to_gid(const std::array<std::uint8_t, 16>& bytes) {
    fabric::Gid gid;
    gid.bytes = bytes;
    return gid;
}

}  // namespace

int DeviceContext::execute(const CreateAh& command, HandleReply& reply) {
    ProtectionDomain* pd = find(pds_, command.pd);
    if (pd == nullptr) {
        return refuse_handle(ENOENT, "PD", command.pd);
    }
    AddressVector path = command.path;
    if (!hca_.personality().checks_values_of_address_handle) {
        cut_path(path);
    }
    if (const int error = resolve_path(hca_, path, refusal_); error != 0) {
        return error;
    }
    if (addresses_.size() >= static_cast<std::size_t>(hca_.personality().limits.max_ah)) {
        return refuse(ENOMEM, "the context has max_ah {} AHs", hca_.personality().limits.max_ah);
    }
    ++pd->uses;
    reply.handle = ++last_address_;
    addresses_[reply.handle] = {pd, path};
    return 0;
}

int DeviceContext::execute(const DestroyAh& command, EmptyReply& /*reply*/) {
    const auto found = addresses_.find(command.handle);
    if (found == addresses_.end()) {
        return refuse_handle(ENOENT, "AH", command.handle);
    }
    --found->second.pd->uses;
    addresses_.erase(found);
    return 0;
}

// As Linux ib_attach_mcast checks: a multicast GID, datagrams, on InfiniBand a multicast LID.
// RoCE has no LIDs: whatever comes as one is ignored (IBA A16).
int DeviceContext::find_group(const std::array<std::uint8_t, 16>& gid, std::uint16_t lid,
                              const QueuePair* qp, MulticastGroup& group) const {
    if (qp == nullptr) {
        return refuse(EINVAL, "the queue pair is none of this context");
    }
    if (!properties(qp->attributes().service).multicast) {
        return refuse(EINVAL, "QP {:#x} is of {}, and multicast is for datagrams (UD)", qp->qpn(),
                      properties(qp->attributes().service).name);
    }
    const bool on_ethernet =
        hca_.port(qp->attributes().port).attributes().link_layer == fabric::LinkLayer::kEthernet;
    group = {to_gid(gid), fabric::Lid(on_ethernet ? 0 : lid)};
    if (!fabric::is_multicast(group.gid)) {
        return refuse(EINVAL, "GID {} is of no multicast group: those begin with ff",
                      fabric::to_string(group.gid));
    }
    return on_ethernet || is_multicast_lid(lid)
               ? 0
               : refuse(EINVAL, "LID {:#x} is none of multicast: {:#x} to {:#x}", lid,
                        kFirstMulticastLid, kPermissiveLid - 1);
}

int DeviceContext::execute(const AttachMulticast& command, EmptyReply& /*reply*/) {
    QueuePair* qp = find_qp(command.handle);
    MulticastGroup group;
    if (const int error = find_group(command.gid, command.lid, qp, group); error != 0) {
        return error;
    }
    const int error = hca_.multicast().attach(group, *qp, hca_.personality().limits);
    return error == 0 ? 0
                      : refuse(error,
                               "the device takes no more multicast groups or members "
                               "(max_mcast_grp, max_mcast_qp_attach)");
}

int DeviceContext::execute(const DetachMulticast& command, EmptyReply& /*reply*/) {
    QueuePair* qp = find_qp(command.handle);
    MulticastGroup group;
    if (const int error = find_group(command.gid, command.lid, qp, group); error != 0) {
        return error;
    }
    const int error = hca_.multicast().detach(group, *qp);
    return error == 0 ? 0
                      : refuse(error, "QP {:#x} is not attached to {}", qp->qpn(),
                               fabric::to_string(group.gid));
}

}  // namespace simverbs
