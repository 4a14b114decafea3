#include "simverbs/rdma_cm/rdma_cm.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "fabric/core/assert.hpp"

#include "simverbs/rdma_cm/cma_header.hpp"
#include "simverbs/rdma_cm/connection_request.hpp"

namespace simverbs::rdma_cm {

using cm::CmEvent;
using cm::ConnectionId;
using cm::EventType;
using fabric::PortNumber;

RdmaCm::RdmaCm(fabric::EventLoop& loop, fabric::NodeId node, Environment& environment,
               RdmaUser& user, std::uint64_t seed)
    : loop_(loop),
      node_(node),
      environment_(environment),
      user_(user),
      starting_psns_(seed, std::to_string(node.value()), "rdma_cm starting PSN") {}

cm::CmUser& RdmaCm::cm_user(DeviceIndex device) {
    return device_users_.try_emplace(device, *this, device).first->second;
}

RdmaId* RdmaCm::create(PortSpace space, QpType qp_type) {
    if (ids_.size() >= kMaxIds) {
        return nullptr;
    }
    constexpr std::uint64_t kPsnMask = 0xFF'FFFF;
    const RdmaIdNumber number(++last_id_);
    const auto psn = static_cast<std::uint32_t>(starting_psns_.next() & kPsnMask);
    return &ids_.try_emplace(number, *this, number, space, qp_type, psn).first->second;
}

void RdmaCm::destroy(RdmaIdNumber id) {
    const auto found = ids_.find(id);
    if (found == ids_.end()) {
        return;
    }
    found->second.destroy();
    ids_.erase(found);
}

RdmaId* RdmaCm::find(RdmaIdNumber id) {
    const auto found = ids_.find(id);
    return found == ids_.end() ? nullptr : &found->second;
}

void RdmaCm::handle(const fabric::Event& event) {
    RdmaId* const id = find(RdmaIdNumber(static_cast<std::uint32_t>(event.argument)));
    SIMVERBS_ASSERT(id != nullptr, "a timer of id {} outlives it", event.argument);
    id->address_timer_expired();
}

std::optional<ConnectionId> RdmaCm::create_connection(DeviceIndex device, RdmaIdNumber id) {
    const DeviceInfo* const found = environment_.find_device(device);
    const std::optional<ConnectionId> created =
        found == nullptr ? std::nullopt : found->cm->create();
    if (created) {
        connections_.emplace(std::pair(device, *created), id);
    }
    return created;
}

void RdmaCm::destroy_connection(DeviceIndex device, ConnectionId connection) {
    connections_.erase({device, connection});
    if (const DeviceInfo* const found = environment_.find_device(device)) {
        found->cm->destroy(connection);
    }
}

int RdmaCm::start_listening(DeviceIndex device, std::uint64_t service_id) {
    const auto known = listeners_.find({device, service_id});
    if (known != listeners_.end()) {
        ++known->second.ids;
        return 0;
    }
    const DeviceInfo* const found = environment_.find_device(device);
    const std::optional<ConnectionId> created =
        found == nullptr ? std::nullopt : found->cm->create();
    if (!created) {
        return ENOMEM;
    }
    if (const int error = found->cm->listen(*created, service_id); error != 0) {
        found->cm->destroy(*created);
        return error;
    }
    listeners_.emplace(std::pair(device, service_id), Listener{*created, 1});
    return 0;
}

void RdmaCm::stop_listening(DeviceIndex device, std::uint64_t service_id) {
    const auto known = listeners_.find({device, service_id});
    if (known == listeners_.end() || --known->second.ids > 0) {
        return;
    }
    if (const DeviceInfo* const found = environment_.find_device(device)) {
        found->cm->destroy(known->second.connection);
    }
    listeners_.erase(known);
}

PathQueryId RdmaCm::query_path(RdmaIdNumber id, const PathQuery& wanted) {
    const PathQueryId query(++last_query_);
    queries_.emplace(query, id);
    environment_.query_path(query, wanted);
    return query;
}

void RdmaCm::cancel_query(PathQueryId query) {
    queries_.erase(query);
    environment_.cancel_query(query);
}

void RdmaCm::path_found(PathQueryId query, const PathRecord& path) {
    const auto found = queries_.find(query);
    if (found == queries_.end()) {
        return;
    }
    RdmaId& id = *find(found->second);
    queries_.erase(found);
    id.path_found(path);
}

void RdmaCm::path_failed(PathQueryId query, int error) {
    const auto found = queries_.find(query);
    if (found == queries_.end()) {
        return;
    }
    RdmaId& id = *find(found->second);
    queries_.erase(found);
    id.path_failed(error);
}

MembershipId RdmaCm::join(RdmaIdNumber id, const JoinRequest& wanted) {
    const MembershipId membership(++last_membership_);
    memberships_.emplace(membership, id);
    environment_.join(membership, wanted);
    return membership;
}

void RdmaCm::leave(MembershipId membership) {
    memberships_.erase(membership);
    environment_.leave(membership);
}

void RdmaCm::joined(MembershipId membership, const GroupMember& member) {
    const auto found = memberships_.find(membership);
    if (found != memberships_.end()) {
        find(found->second)->joined(membership, member);
    }
}

void RdmaCm::membership_failed(MembershipId membership, int error) {
    const auto found = memberships_.find(membership);
    if (found != memberships_.end()) {
        find(found->second)->membership_failed(membership, error);
    }
}

void RdmaCm::device_added(DeviceIndex device) {
    for (auto& [number, id] : ids_) {
        if (id.state() == RdmaCmState::kListen && !id.local()) {
            static_cast<void>(id.listen_on(device));  // as in Linux, nobody is told of an error
        }
    }
}

void RdmaCm::device_removed(DeviceIndex device) {
    std::vector<RdmaIdNumber> gone;
    for (const auto& [number, id] : ids_) {
        if (id.local() && id.local()->device == device) {
            gone.push_back(number);
        }
    }
    for (const RdmaIdNumber number : gone) {
        find(number)->device_removed();
        destroy(number);
    }
    for (auto& [number, id] : ids_) {
        id.stop_listening_on(device);
    }
}

void RdmaCm::address_changed(DeviceIndex device, PortNumber port) {
    for (auto& [number, id] : ids_) {
        if (!id.local() || id.local()->device != device || id.local()->port != port) {
            continue;
        }
        const PortInfo* const info = find_port(environment_, *id.local());
        if (info != nullptr && !gid_index(*info, id.local()->gid)) {
            id.address_changed();
        }
    }
}

void RdmaCm::cm_event(DeviceIndex device, const CmEvent& event) {
    if (event.type == EventType::kReqReceived || event.type == EventType::kSidrReqReceived) {
        request_arrived(device, event);
        return;
    }
    const auto found = connections_.find({device, event.connection});
    if (found != connections_.end()) {
        find(found->second)->cm_event(event);
    }
}

namespace {

// Linux matches only the type of queue pair that the id was made for.
bool has_type_of(const RdmaId& listener, const CmEvent& request) {
    return listener.qp_type() == QpType::kUnspecified ||
           listener.qp_type() == accepting_type(request);
}

// Drops a REQ that there is no room for. As in Linux, a SIDR_REQ is rejected even then.
void forget(cm::HostCm& manager, const CmEvent& request) {
    if (request.type == EventType::kReqReceived) {
        manager.forget(request.connection);
    } else {
        manager.destroy(request.connection);
    }
}

}  // namespace

// Returns the id that has the port and the address. It need not listen.
RdmaId* RdmaCm::find_listener(DeviceIndex device, const CmEvent& event) {
    const std::uint64_t service_id = service_id_of(event);
    for (const PortOwner* owner : ports_.owners(port_space_of(service_id), port_of(service_id))) {
        RdmaId* const id = find(RdmaIdNumber(owner->id));
        if (id->takes(event) && id->is_bound_to(device, event.from->port)) {
            return id;
        }
    }
    return nullptr;
}

// A REQ names the GID; a SIDR_REQ leaves it open.
LocalPort RdmaCm::arrival_port(DeviceIndex device, const CmEvent& event) const {
    LocalPort local{.device = device, .port = event.from->port, .pkey = pkey_of(event)};
    if (const cm::Req* const req = as_req(event)) {
        local.gid = req->primary.remote_gid;
        return local;
    }
    const PortInfo* const port = find_port(environment_, local);
    const CmaHeader header = read_cma_header(private_data_of(event));
    if (port != nullptr && gid_index(*port, header.destination.gid())) {
        local.gid = header.destination.gid();
    } else if (port != nullptr && !port->gids.empty()) {
        local.gid = port->gids.front().gid;
    }
    return local;
}

// As in Linux, a request that nobody takes is rejected, and a REQ that there is no room for is
// forgotten, so that the peer tries again.
void RdmaCm::request_arrived(DeviceIndex device, const CmEvent& event) {
    const DeviceInfo* const arrived_at = environment_.find_device(device);
    SIMVERBS_ASSERT(arrived_at != nullptr, "a request at device {}, which has gone",
                    device.value());
    cm::HostCm& manager = *arrived_at->cm;
    RdmaId* const listener = find_listener(device, event);
    if (listener == nullptr || !has_type_of(*listener, event) ||
        listener->state() != RdmaCmState::kListen) {
        manager.destroy(event.connection);
        return;
    }
    const bool is_ib = listener->source().family() == AddressFamily::kInfiniband;
    if (!is_ib && read_cma_header(private_data_of(event)).version != 0) {
        manager.destroy(event.connection);
        return;
    }
    RdmaId* const id = create(listener->space(), QpType::kUd);
    if (id == nullptr) {
        forget(manager, event);
        return;
    }
    connections_.emplace(std::pair(device, event.connection), id->number());
    id->start_as_request(*listener, arrival_port(device, event), event);
    const RdmaEvent reported = request_event(event, is_ib ? 0 : kCmaHeaderBytes);
    if (id->source().family() == AddressFamily::kNone ||
        !user_.connection_requested(*listener, *id, reported)) {
        connections_.erase({device, event.connection});
        forget(manager, event);
        destroy(id->number());
        return;
    }
    id->request_reported();
}

}  // namespace simverbs::rdma_cm
