// An rdma_cm id: struct rdma_id_private of Linux. Its state moves only by the rows of
// simverbs/model/rdma_cm_transitions.hpp. Commands return 0 or an errno; events go to the RdmaUser
// of its RdmaCm, also from within a command whose answer is known at once.
// The queue pair is the user's: the id knows its number and what to modify it with.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <rdma/ib_user_verbs.h>

#include "fabric/core/timer.hpp"

#include "simverbs/cm/host_cm.hpp"
#include "simverbs/model/rdma_cm_transitions.hpp"
#include "simverbs/rdma_cm/environment.hpp"
#include "simverbs/rdma_cm/path_record.hpp"
#include "simverbs/rdma_cm/port_space.hpp"
#include "simverbs/rdma_cm/port_table.hpp"
#include "simverbs/rdma_cm/rdma_event.hpp"
#include "simverbs/rdma_cm/socket_address.hpp"

namespace simverbs::rdma_cm {

class RdmaCm;

// Unique at its RdmaCm for ever.
using RdmaIdNumber = fabric::StrongId<struct RdmaIdNumberTag, std::uint32_t>;

class RdmaId {
  public:
    static constexpr std::size_t kMaxMemberships = 1024;

    // `host` outlives the id.
    RdmaId(RdmaCm& host, RdmaIdNumber number, PortSpace space, QpType qp_type,
           std::uint32_t starting_psn);
    RdmaId(const RdmaId&) = delete;
    RdmaId& operator=(const RdmaId&) = delete;

    [[nodiscard]] RdmaIdNumber number() const { return RdmaIdNumber(owner_.id); }
    [[nodiscard]] RdmaCmState state() const { return state_; }
    [[nodiscard]] PortSpace space() const { return space_; }
    [[nodiscard]] QpType qp_type() const { return qp_type_; }
    [[nodiscard]] const SocketAddress& source() const { return owner_.source; }
    [[nodiscard]] const SocketAddress& destination() const { return owner_.destination; }
    // The port that the id is bound to; nothing until then, and of a listener for all devices.
    [[nodiscard]] const std::optional<LocalPort>& local() const { return local_; }
    [[nodiscard]] fabric::Gid dgid() const { return dgid_; }
    [[nodiscard]] std::span<const PathRecord> paths() const { return paths_; }
    [[nodiscard]] std::uint64_t service_id(const SocketAddress& address) const;

    // EAFNOSUPPORT, EADDRNOTAVAIL, ENODEV, EADDRINUSE, EPROTONOSUPPORT; EINVAL: bound already.
    int bind(const SocketAddress& address);
    // `source` without a family: any. ENETUNREACH, ENODEV and the errors of bind() at once, others
    // by ADDR_ERROR. A destination that nobody answers for takes `timeout_ms`.
    int resolve_addr(const SocketAddress& source, const SocketAddress& destination,
                     std::uint32_t timeout_ms);
    int resolve_route(std::uint32_t timeout_ms);
    // Takes a path that the user knows. No event.
    int set_path(const PathRecord& path);
    // EADDRINUSE and EADDRNOTAVAIL of an id that shares its port; ENOMEM.
    int listen();
    int connect(const ConnectionParameters& parameters, const cm::Ece& ece);
    // `parameters` is nullptr where a CONNECT_RESPONSE is accepted. Where accepting fails, the peer
    // is rejected.
    int accept(const ConnectionParameters* parameters, const cm::Ece& ece);
    int reject(const cm::PrivateData& private_data, RejectReason reason);
    int disconnect();
    // `event` is a value of enum ib_event_type: 4 (COMM_EST) or 5 (PATH_MIG), else EINVAL. EISCONN.
    int notify(std::uint32_t event);
    // Fills in the attributes for INIT, RTR and RTS, values of enum ib_qp_state (others are
    // EINVAL); of a datagram id always those for INIT. ENOENT: the port has lost the P_Key.
    int init_qp_attr(std::uint32_t qp_state, ib_uverbs_qp_attr& attributes);

    void set_service_type(std::uint8_t tos) { tos_ = tos; }
    int set_reuseaddr(bool reuse);
    int set_afonly(bool family_only);
    int set_ack_timeout(std::uint8_t timeout);

    // `token` names the membership in events. EINVAL, EOPNOTSUPP: IPv6 on RoCE v2; ENOMEM.
    int join(const SocketAddress& group, JoinState state, std::uint64_t token);
    void leave(std::uint64_t token);

