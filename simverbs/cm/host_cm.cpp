#include "simverbs/cm/host_cm.hpp"

#include <algorithm>
#include <cerrno>
#include <concepts>

#include "fabric/core/assert.hpp"

namespace simverbs::cm {

using fabric::EventClass;
using fabric::EventKey;
using fabric::PortNumber;

HostCm::Entry::Entry(ConnectionId id, HostCm& cm)
    : connection(id, cm.identity_, cm),
      timer(cm.loop_,
            EventKey(EventClass::kTimer, cm.identity_.node, PortNumber(kCmKey), id.value()), cm,
            id.value()) {}

HostCm::HostCm(fabric::EventLoop& loop, const CmIdentity& identity, CmCarrier& carrier,
               CmUser& user)
    : loop_(loop), identity_(identity), carrier_(carrier), user_(user) {}

// Ids are assigned in a circle, so that a late message rarely meets a new connection.
// Communication id 0 means a peer whose id is not known yet.
std::optional<ConnectionId> HostCm::create() {
    if (entries_.size() >= identity_.max_connections) {
        return std::nullopt;
    }
    ConnectionId id;
    do {
        id = ConnectionId(++last_id_);
    } while (entries_.contains(id) || (id.value() ^ identity_.comm_id_operand) == 0);
    entries_.try_emplace(id, id, *this);
    return id;
}

void HostCm::destroy(ConnectionId connection) {
    const auto found = entries_.find(connection);
    if (found == entries_.end()) {
        return;
    }
    found->second.connection.leave();
    std::erase_if(listeners_, [connection](const Listener& listener) {
        return listener.connection == connection;
    });
    entries_.erase(found);
}

void HostCm::forget(ConnectionId connection) {
    const auto found = entries_.find(connection);
    if (found == entries_.end()) {
        return;
    }
    release_remote(found->second.connection);
    entries_.erase(found);
}

Connection* HostCm::find(ConnectionId connection) {
    const auto found = entries_.find(connection);
    return found == entries_.end() ? nullptr : &found->second.connection;
}

int HostCm::listen(ConnectionId connection, std::uint64_t service_id, std::uint64_t mask) {
    Connection* const listening = find(connection);
    const bool is_assigned = service_id == kAssignServiceId;
    if (listening == nullptr || !listening->accepts(CmTrigger::kListen) ||
        (is_assigned ? mask != kExactServiceId
                     : (service_id & kServiceIdAgencyMask) == kAssignServiceId)) {
        return EINVAL;
    }
    if (is_assigned) {
        service_id = next_assigned_++;
    }
    service_id &= mask;
    const bool is_taken = std::ranges::any_of(listeners_, [=](const Listener& other) {
        return ((other.service_id ^ service_id) & other.mask & mask) == 0;
    });
    if (is_taken) {
        return EBUSY;
    }
    listening->start_listening(service_id);
    listeners_.push_back({service_id, mask, connection});
    return 0;
}

std::optional<ConnectionId> HostCm::find_listener(std::uint64_t service_id) const {
    const auto found = std::ranges::find_if(listeners_, [service_id](const Listener& listener) {
        return (service_id & listener.mask) == listener.service_id;
    });
    return found == listeners_.end() ? std::nullopt : std::optional(found->connection);
}

void HostCm::send(const Address& to, const Datagram& datagram) {
    carrier_.send(to, datagram);
}

void HostCm::set_timer(ConnectionId connection, fabric::SimDuration delay) {
    entries_.at(connection).timer.arm_in(delay);
}

void HostCm::stop_timer(ConnectionId connection) {
    entries_.at(connection).timer.cancel();
}

void HostCm::release_remote_qp(const Connection& connection) {
    remotes_.release_qpn(connection.id(), connection.remote());
}

namespace {

std::tuple<std::uint32_t, fabric::Lid, fabric::Gid> sidr_key(std::uint32_t request_id,
                                                             const Address& from) {
    return {request_id, from.remote.lid,
            from.remote.global ? from.remote.global->gid : fabric::Gid{}};
}

}  // namespace

void HostCm::release_remote(const Connection& connection) {
    remotes_.release(connection.id(), connection.remote());
    const auto found =
        resolutions_.find(sidr_key(connection.remote().comm_id, connection.address()));
    if (found != resolutions_.end() && found->second == connection.id()) {
        resolutions_.erase(found);
    }
}

void HostCm::handle(const fabric::Event& event) {
    const ConnectionId id(static_cast<std::uint32_t>(event.argument));
    Connection* const connection = find(id);
    SIMVERBS_ASSERT(connection != nullptr, "a timer of connection {} outlives it", id.value());
    if (const std::optional<EventType> type = connection->timer_expired()) {
        user_.cm_event({.type = *type, .connection = id});
    }
}

void HostCm::datagram_arrived(const Datagram& datagram, const Address& from) {
    if (const std::optional<Message> message = parse(datagram)) {
        std::visit([this, &from](const auto& any) { take(any, from); }, *message);
    }
}

// `remote` is 0 for a connection that does not know its peer's id yet.
Connection* HostCm::find_by_comm_id(std::uint32_t local, std::uint32_t remote) {
    Connection* const connection = find(ConnectionId(local ^ identity_.comm_id_operand));
    return connection != nullptr && connection->remote().comm_id == remote ? connection : nullptr;
}

template <class Any>
void HostCm::hand_over(Connection* connection, const Any& message, const Address& from) {
    if (connection == nullptr) {
        return;
    }
    const ConnectionId id = connection->id();
    if (const std::optional<EventType> type = connection->arrived(message, from)) {
        user_.cm_event({.type = *type, .connection = id, .message = message, .from = from});
    }
}

template <class Any>
void HostCm::refuse(const Any& message, RejectReason reason, const Address& from) {
    carrier_.send(from, build(rejection_of(message, reason)));
}

template <class Any>
bool HostCm::refuse_stale(const Any& message, fabric::Guid ca, std::uint32_t qpn,
                          const Address& from) {
    const std::optional<ConnectionId> stale = remotes_.by_qpn(ca, qpn);
    if (!stale) {
        return false;
    }
    refuse(message, RejectReason::kStaleConnection, from);
    // EINVAL where that connection is not established: nothing is to be disconnected.
    static_cast<void>(find(*stale)->send_dreq({}));
    return true;
}

void HostCm::take(const Req& request, const Address& from) {
    if (const auto known = remotes_.by_comm_id(request.local_ca_guid, request.local_comm_id)) {
        find(*known)->request_repeated(from);
        return;
    }
    if (refuse_stale(request, request.local_ca_guid, request.local_qpn, from)) {
        return;
    }
    const std::optional<ConnectionId> listener = find_listener(request.service_id);
    const std::optional<Service> service = accepted_service(request);
    if (!listener || !service) {
        refuse(request,
               listener ? RejectReason::kInvalidTransportType : RejectReason::kInvalidServiceId,
               from);
        return;
    }
    const std::optional<ConnectionId> id = create();
    if (!id) {
        refuse(request, RejectReason::kNoResources, from);
        return;
    }
    Connection& connection = *find(*id);
    connection.request_arrived(request, *service, from);
    remotes_.insert(*id, connection.remote());
    user_.cm_event({.type = EventType::kReqReceived,
                    .connection = *id,
                    .listener = *listener,
                    .message = request,
                    .from = from});
}

void HostCm::take(const Rep& message, const Address& from) {
    Connection* connection = find_by_comm_id(message.remote_comm_id, 0);
    if (connection == nullptr) {
        hand_over(find_by_comm_id(message.remote_comm_id, message.local_comm_id), message, from);
        return;
    }
    const std::uint32_t qpn = connection->qpn_of(message);
    if (next_state(connection->state(), CmTrigger::kRep) != CmState::kRepReceived ||
        remotes_.by_comm_id(message.local_ca_guid, message.local_comm_id) ||
        refuse_stale(message, message.local_ca_guid, qpn, from)) {
        return;
    }
    remotes_.insert(connection->id(), {message.local_ca_guid, message.local_comm_id, qpn});
    hand_over(connection, message, from);
}

void HostCm::take(const Mra& message, const Address& from) {
    const bool of_req = message.answers == CmAnswered::kReq;
    hand_over(find_by_comm_id(message.remote_comm_id, of_req ? 0 : message.local_comm_id), message,
              from);
}

// A peer that gives up before it knows the id of the connection names itself by its CA GUID.
void HostCm::take(const Rej& message, const Address& from) {
    constexpr std::size_t kGuidBytes = 8;
    if (message.reason == RejectReason::kTimeout) {
        const auto known =
            message.info.size() < kGuidBytes
                ? std::nullopt
                : remotes_.by_comm_id(fabric::Guid(fabric::mad::get(message.info, {0, 64})),
                                      message.local_comm_id);
        hand_over(known ? find(*known) : nullptr, message, from);
        return;
    }
    const bool of_req = message.answers == CmAnswered::kReq;
    hand_over(find_by_comm_id(message.remote_comm_id, of_req ? 0 : message.local_comm_id), message,
              from);
}

void HostCm::take(const Rtu& message, const Address& from) {
    hand_over(find_by_comm_id(message.remote_comm_id, message.local_comm_id), message, from);
}

// A DREQ for a connection that does not exist any more is answered, too.
void HostCm::take(const Dreq& message, const Address& from) {
    Connection* const connection = find_by_comm_id(message.remote_comm_id, message.local_comm_id);
    if (connection == nullptr) {
        carrier_.send(from, build(Drep{.transaction_id = message.transaction_id,
                                       .local_comm_id = message.remote_comm_id,
                                       .remote_comm_id = message.local_comm_id}));
        return;
    }
    hand_over(connection, message, from);
}

void HostCm::take(const Drep& message, const Address& from) {
    hand_over(find_by_comm_id(message.remote_comm_id, message.local_comm_id), message, from);
}

void HostCm::take(const Lap& message, const Address& from) {
    hand_over(find_by_comm_id(message.remote_comm_id, message.local_comm_id), message, from);
}

void HostCm::take(const Apr& message, const Address& from) {
    hand_over(find_by_comm_id(message.remote_comm_id, message.local_comm_id), message, from);
}

void HostCm::take(const SidrReq& message, const Address& from) {
    const SidrKey key = sidr_key(message.request_id, from);
    if (resolutions_.contains(key)) {
        return;
    }
    const std::optional<ConnectionId> listener = find_listener(message.service_id);
    if (!listener) {
        carrier_.send(from, build(SidrRep{.transaction_id = message.transaction_id,
                                          .request_id = message.request_id,
                                          .status = SidrStatus::kServiceIdNotSupported,
                                          .service_id = message.service_id}));
        return;
    }
    const std::optional<ConnectionId> id = create();
    if (!id) {
        return;
    }
    find(*id)->request_arrived(message, from);
    resolutions_.emplace(key, *id);
    user_.cm_event({.type = EventType::kSidrReqReceived,
                    .connection = *id,
                    .listener = *listener,
                    .message = message,
                    .from = from});
}

void HostCm::take(const SidrRep& message, const Address& from) {
    hand_over(find_by_comm_id(message.request_id, 0), message, from);
}

}  // namespace simverbs::cm
