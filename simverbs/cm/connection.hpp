// One connection or one service ID resolution: its state, which moves only by the rows of
// simverbs/model/cm_transitions.hpp, the message that it repeats until an answer comes, and the
// attributes that both sides have agreed on. It has no clock; effects leave through
// ConnectionEffects. It does not check addresses, LIDs or GIDs.
#pragma once

#include <cstdint>
#include <optional>

#include "fabric/core/sim_time.hpp"
#include "fabric/core/strong_id.hpp"

#include "simverbs/cm/messages.hpp"
#include "simverbs/cm/parameters.hpp"
#include "simverbs/model/cm_transitions.hpp"
#include "simverbs/model/qp_transitions.hpp"

namespace simverbs::cm {

class Connection;

class ConnectionEffects {
  public:
    // Never calls the connection back before it returns.
    virtual void send(const Address& to, const Datagram& datagram) = 0;
    // Arms the one timer of the connection, instead of any earlier arrangement.
    virtual void set_timer(ConnectionId connection, fabric::SimDuration delay) = 0;
    virtual void stop_timer(ConnectionId connection) = 0;
    // The peer may use its queue pair for another connection; then its communication id, too.
    virtual void release_remote_qp(const Connection& connection) = 0;
    virtual void release_remote(const Connection& connection) = 0;

  protected:
    ~ConnectionEffects() = default;
};

// The host that a communication manager acts for.
struct CmIdentity {
    fabric::NodeId node;
    fabric::Guid ca_guid;
    std::uint8_t ack_delay = 0;              // LocalCAAckDelay, 4.096 us x 2^n
    std::uint32_t comm_id_operand = 0;       // communication ids are numbers XOR this
    std::uint32_t transaction_id_high = 0;   // of the agent that sends
    std::uint32_t max_connections = 65'536;  // listeners and resolutions included
};

// The other side of a connection. Zero where it is not known yet.
struct Remote {
    fabric::Guid ca_guid;
    std::uint32_t comm_id = 0;  // or the request id of a service ID resolution
    std::uint32_t qpn = 0;
};

// Attributes for the queue pair of a connection, seen from this side (Linux ib_cm_init_qp_attr).
struct QpParameters {
    Service service = Service::kRc;
    std::uint32_t qpn = 0;
    std::uint32_t send_psn = 0;     // SQ_PSN
    std::uint32_t receive_psn = 0;  // RQ_PSN
    std::uint16_t pkey = 0;
    std::uint8_t path_mtu = 0;
    std::uint8_t responder_resources = 0;  // MAX_DEST_RD_ATOMIC
    std::uint8_t initiator_depth = 0;      // MAX_QP_RD_ATOMIC
    std::uint8_t retry_count = 0;
    std::uint8_t rnr_retry_count = 0;
    std::uint8_t ack_timeout = 0;  // 4.096 us x 2^n, also how long timewait lasts
    Path primary;
    std::optional<Path> alternate;
    std::uint8_t alternate_ack_timeout = 0;
};

class Connection {
  public:
    // `identity` and `effects` outlive the connection.
    Connection(ConnectionId id, const CmIdentity& identity, ConnectionEffects& effects)
        : id_(id), identity_(identity), effects_(effects) {}
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    [[nodiscard]] ConnectionId id() const { return id_; }
    [[nodiscard]] std::uint32_t local_comm_id() const {
        return id_.value() ^ identity_.comm_id_operand;
    }
    [[nodiscard]] CmState state() const { return state_; }
    [[nodiscard]] LapState lap_state() const { return lap_state_; }
    [[nodiscard]] const Remote& remote() const { return remote_; }
    [[nodiscard]] std::uint64_t service_id() const { return service_id_; }
    [[nodiscard]] const Address& address() const { return address_; }
    [[nodiscard]] const QpParameters& qp_parameters() const { return qp_; }
    // Returns the attributes that a modify to INIT, RTR or RTS takes in this state; the values are
    // in qp_parameters(). Nothing, which is EINVAL: another state of the queue pair, or the
    // connection does not know the values yet.
    [[nodiscard]] std::optional<QpAttrs> qp_attributes(QpState to) const;
    [[nodiscard]] bool accepts(CmTrigger trigger) const {
        return next_state(state_, trigger).has_value();
    }

