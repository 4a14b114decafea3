// The messages of communication management as plain structs; functions that build and parse
// datagrams. "Local" is the sender of the message. Every bit pattern parses: its reader decides
// which values it takes.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "fabric/mad/datagram.hpp"
#include "fabric/net/gid.hpp"
#include "fabric/net/lid.hpp"

#include "simverbs/model/cm_codes.hpp"
#include "simverbs/model/services.hpp"

namespace simverbs::cm {

using fabric::mad::Datagram;

// At most as many bytes as the message has room for. A parsed message has all of them.
using PrivateData = std::vector<std::uint8_t>;

// Options of enhanced connection establishment, which Linux carries in fields that IBA reserves.
struct Ece {
    std::uint32_t vendor_id = 0;  // 24 bits
    std::uint32_t options = 0;    // the attribute modifier

    friend bool operator==(const Ece&, const Ece&) = default;
};

struct Path {
    fabric::Lid local_lid;
    fabric::Lid remote_lid;
    fabric::Gid local_gid;
    fabric::Gid remote_gid;
    std::uint32_t flow_label = 0;  // 20 bits
    std::uint8_t packet_rate = 0;  // 6 bits
    std::uint8_t traffic_class = 0;
    std::uint8_t hop_limit = 0;
    std::uint8_t sl = 0;  // 4 bits
    bool subnet_local = false;
    std::uint8_t local_ack_timeout = 0;  // 4.096 us x 2^n, 5 bits

    friend bool operator==(const Path&, const Path&) = default;
};

struct Req {
    std::uint64_t transaction_id = 0;
    std::uint32_t local_comm_id = 0;
    Ece ece;
    std::uint64_t service_id = 0;
    fabric::Guid local_ca_guid;
    std::uint32_t local_qkey = 0;
    std::uint32_t local_qpn = 0;
    std::uint8_t responder_resources = 0;
    std::uint32_t local_eecn = 0;
    std::uint8_t initiator_depth = 0;
    std::uint32_t remote_eecn = 0;
    std::uint8_t remote_cm_response_timeout = 0;  // 5 bits
    std::uint8_t transport_service_type = 0;      // 2 bits: RC, UC, RD, extended
    bool end_to_end_flow_control = false;
    std::uint32_t starting_psn = 0;
    std::uint8_t local_cm_response_timeout = 0;  // 5 bits
    std::uint8_t retry_count = 0;                // 3 bits
    std::uint16_t pkey = 0;
    std::uint8_t path_mtu = 0;  // 4 bits, the values of enum ibv_mtu
    bool rdc_exists = false;
    std::uint8_t rnr_retry_count = 0;  // 3 bits
    std::uint8_t max_cm_retries = 0;   // 4 bits
    bool srq = false;
    std::uint8_t extended_transport_type = 0;  // 3 bits: 1 is XRC
    Path primary;
    Path alternate;  // all zero: there is none
    bool sap_supported = false;
    PrivateData private_data;

    friend bool operator==(const Req&, const Req&) = default;
};

struct Mra {
    std::uint64_t transaction_id = 0;
    std::uint32_t local_comm_id = 0;
    std::uint32_t remote_comm_id = 0;
    CmAnswered answers = CmAnswered::kReq;
    std::uint8_t service_timeout = 0;  // 4.096 us x 2^n, 5 bits
    PrivateData private_data;

    friend bool operator==(const Mra&, const Mra&) = default;
};

struct Rej {
    std::uint64_t transaction_id = 0;
    std::uint32_t local_comm_id = 0;
    std::uint32_t remote_comm_id = 0;
    CmAnswered answers = CmAnswered::kReq;
    RejectReason reason{};
    PrivateData info;  // additional reject information (ARI)
    PrivateData private_data;

