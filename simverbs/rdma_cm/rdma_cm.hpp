// The rdma_cm module of a host's kernel: its ids, their ports and listeners, and the way from
// communication managers and queries to the id that an event belongs to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "fabric/core/event_loop.hpp"
#include "fabric/core/random.hpp"

#include "simverbs/cm/host_cm.hpp"
#include "simverbs/rdma_cm/environment.hpp"
#include "simverbs/rdma_cm/port_table.hpp"
#include "simverbs/rdma_cm/rdma_event.hpp"
#include "simverbs/rdma_cm/rdma_id.hpp"

namespace simverbs::rdma_cm {

// The port number in the keys of address resolution timers: beyond those of other timers of a node.
inline constexpr std::uint16_t kRdmaCmKey = 2060;

class RdmaUser {
  public:
    // Called from commands and while an event runs. Calls no command of an id before it returns.
    virtual void rdma_event(RdmaId& id, const RdmaEvent& event) = 0;
    // `connection` has come by way of `listener`. Returns false where there is no room for it: it
    // is then destroyed, and the peer hears nothing and tries again.
    virtual bool connection_requested(RdmaId& listener, RdmaId& connection,
                                      const RdmaEvent& event) = 0;

  protected:
    ~RdmaUser() = default;
};

class RdmaCm final : private fabric::EventHandler {
  public:
    static constexpr std::size_t kMaxIds = 65'536;

    // All of them outlive it. `seed` decides the starting PSNs.
    RdmaCm(fabric::EventLoop& loop, fabric::NodeId node, Environment& environment, RdmaUser& user,
           std::uint64_t seed);
    RdmaCm(const RdmaCm&) = delete;
    RdmaCm& operator=(const RdmaCm&) = delete;

    // The user that the communication manager of a device reports to. Stays for ever.
    cm::CmUser& cm_user(DeviceIndex device);

    // Returns nullptr, which is ENOMEM, if kMaxIds exist.
    RdmaId* create(PortSpace space, QpType qp_type);
    // No event of this id follows.
    void destroy(RdmaIdNumber id);
    [[nodiscard]] RdmaId* find(RdmaIdNumber id);
    [[nodiscard]] std::size_t size() const { return ids_.size(); }

    // From the environment. An answer to something that was cancelled is dropped. `error` is a
    // positive errno.
    void path_found(PathQueryId query, const PathRecord& path);
    void path_failed(PathQueryId query, int error);
    void joined(MembershipId membership, const GroupMember& member);
    // The join failed, or the membership ended later.
    void membership_failed(MembershipId membership, int error);
    // The device is in devices() already.
    void device_added(DeviceIndex device);
    // The device is still in devices(). Each of its ids reports DEVICE_REMOVAL and is destroyed.
    void device_removed(DeviceIndex device);
    // The GIDs of a port have changed. Ids that are bound to one that it has no more report
    // ADDR_CHANGE.
    void address_changed(DeviceIndex device, fabric::PortNumber port);

    // For ids.
    [[nodiscard]] Environment& environment() const { return environment_; }
    [[nodiscard]] PortTable& ports() { return ports_; }
    [[nodiscard]] RdmaUser& user() const { return user_; }
    [[nodiscard]] fabric::EventLoop& loop() const { return loop_; }
    [[nodiscard]] fabric::NodeId node() const { return node_; }
    fabric::EventHandler& timer_handler() { return *this; }
    // Nothing, which is ENOMEM: the communication manager has no room.
    std::optional<cm::ConnectionId> create_connection(DeviceIndex device, RdmaIdNumber id);
    void destroy_connection(DeviceIndex device, cm::ConnectionId connection);
    // Ids that listen for one service id of a device share a listener. ENOMEM, EBUSY.
    int start_listening(DeviceIndex device, std::uint64_t service_id);
    void stop_listening(DeviceIndex device, std::uint64_t service_id);
    PathQueryId query_path(RdmaIdNumber id, const PathQuery& wanted);
    void cancel_query(PathQueryId query);
    MembershipId join(RdmaIdNumber id, const JoinRequest& wanted);
    void leave(MembershipId membership);

  private:
    // The user of one communication manager, whose events do not name their device.
    class DeviceUser final : public cm::CmUser {
      public:
        DeviceUser(RdmaCm& host, DeviceIndex device) : host_(host), device_(device) {}
        void cm_event(const cm::CmEvent& event) override { host_.cm_event(device_, event); }

      private:
        RdmaCm& host_;
        DeviceIndex device_;
    };
    struct Listener {
        cm::ConnectionId connection;
        std::uint32_t ids;
    };

    void handle(const fabric::Event& event) override;
    void cm_event(DeviceIndex device, const cm::CmEvent& event);
    void request_arrived(DeviceIndex device, const cm::CmEvent& event);
    [[nodiscard]] RdmaId* find_listener(DeviceIndex device, const cm::CmEvent& event);
    [[nodiscard]] LocalPort arrival_port(DeviceIndex device, const cm::CmEvent& event) const;

    fabric::EventLoop& loop_;
    fabric::NodeId node_;
    Environment& environment_;
    RdmaUser& user_;
    fabric::RandomStream starting_psns_;
    std::uint32_t last_id_ = 0;
    std::uint64_t last_query_ = 0;
    std::uint64_t last_membership_ = 0;
    PortTable ports_;
    std::map<DeviceIndex, DeviceUser> device_users_;
    std::map<RdmaIdNumber, RdmaId> ids_;
    std::map<std::pair<DeviceIndex, cm::ConnectionId>, RdmaIdNumber> connections_;
    std::map<std::pair<DeviceIndex, std::uint64_t>, Listener> listeners_;
    std::map<PathQueryId, RdmaIdNumber> queries_;
    std::map<MembershipId, RdmaIdNumber> memberships_;
};

}  // namespace simverbs::rdma_cm
