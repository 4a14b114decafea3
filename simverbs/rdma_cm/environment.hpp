// The services that rdma_cm needs of its host: devices and ports, IP addresses, path queries and
// multicast memberships. Answers to queries come back through RdmaCm, at once or later.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fabric/core/sim_time.hpp"
#include "fabric/core/strong_id.hpp"
#include "fabric/net/gid.hpp"
#include "fabric/net/lid.hpp"
#include "fabric/net/link_layer.hpp"

#include "simverbs/cm/host_cm.hpp"
#include "simverbs/rdma_cm/path_record.hpp"

namespace simverbs::rdma_cm {

// The place of a device among those of its host.
using DeviceIndex = fabric::StrongId<struct DeviceIndexTag, std::uint32_t>;
// A path query, a multicast membership. Never 0, never used twice.
using PathQueryId = fabric::StrongId<struct PathQueryIdTag, std::uint64_t>;
using MembershipId = fabric::StrongId<struct MembershipIdTag, std::uint64_t>;

struct PortInfo {
    fabric::PortNumber number;
    fabric::LinkLayer layer = fabric::LinkLayer::kInfiniband;
    bool is_active = false;
    std::vector<fabric::GidEntry> gids;
    std::vector<std::uint16_t> pkeys;
    std::uint8_t mtu = 0;                     // active, as of enum ibv_mtu
    std::uint8_t rate = 0;                    // active, as of enum ibv_rate
    std::optional<std::uint32_t> ipoib_qkey;  // of the broadcast group, if there is one
};

struct DeviceInfo {
    DeviceIndex index;
    std::uint32_t number = 0;  // by which programs know it: ibdev_index of the kernel
    fabric::Guid node_guid;
    cm::HostCm* cm = nullptr;  // never nullptr; its user is RdmaCm::cm_user(index)
    std::vector<PortInfo> ports;
};

// The port and GID that a local address stands for.
struct LocalPort {
    DeviceIndex device;
    fabric::PortNumber port;
    fabric::Gid gid;
    std::uint16_t pkey = 0xFFFF;  // of the interface with that address

    friend bool operator==(const LocalPort&, const LocalPort&) = default;
};

struct PathQuery {
    LocalPort local;
    fabric::Gid dgid;
    std::uint64_t service_id = 0;
    // Nothing: that component is not asked for. An id of IPv4 asks for a QoS class, others for a
    // traffic class.
    std::optional<std::uint16_t> qos_class;
    std::optional<std::uint8_t> traffic_class;
    fabric::SimDuration timeout{};
};

// The values of JoinState (IBA 15.2.5.17.1).
enum class JoinState : std::uint8_t { kFullMember = 1, kSendOnlyFullMember = 8 };

struct JoinRequest {
    LocalPort local;
    fabric::Gid mgid;  // zero: the subnet administration assigns one
    std::uint16_t pkey = 0;
    std::uint32_t qkey = 0;
    JoinState state = JoinState::kFullMember;
};

struct GroupMember {
    fabric::Gid mgid;
    fabric::Lid mlid;
    std::uint32_t qkey = 0;
    std::uint8_t sl = 0;
    std::uint32_t flow_label = 0;
    std::uint8_t hop_limit = 0;
    std::uint8_t traffic_class = 0;
    std::uint8_t rate = 0;  // as of enum ibv_rate
};

// IP addresses are passed as IPv6 addresses, IPv4 ones mapped.
class Environment {
  public:
    // In the order in which Linux has them: the one that came first, first.
    [[nodiscard]] virtual std::span<const DeviceInfo> devices() const = 0;
    // nullptr: the host does not have such a device any more.
    [[nodiscard]] virtual const DeviceInfo* find_device(DeviceIndex device) const = 0;
    // Returns the port with this IP address; nothing if no port of an RDMA device has it.
    [[nodiscard]] virtual std::optional<LocalPort> find_local(const fabric::Gid& ip) const = 0;
    // Returns the IP address of this host from which packets to `remote` leave; nothing: there is
    // no route.
    [[nodiscard]] virtual std::optional<fabric::Gid> source_for(
        const fabric::Gid& remote) const = 0;
    // Returns the GID of an IP address as seen from a port of this host, which may be its own;
    // nothing: nobody answers.
    [[nodiscard]] virtual std::optional<fabric::Gid> find_remote(
        const LocalPort& local, const fabric::Gid& remote) const = 0;

    // Asks the subnet administration for a path. RdmaCm::path_found() or path_failed() follows, not
    // before this call returns. Only of InfiniBand ports.
    virtual void query_path(PathQueryId query, const PathQuery& wanted) = 0;
    virtual void cancel_query(PathQueryId query) = 0;
    // Joins a multicast group. RdmaCm::joined() or membership_failed() follows, not before this
    // call returns. Only of InfiniBand ports.
    virtual void join(MembershipId membership, const JoinRequest& wanted) = 0;
    virtual void leave(MembershipId membership) = 0;

  protected:
    ~Environment() = default;
};

// Nothing: the host does not have such a port any more, or no such entry.
const PortInfo* find_port(const Environment& environment, const LocalPort& local);
// Returns the entry for RoCE v2 where the GID has several.
std::optional<std::uint8_t> gid_index(const PortInfo& port, const fabric::Gid& gid);
// Compares without the membership bit; prefers full membership (Linux ib_find_cached_pkey).
std::optional<std::uint16_t> pkey_index(const PortInfo& port, std::uint16_t pkey);

}  // namespace simverbs::rdma_cm
