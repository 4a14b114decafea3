#include "simverbs/host_rdma_cm/host_rdma_cm.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <tuple>

#include "fabric/core/assert.hpp"
#include "fabric/core/hash.hpp"
#include "fabric/core/rate_code.hpp"

#include "simverbs/model/stated_speed.hpp"

namespace simverbs::rdma_cm {

using fabric::Gid;
using fabric::LinkLayer;
using fabric::NodeId;
using fabric::PortNumber;
namespace mad = fabric::mad;
namespace member = fabric::mad::mc_member_record;

namespace {

// The Q_Key of the broadcast group that OpenSM makes for IPoIB.
constexpr std::uint32_t kIpoibQkey = 0x0B1B;
constexpr std::uint16_t kFullMember = 0x8000;
// As ib_core asks for memberships.
constexpr fabric::SimDuration kJoinTimeout = std::chrono::milliseconds(3000);

// The kind of a query is in the lowest bits of its token.
enum class Query : std::uint8_t { kPath, kJoin, kLeave };
constexpr std::uint64_t kKinds = 4;

std::uint64_t token_of(Query kind, std::uint64_t number) {
    return number * kKinds + static_cast<std::uint64_t>(kind);
}

void update(const fabric::Port& port, PortInfo& info) {
    const fabric::PortAttributes& own = port.attributes();
    const bool is_ethernet = own.link_layer == LinkLayer::kEthernet;
    info.number = port.number();
    info.layer = own.link_layer;
    info.is_active = port.state() == fabric::PortState::kActive;
    info.gids = own.gids;
    info.pkeys = own.pkeys;
    info.mtu = static_cast<std::uint8_t>(own.active_mtu);
    info.rate =
        fabric::rate_code_of(fabric::nominal_rate(own.width, stated_speed(own.speed, is_ethernet)));
    info.ipoib_qkey = is_ethernet ? std::nullopt : std::optional(kIpoibQkey);
}

std::vector<NodeId> nodes_of(const Simulation& simulation, const std::vector<NumberedHca>& hcas) {
    std::vector<NodeId> nodes;
    nodes.reserve(hcas.size());
    for (const NumberedHca& hca : hcas) {
        nodes.push_back(simulation.hca(hca.rank).node());
    }
    return nodes;
}

GroupMember read_member(std::span<const std::uint8_t> record) {
    const auto get = [record](mad::Field field) { return mad::get(record, field); };
    return {.mgid = mad::get_gid(record, member::kMgid),
            .mlid = fabric::Lid(static_cast<std::uint16_t>(get(member::kMlid))),
            .qkey = static_cast<std::uint32_t>(get(member::kQkey)),
            .sl = static_cast<std::uint8_t>(get(member::kSl)),
            .flow_label = static_cast<std::uint32_t>(get(member::kFlowLabel)),
            .hop_limit = static_cast<std::uint8_t>(get(member::kHopLimit)),
            .traffic_class = static_cast<std::uint8_t>(get(member::kTrafficClass)),
            .rate = static_cast<std::uint8_t>(get(member::kRate))};
}

}  // namespace

HostRdmaCm::Device::Device(Simulation& simulation, const NumberedHca& of, HostRdmaCm& host,
                           DeviceIndex index)
    : hca(simulation.hca(of.rank)),
      number(of.number),
      cm_ports(simulation.managed_network(), hca.node()),
      cm(simulation.loop(),
         {.node = hca.node(),
          .ca_guid = hca.guid(),
          .ack_delay = hca.personality().limits.local_ca_ack_delay,
          .comm_id_operand = static_cast<std::uint32_t>(
              fabric::mix_words(simulation.seed(), fabric::hash_name(hca.name()))),
          .transaction_id_high = cm_ports.transaction_id_high()},
         cm_ports, host.ucma_.rdma_cm().cm_user(index)),
      host_(host),
      index_(index) {
    hca.set_client(this);
    is_present = !hca.is_dead();
    cm_ports.set_manager(is_present ? &cm : nullptr);
    SaUser& sa_user = host;
    for (std::uint16_t port_number = 1; port_number <= hca.port_count(); ++port_number) {
        fabric::ManagementPort* const port =
            simulation.managed_network().find_port(hca.node(), PortNumber{port_number});
        if (port != nullptr &&
            hca.port(port_number).attributes().link_layer == LinkLayer::kInfiniband) {
            sa_clients.try_emplace(PortNumber{port_number}, *port, simulation.loop(), sa_user);
        }
    }
}

HostRdmaCm::Device::~Device() {
    hca.set_client(nullptr);
}

// Drops what the ids of the device send when it goes: nothing leaves it any more.
void HostRdmaCm::Device::device_gone() {
    cm_ports.set_manager(nullptr);
    host_.ucma_.rdma_cm().device_removed(index_);
    is_present = false;
    host_.list_devices();
}

void HostRdmaCm::Device::device_back() {
    cm_ports.set_manager(&cm);
    is_present = true;
    host_.list_devices();
    host_.ucma_.rdma_cm().device_added(index_);
}

void HostRdmaCm::Device::port_event(const fabric::Port& port, AsyncEvent event) {
    switch (event) {
        case AsyncEvent::kPortErr:
        case AsyncEvent::kLidChange:
            host_.end_memberships(index_, port.number());
            return;
        case AsyncEvent::kGidChange:
            host_.ucma_.rdma_cm().address_changed(index_, port.number());
            return;
        default:
            return;
    }
}

HostRdmaCm::HostRdmaCm(Simulation& simulation, const std::vector<NumberedHca>& hcas)
    : addresses_(simulation.network()),
      nodes_(nodes_of(simulation, hcas)),
      ucma_(simulation.loop(), nodes_.front(), *this, simulation.seed()) {
    for (const NumberedHca& each : hcas) {
        const DeviceIndex index(static_cast<std::uint32_t>(devices_.size()));
        devices_.push_back(std::make_unique<Device>(simulation, each, *this, index));
    }
    list_devices();
}

HostRdmaCm::~HostRdmaCm() = default;

void HostRdmaCm::list_devices() {
    infos_.clear();
    present_nodes_.clear();
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        Device& device = *devices_[i];
        if (device.is_present) {
            present_nodes_.push_back(nodes_[i]);
            infos_.push_back({.index = DeviceIndex(static_cast<std::uint32_t>(i)),
                              .number = device.number,
                              .node_guid = device.hca.guid(),
                              .cm = &device.cm,
                              .ports = std::vector<PortInfo>(device.hca.port_count())});
        }
    }
}

