// Address handles and multicast groups (IBA 11.2.2, 11.3).
#include <cerrno>

#include "simverbs/hca/addressing.hpp"
#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"

namespace simverbs {
namespace {

constexpr std::uint8_t kMulticastGidPrefix = 0xFF;

fabric::Gid to_gid(const std::array<std::uint8_t, 16>& bytes) {
    fabric::Gid gid;
    gid.bytes = bytes;
    return gid;
}

}  // namespace

int DeviceContext::execute(const CreateAh& command, HandleReply& reply) {
    ProtectionDomain* pd = find(pds_, command.pd);
    if (pd == nullptr) {
        return ENOENT;
    }
    AddressVector path = command.path;
    if (!hca_.personality().checks_values_of_address_handle) {
        cut_path(path);
    }
    if (const int error = resolve_path(hca_, path); error != 0) {
        return error;
    }
    if (addresses_.size() >= static_cast<std::size_t>(hca_.personality().limits.max_ah)) {
        return ENOMEM;
    }
    ++pd->uses;
    reply.handle = ++last_address_;
    addresses_[reply.handle] = {pd, path};
    return 0;
}

int DeviceContext::execute(const DestroyAh& command, EmptyReply& /*reply*/) {
    const auto found = addresses_.find(command.handle);
    if (found == addresses_.end()) {
        return ENOENT;
    }
    --found->second.pd->uses;
    addresses_.erase(found);
    return 0;
}

// As rdma-core's kernel side checks: a multicast GID, datagrams, on InfiniBand a multicast LID.
int DeviceContext::check_group(const std::array<std::uint8_t, 16>& gid, std::uint16_t lid,
                               const QueuePair* qp) const {
    const bool takes_part = qp != nullptr && properties(qp->attributes().service).multicast;
    return takes_part && gid[0] == kMulticastGidPrefix && is_multicast_lid(lid) ? 0 : EINVAL;
}

int DeviceContext::execute(const AttachMulticast& command, EmptyReply& /*reply*/) {
    QueuePair* qp = find_qp(command.handle);
    if (const int error = check_group(command.gid, command.lid, qp); error != 0) {
        return error;
    }
    return hca_.multicast().attach(to_gid(command.gid), fabric::Lid(command.lid), *qp,
                                   hca_.personality().limits);
}

int DeviceContext::execute(const DetachMulticast& command, EmptyReply& /*reply*/) {
    QueuePair* qp = find_qp(command.handle);
    if (const int error = check_group(command.gid, command.lid, qp); error != 0) {
        return error;
    }
    return hca_.multicast().detach(to_gid(command.gid), fabric::Lid(command.lid), *qp);
}

}  // namespace simverbs