    friend bool operator==(const Rej&, const Rej&) = default;
};

struct Rep {
    std::uint64_t transaction_id = 0;
    std::uint32_t local_comm_id = 0;
    std::uint32_t remote_comm_id = 0;
    Ece ece;
    std::uint32_t local_qkey = 0;
    std::uint32_t local_qpn = 0;
    std::uint32_t local_eecn = 0;  // the number of an XRC target, whose local_qpn is 0
    std::uint32_t starting_psn = 0;
    std::uint8_t responder_resources = 0;
    std::uint8_t initiator_depth = 0;
    std::uint8_t target_ack_delay = 0;   // 5 bits
    std::uint8_t failover_accepted = 0;  // 2 bits
    bool end_to_end_flow_control = false;
    std::uint8_t rnr_retry_count = 0;  // 3 bits
    bool srq = false;
    fabric::Guid local_ca_guid;
    PrivateData private_data;

    friend bool operator==(const Rep&, const Rep&) = default;
};

struct Rtu {
    std::uint64_t transaction_id = 0;
    std::uint32_t local_comm_id = 0;
    std::uint32_t remote_comm_id = 0;
    PrivateData private_data;

    friend bool operator==(const Rtu&, const Rtu&) = default;
};

struct Dreq {
    std::uint64_t transaction_id = 0;
    std::uint32_t local_comm_id = 0;
    std::uint32_t remote_comm_id = 0;
    std::uint32_t remote_qpn = 0;
    PrivateData private_data;

    friend bool operator==(const Dreq&, const Dreq&) = default;
};

struct Drep {
    std::uint64_t transaction_id = 0;
    std::uint32_t local_comm_id = 0;
    std::uint32_t remote_comm_id = 0;
    PrivateData private_data;

    friend bool operator==(const Drep&, const Drep&) = default;
};

struct SidrReq {
    std::uint64_t transaction_id = 0;
    std::uint32_t request_id = 0;
    std::uint16_t pkey = 0;
    std::uint64_t service_id = 0;
    PrivateData private_data;

    friend bool operator==(const SidrReq&, const SidrReq&) = default;
};

struct SidrRep {
    std::uint64_t transaction_id = 0;
    std::uint32_t request_id = 0;
    SidrStatus status = SidrStatus::kValid;
    Ece ece;
    std::uint32_t qpn = 0;
    std::uint64_t service_id = 0;
    std::uint32_t qkey = 0;
    PrivateData info;
    PrivateData private_data;

    friend bool operator==(const SidrRep&, const SidrRep&) = default;
};

struct Lap {
    std::uint64_t transaction_id = 0;
    std::uint32_t local_comm_id = 0;
    std::uint32_t remote_comm_id = 0;
    std::uint32_t remote_qpn = 0;
    std::uint8_t remote_cm_response_timeout = 0;  // 5 bits
    Path alternate;
    PrivateData private_data;

    friend bool operator==(const Lap&, const Lap&) = default;
};

struct Apr {
    std::uint64_t transaction_id = 0;
    std::uint32_t local_comm_id = 0;
    std::uint32_t remote_comm_id = 0;
    AprStatus status = AprStatus::kLoaded;
    PrivateData info;
    PrivateData private_data;

    friend bool operator==(const Apr&, const Apr&) = default;
};

// In the order of CmMessage.
using Message = std::variant<Req, Mra, Rej, Rep, Rtu, Dreq, Drep, SidrReq, SidrRep, Lap, Apr>;

// Cuts a value to the width of its field, as Linux does. Private data and information fit into
// their fields (asserted).
Datagram build(const Message& message);

// Nothing: another class, version or method, or an attribute that is no message.
std::optional<Message> parse(const Datagram& datagram);

// Returns the REJ by which the receiver of a REQ or REP refuses it.
Rej rejection_of(const Req& refused, RejectReason reason);
Rej rejection_of(const Rep& refused, RejectReason reason);

// Returns the service of the queue pair that accepts a REQ, for XRC the target. Nothing: reliable
// datagrams, or a reserved value.
std::optional<Service> accepted_service(const Req& request);
// Sets the transport of a REQ. `service` is the sender's: RC, UC or XRC initiator (asserted).
void set_transport(Req& request, Service service);

}  // namespace simverbs::cm
