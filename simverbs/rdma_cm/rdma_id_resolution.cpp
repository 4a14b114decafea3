// From IP addresses to GIDs, and from GIDs to a path.
#include <algorithm>
#include <cerrno>
#include <chrono>

#include "simverbs/rdma_cm/rdma_cm.hpp"
#include "simverbs/rdma_cm/rdma_id.hpp"

namespace simverbs::rdma_cm {

using fabric::Gid;
using fabric::GidType;
using fabric::LinkLayer;

namespace {

constexpr std::uint8_t kEthernetLifeTime = 16;  // CMA_IBOE_PACKET_LIFETIME of Linux
constexpr std::uint8_t kHopLimit = 64;          // of IP packets, as Linux sends them

// A time out of milliseconds as the kernel reads it: an int, of which less than one is over at
// once.
fabric::SimDuration timeout_of(std::uint32_t milliseconds) {
    const bool is_over = milliseconds == 0 || milliseconds > INT32_MAX;
    return std::chrono::milliseconds(is_over ? 1 : milliseconds);
}

// Returns the GID that stands for a port where no address names it.
Gid representative_gid(const PortInfo& port) {
    for (const fabric::GidEntry& entry : port.gids) {
        if (entry.type == GidType::kRoceV2 && entry.gid.subnet_prefix() == 0) {
            return entry.gid;  // IPv4-mapped
        }
    }
    return port.gids.empty() ? Gid{} : port.gids.front().gid;
}

}  // namespace

int RdmaId::bind_for(const SocketAddress& source, const SocketAddress& destination) {
    if (!accepts(RdmaCmTrigger::kBind)) {
        return EINVAL;
    }
    SocketAddress from = source;
    if (source.family() == AddressFamily::kNone) {
        from = SocketAddress(destination.family());
        if (destination.family() == AddressFamily::kInet6) {
            from.set_scope_id(destination.scope_id());
        } else if (destination.family() == AddressFamily::kInfiniband) {
            from.set_pkey(destination.pkey());
        }
    }
    owner_.destination = destination;
    const int error = bind(from);
    if (error != 0) {
        owner_.destination = {};
    }
    return error;
}

int RdmaId::resolve_addr(const SocketAddress& source, const SocketAddress& destination,
                         std::uint32_t timeout_ms) {
    if (state_ == RdmaCmState::kAddrBound) {
        owner_.destination = destination;
    } else if (const int error = bind_for(source, destination); error != 0) {
        return error;
    }
    if (owner_.source.family() != destination.family()) {
        return EINVAL;
    }
    move(RdmaCmTrigger::kResolveAddr);
    const int error = destination.is_any()                                 ? resolve_loopback()
                      : destination.family() == AddressFamily::kInfiniband ? resolve_infiniband()
                                                                           : resolve_ip(timeout_ms);
    if (error != 0) {
        move(RdmaCmTrigger::kAddressFailed);
        return error;
    }
    if (!address_timer_.armed() && state_ == RdmaCmState::kAddrQuery) {
        move(RdmaCmTrigger::kAddressFound);
        report(RdmaEventType::kAddrResolved);
    }
    return 0;
}

// Takes the first active port, or the first one.
int RdmaId::resolve_loopback() {
    const bool is_ib = owner_.source.family() == AddressFamily::kInfiniband;
    if (!local_) {
        const PortInfo* chosen = nullptr;
        DeviceIndex device;
        for (const DeviceInfo& each : host_.environment().devices()) {
            for (const PortInfo& port : each.ports) {
                const bool fits = !is_ib || port.layer == LinkLayer::kInfiniband;
                if (fits && (chosen == nullptr || (port.is_active && !chosen->is_active))) {
                    chosen = &port;
                    device = each.index;
                }
            }
        }
        if (chosen == nullptr) {
            return ENODEV;
        }
        local_ = LocalPort{
            .device = device,
            .port = chosen->number,
            .gid = representative_gid(*chosen),
            .pkey = chosen->pkeys.empty() ? std::uint16_t{0xFFFF} : chosen->pkeys.front()};
        Gid loopback = mapped_ipv4(0x7F00'0001);
        if (owner_.source.family() != AddressFamily::kInet) {
            loopback = Gid{};
            loopback.bytes.back() = 1;
        }
        owner_.source.set_gid(loopback);
    }
    dgid_ = local_->gid;
    return 0;
}

// Takes the port that has the GID, or else the first active port of its subnet.
int RdmaId::resolve_infiniband() {
    const SocketAddress& to = owner_.destination;
    if (!local_) {
        const bool is_own = acquire(to) == 0;
        for (const DeviceInfo& device : host_.environment().devices()) {
            for (const PortInfo& port : device.ports) {
                if (is_own || local_ || port.layer != LinkLayer::kInfiniband || !port.is_active ||
                    !pkey_index(port, to.pkey())) {
                    continue;
                }
                for (const fabric::GidEntry& entry : port.gids) {
                    if (entry.gid.subnet_prefix() == to.gid().subnet_prefix()) {
                        local_ = LocalPort{device.index, port.number, entry.gid, to.pkey()};
                        break;
                    }
                }
            }
        }
        if (!local_) {
            return ENODEV;
        }
        owner_.source.set_gid(local_->gid);
    }
    dgid_ = to.gid();
    return 0;
}

int RdmaId::resolve_ip(std::uint32_t timeout_ms) {
    const Environment& environment = host_.environment();
    const Gid remote = owner_.destination.gid();
    if (owner_.source.is_any()) {
        const std::optional<Gid> source = environment.source_for(remote);
        if (!source) {
            return ENETUNREACH;
        }
        owner_.source.set_gid(*source);
    }
    if (!local_) {
        if (const int error = acquire(owner_.source); error != 0) {
            move(RdmaCmTrigger::kAddressFailed);
            report(RdmaEventType::kAddrError, error == EADDRNOTAVAIL ? -ENODEV : -error);
            return 0;
        }
    }
    const std::optional<Gid> found = environment.find_remote(*local_, remote);
    if (!found) {
        address_timer_.arm_in(timeout_of(timeout_ms));
        return 0;
    }
    dgid_ = *found;
    return 0;
}

void RdmaId::address_timer_expired() {
    move(RdmaCmTrigger::kAddressFailed);
    report(RdmaEventType::kAddrError, -ETIMEDOUT);
}

int RdmaId::resolve_route(std::uint32_t timeout_ms) {
    if (!local_ || !accepts(RdmaCmTrigger::kResolveRoute)) {
        return EINVAL;
    }
    if (is_ethernet()) {
        return resolve_ethernet_route();
    }
    const AddressFamily family = owner_.source.family();
    PathQuery wanted{.local = *local_,
                     .dgid = dgid_,
                     .service_id = service_id(owner_.destination),
                     .timeout = timeout_of(timeout_ms)};
    if (family == AddressFamily::kInet) {
        wanted.qos_class = tos_.value_or(0);
    } else {
        wanted.traffic_class = owner_.source.traffic_class();
    }
    move(RdmaCmTrigger::kResolveRoute);
    query_ = host_.query_path(number(), wanted);
    return 0;
}

// Returns a label that spreads connections (cma_get_roce_udp_flow_label of Linux).
std::uint32_t RdmaId::ethernet_flow_label() const {
    constexpr std::uint32_t kLabelMask = 0xF'FFFF;
    return (std::uint32_t{owner_.source.port()} * 31 + owner_.destination.port()) & kLabelMask;
}

// On Ethernet nobody is asked: the GIDs are the addresses.
int RdmaId::resolve_ethernet_route() {
    const PortInfo& port = *port_info();
    if (port.mtu == 0) {
        return EINVAL;
    }
    const std::optional<std::uint8_t> index = gid_index(port, local_->gid);
    const bool is_udp = index && port.gids[*index].type == GidType::kRoceV2;
    paths_ = {{.dgid = dgid_,
               .sgid = local_->gid,
               .flow_label = is_udp ? ethernet_flow_label() : 0,
               .hop_limit = kHopLimit,
               .traffic_class = tos_.value_or(0),
               .reversible = true,
               .pkey = 0xFFFF,
               .mtu_selector = kSelectExactly,
               .mtu = port.mtu,
               .rate_selector = kSelectExactly,
               .rate = port.rate,
               .life_time_selector = kSelectExactly,
               .life_time = ack_timeout_.value_or(0) != 0
                                ? static_cast<std::uint8_t>((*ack_timeout_ - 1) & 0x3F)
                                : kEthernetLifeTime}};
    move(RdmaCmTrigger::kResolveRoute);
    move(RdmaCmTrigger::kPathFound);
    report(RdmaEventType::kRouteResolved);
    return 0;
}

int RdmaId::set_path(const PathRecord& path) {
    if (!local_ || !accepts(RdmaCmTrigger::kSetPath)) {
        return EINVAL;
    }
    paths_ = {path};
    move(RdmaCmTrigger::kSetPath);
    return 0;
}

void RdmaId::path_found(const PathRecord& path) {
    query_.reset();
    paths_ = {path};
    move(RdmaCmTrigger::kPathFound);
    report(RdmaEventType::kRouteResolved);
}

void RdmaId::path_failed(int error) {
    query_.reset();
    move(RdmaCmTrigger::kPathFailed);
    report(RdmaEventType::kRouteError, -error);
}

}  // namespace simverbs::rdma_cm
