// The terms between the communication manager and its user: addresses, parameters of commands,
// events. Events have the names and the order of Linux's enum ib_cm_event_type.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "fabric/core/strong_id.hpp"
#include "fabric/mad/agent.hpp"

#include "simverbs/cm/messages.hpp"
#include "simverbs/model/services.hpp"

namespace simverbs::cm {

// Names a listener, a connection or a service ID resolution of a host.
using ConnectionId = fabric::StrongId<struct ConnectionIdTag, std::uint32_t>;

// The other side of an exchange of messages, and the port of this host that it goes through.
struct Address {
    fabric::PortNumber port;
    fabric::DatagramAddress remote;
};

// A path between two queue pairs, and the address of the messages that set it up.
struct ConnectionPath {
    Path path;                          // its ACK timeout is computed
    std::uint8_t packet_life_time = 0;  // 4.096 us x 2^n, of the SA's path record
    Address address;
};

// Values are cut to the widths of their fields.
struct ReqParameters {
    ConnectionPath primary;
    std::optional<ConnectionPath> alternate;
    std::uint64_t service_id = 0;
    Service service = Service::kRc;  // or UC, or XRC initiator
    std::uint32_t qpn = 0;
    std::uint32_t starting_psn = 0;  // that the peer begins to send with
    std::uint8_t path_mtu = 0;
    std::uint16_t pkey = 0;
    std::uint8_t responder_resources = 0;
    std::uint8_t initiator_depth = 0;
    std::uint8_t remote_cm_response_timeout = 0;
    std::uint8_t local_cm_response_timeout = 0;
    std::uint8_t retry_count = 0;
    std::uint8_t rnr_retry_count = 0;
    std::uint8_t max_cm_retries = 0;
    bool end_to_end_flow_control = false;
    bool srq = false;
    Ece ece;
    PrivateData private_data;
};

struct RepParameters {
    std::uint32_t qpn = 0;
    std::uint32_t starting_psn = 0;  // that the peer begins to send with
    std::uint8_t responder_resources = 0;
    std::uint8_t initiator_depth = 0;
    std::uint8_t failover_accepted = 0;
    std::uint8_t rnr_retry_count = 0;
    bool end_to_end_flow_control = false;
    bool srq = false;
    Ece ece;
    PrivateData private_data;
};

struct LapParameters {
    ConnectionPath alternate;
    std::uint8_t remote_cm_response_timeout = 0;
    PrivateData private_data;
};

struct SidrReqParameters {
    Address address;
    std::uint64_t service_id = 0;
    std::uint16_t pkey = 0;
    fabric::SimDuration timeout{};  // of one request
    std::uint8_t max_cm_retries = 0;
    PrivateData private_data;
};

struct SidrRepParameters {
    SidrStatus status = SidrStatus::kValid;
    std::uint32_t qpn = 0;
    std::uint32_t qkey = 0;
    Ece ece;
    PrivateData info;
    PrivateData private_data;
};

// The moment of an MRA: at once, or only when the peer repeats its message.
enum class MraMoment : std::uint8_t { kNow, kOnRepetition };

enum class EventType : std::uint8_t {
    kReqError,
    kReqReceived,
    kRepError,
    kRepReceived,
    kRtuReceived,
    kUserEstablished,  // never reported: the user has established the connection
    kDreqError,
    kDreqReceived,
    kDrepReceived,
    kTimewaitExit,
    kMraReceived,
    kRejReceived,
    kLapError,
    kLapReceived,
    kAprReceived,
    kSidrReqError,
    kSidrReqReceived,
    kSidrRepReceived,
};
inline constexpr auto kEventTypeNames = std::to_array<std::string_view>(
    {"REQ_ERROR", "REQ_RECEIVED", "REP_ERROR", "REP_RECEIVED", "RTU_RECEIVED", "USER_ESTABLISHED",
     "DREQ_ERROR", "DREQ_RECEIVED", "DREP_RECEIVED", "TIMEWAIT_EXIT", "MRA_RECEIVED",
     "REJ_RECEIVED", "LAP_ERROR", "LAP_RECEIVED", "APR_RECEIVED", "SIDR_REQ_ERROR",
     "SIDR_REQ_RECEIVED", "SIDR_REP_RECEIVED"});
static_assert(kEventTypeNames.size() == static_cast<std::size_t>(EventType::kSidrRepReceived) + 1);
constexpr std::string_view to_string(EventType type) {
    return kEventTypeNames[static_cast<std::size_t>(type)];
}

struct CmEvent {
    EventType type{};
    ConnectionId connection;
    ConnectionId listener;  // of a REQ and of a SIDR_REQ, which make a connection
    std::optional<Message>
        message;                  // as the peer sent it; errors and the end of timewait have none
    std::optional<Address> from;  // of the message
};

}  // namespace simverbs::cm
