// Binding, listening, options and the end of an id.
#include "simverbs/rdma_cm/rdma_id.hpp"

#include <algorithm>
#include <cerrno>

#include "fabric/core/assert.hpp"

#include "simverbs/rdma_cm/rdma_cm.hpp"

namespace simverbs::rdma_cm {

using fabric::EventClass;
using fabric::EventKey;
using fabric::LinkLayer;
using fabric::PortNumber;

RdmaId::RdmaId(RdmaCm& host, RdmaIdNumber number, PortSpace space, QpType qp_type,
               std::uint32_t starting_psn)
    : host_(host),
      owner_{.id = number.value()},
      space_(space),
      qp_type_(qp_type),
      starting_psn_(starting_psn),
      address_timer_(
          host.loop(),
          EventKey(EventClass::kTimer, host.node(), PortNumber(kRdmaCmKey), number.value()),
          host.timer_handler(), number.value()) {}

void RdmaId::move(RdmaCmTrigger trigger) {
    const std::optional<RdmaCmState> to = next_state(state_, trigger);
    SIMVERBS_ASSERT(to, "id {} in {} cannot {}", owner_.id, to_string(state_), to_string(trigger));
    state_ = *to;
}

void RdmaId::report(RdmaEventType type, int status) {
    host_.user().rdma_event(*this, {.type = type, .status = status});
}

std::uint64_t RdmaId::service_id(const SocketAddress& address) const {
    return address.family() == AddressFamily::kInfiniband ? address.service_id()
                                                          : make_service_id(space_, address.port());
}

const PortInfo* RdmaId::port_info() const {
    return local_ ? find_port(host_.environment(), *local_) : nullptr;
}

bool RdmaId::is_ethernet() const {
    const PortInfo* const port = port_info();
    return port != nullptr && port->layer == LinkLayer::kEthernet;
}

cm::HostCm* RdmaId::host_cm() const {
    const DeviceInfo* const device =
        local_ ? host_.environment().find_device(local_->device) : nullptr;
    return device == nullptr ? nullptr : device->cm;
}

cm::Connection* RdmaId::connection() {
    cm::HostCm* const manager = host_cm();
    return manager == nullptr || !connection_ ? nullptr : manager->find(*connection_);
}

int RdmaId::bind(const SocketAddress& address) {
    if (address.size() == 0) {
        return EAFNOSUPPORT;
    }
    if (!accepts(RdmaCmTrigger::kBind) || (address.is_link_local() && address.scope_id() == 0)) {
        return EINVAL;
    }
    owner_.source = address;
    if (!address.is_any()) {
        if (const int error = acquire(address); error != 0) {
            return error;
        }
    }
    // bindv6only is 0, as Linux has it by default.
    if (!chose_family_only_ && address.family() == AddressFamily::kInet) {
        owner_.family_only = true;
    }
    if (const int error = take_port(); error != 0) {
        local_.reset();
        return error;
    }
    if (owner_.destination.family() == AddressFamily::kNone) {
        owner_.destination = SocketAddress(address.family());
    }
    move(RdmaCmTrigger::kBind);
    return 0;
}

// Finds the port of a local address.
int RdmaId::acquire(const SocketAddress& address) {
    const Environment& environment = host_.environment();
    if (address.family() != AddressFamily::kInfiniband) {
        const std::optional<LocalPort> found = environment.find_local(address.gid());
        if (!found) {
            return EADDRNOTAVAIL;
        }
        const PortInfo* const port = find_port(environment, *found);
        if (port == nullptr) {
            return ENODEV;
        }
        if (space_ == PortSpace::kIpoib && port->layer == LinkLayer::kEthernet) {
            return EINVAL;
        }
        local_ = found;
        return 0;
    }
    for (const DeviceInfo& device : environment.devices()) {
        for (const PortInfo& port : device.ports) {
            if (port.layer == LinkLayer::kInfiniband && gid_index(port, address.gid())) {
                local_ = LocalPort{device.index, port.number, address.gid(), address.pkey()};
                return 0;
            }
        }
    }
    return ENODEV;
}

int RdmaId::take_port() {
    const std::optional<PortSpace> space =
        owner_.source.family() == AddressFamily::kInfiniband ? select_space() : space_;
    if (!space) {
        return EPROTONOSUPPORT;
    }
    if (const int error = host_.ports().bind(*space, owner_); error != 0) {
        return error;
    }
    bound_space_ = space;
    return 0;
}

// Returns the port space that the service id of an AF_IB address names, and completes that id.
std::optional<PortSpace> RdmaId::select_space() {
    SocketAddress& address = owner_.source;
    const std::uint64_t mask = address.service_mask() & kPortSpaceMask;
    const std::uint64_t wanted = address.service_id() & mask;
    for (const PortSpace space : {PortSpace::kIb, PortSpace::kTcp, PortSpace::kUdp}) {
        const std::uint64_t id = make_service_id(space, 0);
        if ((space_ == PortSpace::kIb || space_ == space) && wanted == (id & mask)) {
            address.set_service_id(id | address.port(), kPortSpaceMask | address.service_mask());
            return space;
        }
    }
    return std::nullopt;
}

int RdmaId::listen() {
    if (accepts(RdmaCmTrigger::kBind)) {
        if (const int error = bind(SocketAddress(AddressFamily::kInet)); error != 0) {
            return error;
        }
    }
    if (!accepts(RdmaCmTrigger::kStartListening)) {
        return EINVAL;
    }
    // An id that listens shares its port with nobody any more.
    if (owner_.reuse) {
        if (const int error = host_.ports().check_listen(*bound_space_, owner_); error != 0) {
            return error;
        }
        owner_.reuse = false;
    }
    if (local_) {
        if (const int error = listen_on(local_->device); error != 0) {
            return error;
        }
    } else if (const int error = listen_on_all(); error != 0) {
        return error;
    }
    owner_.is_listening = true;
    move(RdmaCmTrigger::kStartListening);
    return 0;
}

int RdmaId::listen_on_all() {
    for (const DeviceInfo& device : host_.environment().devices()) {
        if (const int error = listen_on(device.index); error != 0) {
            while (!listening_on_.empty()) {
                stop_listening_on(listening_on_.back());
            }
            return error;
        }
    }
    return 0;
}

int RdmaId::listen_on(DeviceIndex device) {
    const int error = host_.start_listening(device, service_id(owner_.source));
    if (error == 0) {
        listening_on_.push_back(device);
    }
    return error;
}

void RdmaId::stop_listening_on(DeviceIndex device) {
    if (std::erase(listening_on_, device) > 0) {
        host_.stop_listening(device, service_id(owner_.source));
    }
}

bool RdmaId::is_bound_to(DeviceIndex device, PortNumber port) const {
    return local_ ? local_->device == device && local_->port == port
                  : std::ranges::find(listening_on_, device) != listening_on_.end();
}

int RdmaId::set_reuseaddr(bool reuse) {
    if ((state_ == RdmaCmState::kListen || !reuse) && state_ != RdmaCmState::kIdle) {
        return EINVAL;
    }
    owner_.reuse = reuse;
    return 0;
}

int RdmaId::set_afonly(bool family_only) {
    if (state_ != RdmaCmState::kIdle && state_ != RdmaCmState::kAddrBound) {
        return EINVAL;
    }
    chose_family_only_ = true;
    owner_.family_only = family_only;
    return 0;
}

int RdmaId::set_ack_timeout(std::uint8_t timeout) {
    if (qp_type_ != QpType::kRc && qp_type_ != QpType::kXrcIni) {
        return EINVAL;
    }
    ack_timeout_ = timeout;
    return 0;
}

void RdmaId::device_removed() {
    move(RdmaCmTrigger::kDeviceRemoved);
    report(RdmaEventType::kDeviceRemoval);
}

void RdmaId::address_changed() {
    report(RdmaEventType::kAddrChange);
}

void RdmaId::destroy() {
    move(RdmaCmTrigger::kDestroy);
    address_timer_.cancel();
    if (query_) {
        host_.cancel_query(*query_);
    }
    for (const DeviceIndex device : listening_on_) {
        host_.stop_listening(device, service_id(owner_.source));
    }
    if (connection_) {
        host_.destroy_connection(local_->device, *connection_);
    }
    for (const Membership& membership : memberships_) {
        if (membership.id != MembershipId{}) {
            host_.leave(membership.id);
        }
    }
    if (bound_space_) {
        host_.ports().release(*bound_space_, owner_);
    }
}

}  // namespace simverbs::rdma_cm