std::span<const DeviceInfo> HostRdmaCm::devices() const {
    for (DeviceInfo& info : infos_) {
        refresh(info);
    }
    return infos_;
}

const DeviceInfo* HostRdmaCm::find_device(DeviceIndex device) const {
    const auto found = std::ranges::lower_bound(infos_, device, {}, &DeviceInfo::index);
    if (found == infos_.end() || found->index != device) {
        return nullptr;
    }
    refresh(*found);
    return &*found;
}

void HostRdmaCm::refresh(DeviceInfo& info) const {
    const Hca& hca = devices_[info.index.value()]->hca;
    for (std::uint32_t number = 1; number <= info.ports.size(); ++number) {
        update(hca.port(number), info.ports[number - 1]);
    }
}

const fabric::Port& HostRdmaCm::port_of(const LocalPort& local) const {
    return devices_.at(local.device.value())->hca.port(local.port.value());
}

std::optional<LocalPort> HostRdmaCm::find_local(const Gid& ip) const {
    const std::optional<IpOwner> owner = addresses_.find_own(present_nodes_, ip);
    if (!owner) {
        return std::nullopt;
    }
    const auto node = std::ranges::find(nodes_, owner->port->node().id());
    const fabric::PortAttributes& own = owner->port->attributes();
    const bool is_ethernet = own.link_layer == LinkLayer::kEthernet;
    return LocalPort{.device = DeviceIndex(static_cast<std::uint32_t>(node - nodes_.begin())),
                     .port = owner->port->number(),
                     .gid = owner->gid,
                     .pkey = is_ethernet
                                 ? std::uint16_t{0xFFFF}
                                 : static_cast<std::uint16_t>(own.pkeys.front() | kFullMember)};
}