    // Commands return 0, or EINVAL if the state has no row for them or if private data or
    // information are longer than the message allows.
    int send_req(const ReqParameters& parameters);
    int send_rep(const RepParameters& parameters);
    int send_rtu(const PrivateData& private_data);
    int send_mra(std::uint8_t service_timeout, const PrivateData& private_data, MraMoment moment);
    int send_rej(RejectReason reason, const PrivateData& info, const PrivateData& private_data);
    int send_dreq(const PrivateData& private_data);
    int send_drep(const PrivateData& private_data);
    int send_lap(const LapParameters& parameters);
    int send_apr(AprStatus status, const PrivateData& info, const PrivateData& private_data);
    int send_sidr_req(const SidrReqParameters& parameters);
    int send_sidr_rep(const SidrRepParameters& parameters);
    // Tells that the queue pair has received a message before the RTU came. EISCONN if the
    // connection is established.
    int establish();
    // Tells that the queue pair has migrated to the alternate path. Messages go to `address` then.
    int migrate(const Address& address);
    // Sends the REJ, DREQ, DREP or SIDR_REP by which the peer learns that this connection goes.
    void leave();

    // From the manager.
    void start_listening(std::uint64_t service_id);
    void request_arrived(const Req& request, Service service, const Address& from);
    void request_arrived(const SidrReq& request, const Address& from);
    void request_repeated(const Address& from);

    // Take a message of the peer; return the event to report, if there is one.
    std::optional<EventType> arrived(const Mra& message, const Address& from);
    std::optional<EventType> arrived(const Rej& message, const Address& from);
    std::optional<EventType> arrived(const Rep& message, const Address& from);
    std::optional<EventType> arrived(const Rtu& message, const Address& from);
    std::optional<EventType> arrived(const Dreq& message, const Address& from);
    std::optional<EventType> arrived(const Drep& message, const Address& from);
    std::optional<EventType> arrived(const SidrRep& message, const Address& from);
    std::optional<EventType> arrived(const Lap& message, const Address& from);
    std::optional<EventType> arrived(const Apr& message, const Address& from);
    std::optional<EventType> timer_expired();

    // Returns the queue pair that a REP names: that of an XRC target is in a field of its own.
    [[nodiscard]] std::uint32_t qpn_of(const Rep& reply) const {
        return qp_.service == Service::kXrcIni ? reply.local_eecn : reply.local_qpn;
    }

  private:
    // A message that is repeated until it is answered.
    struct Pending {
        Datagram datagram;
        fabric::SimDuration timeout;
        std::uint8_t retries_left;
    };

    void move(CmTrigger trigger);
    void move(LapTrigger trigger);
    [[nodiscard]] bool lap_accepts(LapTrigger trigger) const;
    [[nodiscard]] std::uint64_t new_transaction() const;
    // A message that belongs to the peer's transaction.
    template <class Any>
    [[nodiscard]] Any answer() const {
        Any message;
        message.transaction_id = transaction_;
        message.local_comm_id = local_comm_id();
        message.remote_comm_id = remote_.comm_id;
        return message;
    }
    void send_until_answered(const Message& message, fabric::SimDuration timeout);
    void stop_waiting();
    void set_alternate(const ConnectionPath& alternate);

    ConnectionId id_;
    const CmIdentity& identity_;
    ConnectionEffects& effects_;
    CmState state_ = CmState::kIdle;
    LapState lap_state_ = LapState::kUninitialized;
    std::uint64_t service_id_ = 0;
    std::uint64_t transaction_ = 0;  // of the exchange that answers belong to
    Remote remote_;
    Address address_;
    QpParameters qp_;
    fabric::SimDuration timeout_{};  // for an answer
    std::uint8_t max_cm_retries_ = 0;
    std::optional<Pending> pending_;
    std::optional<Datagram> answer_;      // that the peer's repeated message gets again
    std::optional<Datagram> lap_answer_;  // and its repeated LAP
};

}  // namespace simverbs::cm