    // From the RdmaCm.
    void address_timer_expired();
    void path_found(const PathRecord& path);
    void path_failed(int error);
    void joined(MembershipId membership, const GroupMember& member);
    void membership_failed(MembershipId membership, int error);
    void cm_event(const cm::CmEvent& event);
    // Makes this the id of a connection or of a service id resolution that has arrived.
    void start_as_request(const RdmaId& listener, const LocalPort& local, const cm::CmEvent& event);
    // The user knows of the request and may take its time.
    void request_reported();
    void device_removed();
    // Extends a listener for all devices, ENOMEM, or shortens it.
    int listen_on(DeviceIndex device);
    void stop_listening_on(DeviceIndex device);
    void address_changed();
    // Ends what is under way, tells the peer and gives back the port. Nothing may be called then.
    void destroy();
    // The id is bound to this port, or listens on all devices, this one included.
    [[nodiscard]] bool is_bound_to(DeviceIndex device, fabric::PortNumber port) const;
    [[nodiscard]] bool takes(const cm::CmEvent& request) const;

  private:
    struct Membership {
        std::uint64_t token;
        MembershipId id;  // 0 on Ethernet, where nobody is asked
    };

    [[nodiscard]] bool accepts(RdmaCmTrigger trigger) const {
        return next_state(state_, trigger).has_value();
    }
    void move(RdmaCmTrigger trigger);
    void report(RdmaEventType type, int status = 0);
    [[nodiscard]] const PortInfo* port_info() const;
    [[nodiscard]] bool is_ethernet() const;
    [[nodiscard]] cm::Connection* connection();
    [[nodiscard]] cm::HostCm* host_cm() const;

    // Binding (rdma_id.cpp).
    int bind_for(const SocketAddress& source, const SocketAddress& destination);
    int acquire(const SocketAddress& address);
    int take_port();
    int listen_on_all();
    [[nodiscard]] std::optional<PortSpace> select_space();

    // Resolution (rdma_id_resolution.cpp).
    int resolve_loopback();
    int resolve_infiniband();
    int resolve_ip(std::uint32_t timeout_ms);
    int resolve_ethernet_route();
    [[nodiscard]] std::uint32_t ethernet_flow_label() const;

    // Connection (rdma_id_connection.cpp, rdma_id_events.cpp).
    int send_req(const ConnectionParameters& parameters, const cm::Ece& ece);
    int send_sidr_req(const ConnectionParameters& parameters);
    int send_rep(const ConnectionParameters& parameters, const cm::Ece& ece);
    int send_sidr_rep(const ConnectionParameters& parameters, const cm::Ece& ece);
    [[nodiscard]] std::optional<cm::PrivateData> with_header(const cm::PrivateData& data) const;
    [[nodiscard]] std::optional<cm::Address> cm_address(const PathRecord& path) const;
    void connected_event(const cm::CmEvent& event, RdmaEvent& report);
    void sidr_reply(const cm::SidrRep& reply, RdmaEvent& report);

    // Datagrams (rdma_id_multicast.cpp).
    int set_default_qkey();
    int set_qkey(std::uint32_t qkey);
    int join_ethernet(const SocketAddress& group, std::uint64_t token);
    [[nodiscard]] fabric::Gid group_gid(const SocketAddress& group) const;
    void report_member(std::uint64_t token, const GroupMember& member);

    // Attributes (rdma_id_attributes.cpp).
    int datagram_attributes(ib_uverbs_qp_attr& attributes);
    int connection_attributes(QpState to, ib_uverbs_qp_attr& attributes);
    void peer_attributes(const cm::Connection& connection, ib_uverbs_qp_attr& attributes) const;

    RdmaCm& host_;
    PortOwner owner_;
    PortSpace space_;
    QpType qp_type_;
    std::uint32_t starting_psn_;
    RdmaCmState state_ = RdmaCmState::kIdle;
    std::optional<PortSpace> bound_space_;  // of the port in the port table
    std::optional<LocalPort> local_;
    fabric::Gid dgid_;
    std::vector<PathRecord> paths_;
    std::optional<cm::ConnectionId> connection_;
    std::optional<PathQueryId> query_;
    fabric::Timer address_timer_;
    std::vector<DeviceIndex> listening_on_;
    std::vector<Membership> memberships_;
    std::uint32_t qpn_ = 0;
    std::uint8_t srq_ = 0;
    std::uint32_t qkey_ = 0;  // 0: none yet
    std::optional<std::uint8_t> tos_;
    std::optional<std::uint8_t> ack_timeout_;
    bool chose_family_only_ = false;
};

}  // namespace simverbs::rdma_cm