std::optional<Gid> HostRdmaCm::source_for(const Gid& remote) const {
    return addresses_.source_for(present_nodes_, remote);
}

std::optional<Gid> HostRdmaCm::find_remote(const LocalPort& local, const Gid& remote) const {
    return addresses_.resolve(port_of(local), local.gid, remote);
}

SaClient& HostRdmaCm::sa_client(const LocalPort& local) {
    return devices_.at(local.device.value())->sa_clients.at(local.port);
}

// As cma_query_ib_route asks.
void HostRdmaCm::query_path(PathQueryId query, const PathQuery& wanted) {
    constexpr std::uint64_t kAlways = 1U << 0 | 1U << 2 | 1U << 3 | 1U << 11 | 1U << 12 | 1U << 13;
    constexpr std::uint64_t kTrafficClass = 1U << 10;
    constexpr std::uint64_t kQosClass = 1U << 14;
    const PathRecord record{.service_id = wanted.service_id,
                            .dgid = wanted.dgid,
                            .sgid = wanted.local.gid,
                            .traffic_class = wanted.traffic_class.value_or(std::uint8_t{0}),
                            .reversible = true,
                            .numb_path = 1,
                            .pkey = wanted.local.pkey,
                            .qos_class = wanted.qos_class.value_or(std::uint16_t{0})};
    const auto bytes = pack(record);
    sa_client(wanted.local)
        .ask(token_of(Query::kPath, query.value()),
             {.attribute = mad::SaAttribute::kPath,
              .method = mad::Method::kGet,
              .mask = kAlways | (wanted.traffic_class ? kTrafficClass : 0) |
                      (wanted.qos_class ? kQosClass : 0),
              .record = bytes,
              .timeout = wanted.timeout});
}

void HostRdmaCm::cancel_query(PathQueryId query) {
    for (const auto& device : devices_) {
        for (auto& [port, client] : device->sa_clients) {
            client.cancel(token_of(Query::kPath, query.value()));
        }
    }
}

// As cma_join_ib_multicast asks.
void HostRdmaCm::join(MembershipId membership, const JoinRequest& wanted) {
    std::array<std::uint8_t, member::kBytes> record{};
    mad::set_gid(record, member::kMgid, wanted.mgid);
    mad::set_gid(record, member::kPortGid, wanted.local.gid);
    mad::set(record, member::kPkey, wanted.pkey);
    mad::set(record, member::kQkey, wanted.qkey);
    mad::set(record, member::kJoinState, static_cast<std::uint64_t>(wanted.state));
    memberships_.emplace(membership, Membership{wanted.local, wanted.mgid, wanted.state});
    sa_client(wanted.local)
        .ask(token_of(Query::kJoin, membership.value()), {.attribute = mad::SaAttribute::kMcMember,
                                                          .method = mad::Method::kSet,
                                                          .mask = member::kCreate,
                                                          .record = record,
                                                          .timeout = kJoinTimeout});
}

// A membership whose answer has not come is left when it comes. One that has ended, or of a device
// that has gone, is none any more.
void HostRdmaCm::leave(MembershipId membership) {
    const auto found = memberships_.find(membership);
    if (found == memberships_.end()) {
        return;
    }
    const Membership left = found->second;
    memberships_.erase(found);
    if (left.joined == Joined::kAsked) {
        left_unanswered_.emplace(membership.value(), left);
    } else if (left.joined == Joined::kMember && devices_[left.local.device.value()]->is_present) {
        leave_group(left);
    }
}

