// The communication manager of a host's HCA, as ib_cm in Linux: keeps listeners, connections and
// service ID resolutions, and hands each datagram to the one that it belongs to.
// Refuses peer-to-peer connections (IBA 12.9.6), redirection and reliable datagrams.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "fabric/core/event_loop.hpp"
#include "fabric/core/timer.hpp"

#include "simverbs/cm/connection.hpp"
#include "simverbs/cm/messages.hpp"
#include "simverbs/cm/parameters.hpp"
#include "simverbs/cm/remote_table.hpp"

namespace simverbs::cm {

// The port number in the keys of the manager's timers: beyond those of other timers of a node.
inline constexpr std::uint16_t kCmKey = 2051;

// Takes datagrams to queue pair 1 of the other side.
class CmCarrier {
  public:
    // Never hands a datagram to a manager before it returns.
    virtual void send(const Address& to, const Datagram& datagram) = 0;

  protected:
    ~CmCarrier() = default;
};

class CmUser {
  public:
    // Called after everything else that a datagram or a timer causes. Every command is allowed
    // here, and so is destroying the connection.
    virtual void cm_event(const CmEvent& event) = 0;

  protected:
    ~CmUser() = default;
};

// Service ids that begin with these eight bits are assigned by the manager (IBA A3).
inline constexpr std::uint64_t kAssignServiceId = 0x0200'0000'0000'0000;
inline constexpr std::uint64_t kServiceIdAgencyMask = 0xFF00'0000'0000'0000;
inline constexpr std::uint64_t kExactServiceId = ~std::uint64_t{0};

class HostCm final : private ConnectionEffects, private fabric::EventHandler {
  public:
    // All of them outlive the manager.
    HostCm(fabric::EventLoop& loop, const CmIdentity& identity, CmCarrier& carrier, CmUser& user);
    HostCm(const HostCm&) = delete;
    HostCm& operator=(const HostCm&) = delete;

    [[nodiscard]] std::size_t size() const { return entries_.size(); }

    // Nothing, which is ENOMEM: max_connections exist.
    std::optional<ConnectionId> create();
    // Tells the peer (Connection::leave). No event of this connection follows.
    void destroy(ConnectionId connection);
    // Destroys a connection whose peer hears nothing, and so repeats its message.
    void forget(ConnectionId connection);
    // Returns nullptr if there is no such connection. Commands are called on the connection.
    [[nodiscard]] Connection* find(ConnectionId connection);

    // Takes the REQs and SIDR_REQs whose service id equals `service_id` in the bits of `mask`.
    // kAssignServiceId with kExactServiceId assigns a free id: see Connection::service_id().
    // EINVAL: there is no such connection, it is not idle, or only the manager assigns such an id.
    // EBUSY: another listener takes some of these ids.
    int listen(ConnectionId connection, std::uint64_t service_id,
               std::uint64_t mask = kExactServiceId);

    // Takes a datagram that came to queue pair 1. One of another class is dropped.
    void datagram_arrived(const Datagram& datagram, const Address& from);

  private:
    struct Entry {
        Entry(ConnectionId id, HostCm& cm);

        Connection connection;
        fabric::Timer timer;
    };
    struct Listener {
        std::uint64_t service_id;
        std::uint64_t mask;
        ConnectionId connection;
    };
    // A SIDR_REQ that is not answered yet: request id, LID, GID.
    using SidrKey = std::tuple<std::uint32_t, fabric::Lid, fabric::Gid>;

    // ConnectionEffects.
    void send(const Address& to, const Datagram& datagram) override;
    void set_timer(ConnectionId connection, fabric::SimDuration delay) override;
    void stop_timer(ConnectionId connection) override;
    void release_remote_qp(const Connection& connection) override;
    void release_remote(const Connection& connection) override;

    void handle(const fabric::Event& event) override;

    void take(const Req& request, const Address& from);
    void take(const Mra& message, const Address& from);
    void take(const Rej& message, const Address& from);
    void take(const Rep& message, const Address& from);
    void take(const Rtu& message, const Address& from);
    void take(const Dreq& message, const Address& from);
    void take(const Drep& message, const Address& from);
    void take(const SidrReq& message, const Address& from);
    void take(const SidrRep& message, const Address& from);
    void take(const Lap& message, const Address& from);
    void take(const Apr& message, const Address& from);
    template <class Any>
    void hand_over(Connection* connection, const Any& message, const Address& from);

    [[nodiscard]] Connection* find_by_comm_id(std::uint32_t local, std::uint32_t remote);
    [[nodiscard]] std::optional<ConnectionId> find_listener(std::uint64_t service_id) const;
    // Returns false if the remote queue pair has no connection. Otherwise rejects the message as
    // stale and disconnects that connection (IBA 12.9.8.3.1).
    template <class Any>
    bool refuse_stale(const Any& message, fabric::Guid ca, std::uint32_t qpn, const Address& from);
    template <class Any>
    void refuse(const Any& message, RejectReason reason, const Address& from);

    fabric::EventLoop& loop_;
    CmIdentity identity_;
    CmCarrier& carrier_;
    CmUser& user_;
    std::uint32_t last_id_ = 0;
    std::uint64_t next_assigned_ = kAssignServiceId;
    std::map<ConnectionId, Entry> entries_;
    std::vector<Listener> listeners_;
    RemoteTable remotes_;
    std::map<SidrKey, ConnectionId> resolutions_;
};

}  // namespace simverbs::cm
