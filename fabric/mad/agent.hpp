// Messages between a client of a management port and the port: the terms of Linux's ib_mad, as
// /dev/infiniband/umadN hands them to programs.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/core/sim_time.hpp"
#include "fabric/core/strong_id.hpp"
#include "fabric/net/gid.hpp"
#include "fabric/net/lid.hpp"
#include "fabric/net/management.hpp"

namespace fabric {

// Unique at its port for ever; the high half of the transaction ids of its requests. Agents that
// make these ids themselves are numbered apart, so that they change no other agent's number.
using AgentId = StrongId<struct AgentIdTag, std::uint32_t>;

// IBA 10.2.3: the Q_Key of queue pair 1.
inline constexpr std::uint32_t kWellKnownQkey = 0x8001'0000;

struct AgentSpec {
    std::uint32_t qp = kGeneralServicesQp;  // or kSubnetManagementQp
    std::uint8_t management_class = 0;      // 0: takes nothing but answers to what it asks
    std::uint8_t class_version = 1;
    std::bitset<128> methods;           // what it takes without having asked
    std::array<std::uint8_t, 3> oui{};  // of classes 0x30 to 0x4F
    // Its messages may be longer than a datagram: the port cuts and joins them (rmpp_version 1).
    bool joins_rmpp = false;
    // Its client makes its transaction ids, as clients in Linux's kernel do: nothing is
    // overwritten. An answer finds its request only where the high half is the AgentId.
    bool makes_transaction_ids = false;
};

struct GlobalAddress {
    Gid gid;                     // of the other side
    std::uint8_t gid_index = 0;  // of this port
    std::uint8_t hop_limit = 0;
    std::uint8_t traffic_class = 0;
    std::uint32_t flow_label = 0;
};

// The other side. SMPs by directed route have their route in the datagram, and kPermissiveLid here.
struct DatagramAddress {
    Lid lid;
    std::uint32_t qp = 0;
    std::uint32_t qkey = 0;
    std::uint8_t sl = 0;
    std::uint8_t path_bits = 0;  // of this port's LID
    std::uint16_t pkey_index = 0;
    std::optional<GlobalAddress> global;
};

struct SendRequest {
    // A datagram, shorter ones are filled up with zeros; with RMPP (its header active) the headers
    // of the class and all data in one piece.
    std::span<const std::uint8_t> bytes;
    DatagramAddress to;
    // For an answer, or with RMPP for the acknowledgement; zero: none is waited for.
    SimDuration timeout{};
    std::uint32_t retries = 0;
    std::uint64_t token = 0;  // the client's own
};

struct ReceivedDatagram {
    AgentId agent;
    std::span<const std::uint8_t> bytes;  // 256, or a whole RMPP message; gone after the call
    DatagramAddress from;
    bool answers = false;     // a request of this agent
    std::uint64_t token = 0;  // of that request
};

enum class SendOutcome : std::uint8_t {
    kSent,      // and answered, where a timeout was given
    kTimedOut,  // after all retries
    kAborted,   // RMPP: by the other side
};

struct FinishedSend {
    AgentId agent;
    std::uint64_t token;
    SendOutcome outcome;
    std::span<const std::uint8_t> bytes;  // as sent; gone after the call
};

// Called while an event runs, never from within a call of the client's.
class AgentClient {
  public:
    virtual void datagram_received(const ReceivedDatagram& datagram) = 0;
    // Once for each send with a timeout or of an RMPP message, after its answer; not for those of
    // an agent that has gone.
    virtual void send_finished(const FinishedSend& send) = 0;
    // The port's own link went up or down: what the kernel tells of as port events.
    virtual void link_changed() {}

  protected:
    ~AgentClient() = default;
};

}  // namespace fabric