// The subnet manager has taken the port out of its groups, or will (Linux mcast_event_handler).
void HostRdmaCm::end_memberships(DeviceIndex device, PortNumber port) {
    std::vector<MembershipId> ended;
    for (auto& [id, membership] : memberships_) {
        if (membership.joined == Joined::kMember && membership.local.device == device &&
            membership.local.port == port) {
            membership.joined = Joined::kEnded;
            ended.push_back(id);
        }
    }
    for (const MembershipId id : ended) {
        ucma_.rdma_cm().membership_failed(id, ENETRESET);
    }
}

// The port stays a member as long as another id of this host wants it.
void HostRdmaCm::leave_group(const Membership& left) {
    const auto same = [&left](const auto& entry) {
        const Membership& other = entry.second;
        return std::tie(other.local.device, other.local.port, other.mgid, other.state) ==
                   std::tie(left.local.device, left.local.port, left.mgid, left.state) &&
               other.joined != Joined::kEnded;
    };
    if (std::ranges::any_of(memberships_, same)) {
        return;
    }
    std::array<std::uint8_t, member::kBytes> record{};
    mad::set_gid(record, member::kMgid, left.mgid);
    mad::set_gid(record, member::kPortGid, left.local.gid);
    mad::set(record, member::kJoinState, static_cast<std::uint64_t>(left.state));
    sa_client(left.local)
        .ask(token_of(Query::kLeave, ++last_delete_), {.attribute = mad::SaAttribute::kMcMember,
                                                       .method = mad::Method::kDelete,
                                                       .mask = member::kJoin,
                                                       .record = record,
                                                       .timeout = kJoinTimeout});
}

void HostRdmaCm::answered(std::uint64_t token, int error, std::span<const std::uint8_t> record) {
    const std::uint64_t number = token / kKinds;
    switch (static_cast<Query>(token % kKinds)) {
        case Query::kPath:
            if (error == 0) {
                ucma_.rdma_cm().path_found(PathQueryId(number), unpack_path_record(record));
            } else {
                ucma_.rdma_cm().path_failed(PathQueryId(number), error);
            }
            return;
        case Query::kJoin:
            join_answered(MembershipId(number), error, record);
            return;
        case Query::kLeave:
            return;
    }
}

void HostRdmaCm::join_answered(MembershipId id, int error, std::span<const std::uint8_t> record) {
    if (auto left = left_unanswered_.extract(id.value())) {
        if (error == 0 && devices_[left.mapped().local.device.value()]->is_present) {
            left.mapped().mgid = mad::get_gid(record, member::kMgid);
            leave_group(left.mapped());
        }
        return;
    }
    const auto found = memberships_.find(id);
    SIMVERBS_ASSERT(found != memberships_.end(), "an answer for membership {}, which is not there",
                    id.value());
    if (error != 0) {
        memberships_.erase(found);
        ucma_.rdma_cm().membership_failed(id, error);
        return;
    }
    const GroupMember joined = read_member(record);
    found->second.mgid = joined.mgid;
    found->second.joined = Joined::kMember;
    ucma_.rdma_cm().joined(id, joined);
}

RdmaCmHosts::RdmaCmHosts(Simulation& simulation) {
    std::map<std::string_view, std::vector<NumberedHca>> by_host;
    for (std::size_t i = 0; i < simulation.hca_count(); ++i) {
        std::vector<NumberedHca>& hcas = by_host[simulation.hca(i).host()];
        hcas.push_back({i, static_cast<std::uint32_t>(hcas.size())});
    }
    for (const auto& [host, hcas] : by_host) {
        hosts_.try_emplace(std::string(host), simulation, hcas);
    }
}

HostRdmaCm& RdmaCmHosts::host(std::string_view name) {
    const auto found = hosts_.find(name);
    SIMVERBS_ASSERT(found != hosts_.end(), "there is no host {}", name);
    return found->second;
}

}  // namespace simverbs::rdma_cm
