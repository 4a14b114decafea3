// Multicast memberships, and the Q_Key of a datagram id.
#include <algorithm>
#include <cerrno>

#include "fabric/mad/field.hpp"

#include "simverbs/rdma_cm/rdma_cm.hpp"
#include "simverbs/rdma_cm/rdma_id.hpp"

namespace simverbs::rdma_cm {

using fabric::Gid;
using fabric::GidType;

namespace {

constexpr std::uint32_t kMulticastQpn = 0xFF'FFFF;
constexpr std::uint8_t kMulticastHopLimit = 64;  // of IPv4 over RoCE v2

// An IPv6 address of this form is an MGID that a subnet administration has assigned.
bool is_assigned_mgid(const Gid& address) {
    const std::uint64_t first = fabric::mad::get(address.bytes, {0, 32});
    return (first & 0xFFF0'FFFF) == 0xFF10'A01B;
}

// Returns true if the port speaks RoCE v2, which is then preferred.
bool prefers_roce_v2(const PortInfo& port) {
    return std::ranges::any_of(
        port.gids, [](const fabric::GidEntry& entry) { return entry.type == GidType::kRoceV2; });
}

}  // namespace

int RdmaId::set_default_qkey() {
    if (qkey_ != 0) {
        return 0;
    }
    if (space_ == PortSpace::kIpoib) {
        const PortInfo* const port = port_info();
        if (port == nullptr || !port->ipoib_qkey) {
            return EADDRNOTAVAIL;
        }
        qkey_ = *port->ipoib_qkey;
    } else if (space_ == PortSpace::kUdp || space_ == PortSpace::kIb) {
        qkey_ = kUdpQkey;
    }
    return 0;
}

int RdmaId::set_qkey(std::uint32_t qkey) {
    if (qkey == 0 || (qkey_ != 0 && qkey_ != qkey)) {
        return EINVAL;
    }
    qkey_ = qkey;
    return 0;
}

// Maps an IP address to an MGID (RFC 4391, RFC 2373); the port space of datagrams has a signature
// of its own.
Gid RdmaId::group_gid(const SocketAddress& group) const {
    const Gid address = group.gid();
    if (group.is_any()) {
        return {};
    }
    if (group.family() == AddressFamily::kInfiniband ||
        (group.family() == AddressFamily::kInet6 && is_assigned_mgid(address))) {
        return address;
    }
    const bool is_ipv4 = group.family() == AddressFamily::kInet;
    const std::uint64_t signature = space_ == PortSpace::kUdp ? 0x01 : 0x1B;
    Gid mgid;
    const auto put = [&mgid](std::uint16_t offset, std::uint8_t bits, std::uint64_t value) {
        fabric::mad::set(mgid.bytes, {offset, bits}, value);
    };
    put(0, 16, 0xFF12);  // transient, link-local scope
    put(16, 16, (is_ipv4 ? 0x4000U : 0x6000U) | signature);
    put(32, 16, local_->pkey | 0x8000U);
    if (is_ipv4) {
        put(100, 28, fabric::mad::get(address.bytes, {100, 28}));
    } else {
        std::copy(address.bytes.begin() + 6, address.bytes.end(), mgid.bytes.begin() + 6);
    }
    return mgid;
}

int RdmaId::join(const SocketAddress& group, JoinState state, std::uint64_t token) {
    if (!local_ || qp_type_ != QpType::kUd ||
        (state_ != RdmaCmState::kAddrBound && state_ != RdmaCmState::kAddrResolved)) {
        return EINVAL;
    }
    if (memberships_.size() >= kMaxMemberships) {
        return ENOMEM;
    }
    if (is_ethernet()) {
        return join_ethernet(group, token);
    }
    if (const int error = set_default_qkey(); error != 0) {
        return error;
    }
    const MembershipId membership = host_.join(number(), {.local = *local_,
                                                          .mgid = group_gid(group),
                                                          .pkey = local_->pkey,
                                                          .qkey = qkey_,
                                                          .state = state});
    memberships_.push_back({token, membership});
    return 0;
}

// The MGID is made of the IP address, and nobody is asked.
int RdmaId::join_ethernet(const SocketAddress& group, std::uint64_t token) {
    if (group.is_zero()) {
        return EINVAL;
    }
    const PortInfo& port = *port_info();
    const bool is_udp = prefers_roce_v2(port);
    GroupMember member{.mgid = group.gid(), .hop_limit = 1};
    if (group.family() == AddressFamily::kInet) {
        if (is_udp) {
            member.hop_limit = kMulticastHopLimit;
        } else {
            fabric::mad::set(member.mgid.bytes, {0, 16}, 0xFF0E);
        }
    } else if (is_udp) {
        return EOPNOTSUPP;
    }
    if (port.mtu == 0) {
        return EINVAL;
    }
    if (const int error = set_default_qkey(); error != 0) {
        return error;
    }
    memberships_.push_back({token, MembershipId{}});
    report_member(token, member);
    return 0;
}

void RdmaId::leave(std::uint64_t token) {
    const auto found = std::ranges::find(memberships_, token, &Membership::token);
    if (found == memberships_.end()) {
        return;
    }
    if (found->id != MembershipId{}) {
        host_.leave(found->id);
    }
    memberships_.erase(found);
}

void RdmaId::report_member(std::uint64_t token, const GroupMember& member) {
    const PortInfo& port = *port_info();
    const bool is_ethernet = port.layer == fabric::LinkLayer::kEthernet;
    RdmaEvent event{.type = RdmaEventType::kMulticastJoin, .membership = token};
    // A group is reached by a GRH, whatever the hop limit.
    ib_uverbs_ah_attr& address = event.datagram.address;
    address.is_global = 1;
    address.dlid = is_ethernet ? std::uint16_t{0} : member.mlid.value();
    address.sl = member.sl;
    address.static_rate = is_ethernet ? std::uint8_t{0} : member.rate;
    address.port_num = static_cast<std::uint8_t>(port.number.value());
    std::ranges::copy(member.mgid.bytes, std::begin(address.grh.dgid));
    address.grh.flow_label = member.flow_label;
    address.grh.hop_limit = member.hop_limit;
    address.grh.traffic_class = member.traffic_class;
    address.grh.sgid_index = gid_index(port, local_->gid).value_or(0);
    event.datagram.qp_num = kMulticastQpn;
    event.datagram.qkey = qkey_;
    host_.user().rdma_event(*this, event);
}

void RdmaId::joined(MembershipId membership, const GroupMember& member) {
    if (set_qkey(member.qkey) != 0) {
        membership_failed(membership, EINVAL);
        return;
    }
    const auto found = std::ranges::find(memberships_, membership, &Membership::id);
    if (state_ != RdmaCmState::kAddrBound && state_ != RdmaCmState::kAddrResolved) {
        return;
    }
    report_member(found->token, member);
}

void RdmaId::membership_failed(MembershipId membership, int error) {
    const auto found = std::ranges::find(memberships_, membership, &Membership::id);
    if (state_ != RdmaCmState::kAddrBound && state_ != RdmaCmState::kAddrResolved) {
        return;
    }
    host_.user().rdma_event(
        *this,
        {.type = RdmaEventType::kMulticastError, .status = -error, .membership = found->token});
}

}  // namespace simverbs::rdma_cm
