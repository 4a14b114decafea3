// The transport services of a queue pair and what sets each apart.
//
// Engines ask for a property (`acked`, `reads`), never for a name: a new service is a new row.
// Reliable datagram and the driver-specific types are not modelled: creating one is EOPNOTSUPP.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "simverbs/model/enum_set.hpp"

namespace simverbs {

enum class Service : std::uint8_t {
    kRc = 1U << 0,
    kUc = 1U << 1,
    kUd = 1U << 2,
    kXrcIni = 1U << 3,
    kXrcTgt = 1U << 4,
    kRawPacket = 1U << 5,
};
template <>
inline constexpr bool kIsSetMember<Service> = true;
using Services = EnumSet<Service>;

inline constexpr Services kAllServices = Services(Service::kRc) | Service::kUc | Service::kUd |
                                         Service::kXrcIni | Service::kXrcTgt | Service::kRawPacket;
inline constexpr Services kConnectedServices =
    Services(Service::kRc) | Service::kUc | Service::kXrcIni | Service::kXrcTgt;
inline constexpr Services kAckedServices =
    Services(Service::kRc) | Service::kXrcIni | Service::kXrcTgt;

// Bits 7..5 of the BTH opcode (IBA 9.2.1; XRC: IBA A14). Raw packets carry no BTH.
enum class WireTransport : std::uint8_t {
    kRc = 0x00,
    kUc = 0x20,
    kRd = 0x40,
    kUd = 0x60,
    kXrc = 0xA0,
    kNone = 0xFF,
};

constexpr std::string_view to_string(WireTransport transport) {
    switch (transport) {
        case WireTransport::kRc:
            return "RC";
        case WireTransport::kUc:
            return "UC";
        case WireTransport::kRd:
            return "RD";
        case WireTransport::kUd:
            return "UD";
        case WireTransport::kXrc:
            return "XRC";
        case WireTransport::kNone:
            break;
    }
    return "none";
}

struct ServiceProperties {
    Service service;
    std::string_view name;
    std::uint8_t ibv_qp_type;      // value of enum ibv_qp_type
    WireTransport wire_transport;  // prefix of its BTH opcodes
    bool acked;                    // the responder answers each request: ACK, NAK, RNR NAK
    bool retries;                  // the requester repeats what was not answered
    bool ordered;                  // PSNs are checked, a gap is noticed
    bool connected;                // one remote QP, fixed at INIT to RTR
    bool uses_ah;                  // each send names its destination by an address handle
    bool has_requester;            // a send queue of its own
    bool has_responder;            // takes requests from the wire
    bool has_receive_queue;        // receives are posted to the QP itself (when no SRQ is given)
    bool may_use_srq;              // an SRQ may stand in for the receive queue
    bool srq_from_packet;          // the receive comes from the XRC SRQ that the request names
    bool segments;                 // a message may take more packets than one
    bool writes;                   // RDMA WRITE
    bool reads;                    // RDMA READ
    bool atomics;                  // CMP_AND_SWP, FETCH_AND_ADD, ATOMIC_WRITE
    bool multicast;                // may attach to a multicast group
    bool checks_qkey;
    bool checks_pkey;
    bool receives_grh_space;  // 40 bytes before the payload of a receive (IBA 11.4.1.2)
    bool send_error_stops_only_the_send_queue;  // SQE rather than ERR
    std::string_view source;
};

// clang-format off
inline constexpr auto kServices = std::to_array<ServiceProperties>({
    {.service = Service::kRc, .name = "RC", .ibv_qp_type = 2, .wire_transport = WireTransport::kRc,
     .acked = true, .retries = true, .ordered = true, .connected = true, .uses_ah = false,
     .has_requester = true, .has_responder = true, .has_receive_queue = true, .may_use_srq = true, .srq_from_packet = false,
     .segments = true, .writes = true, .reads = true, .atomics = true, .multicast = false,
     .checks_qkey = false, .checks_pkey = true, .receives_grh_space = false, .send_error_stops_only_the_send_queue = false,
     .source = "IBA 9.7"},
    {.service = Service::kUc, .name = "UC", .ibv_qp_type = 3, .wire_transport = WireTransport::kUc,
     .acked = false, .retries = false, .ordered = true, .connected = true, .uses_ah = false,
     .has_requester = true, .has_responder = true, .has_receive_queue = true, .may_use_srq = false, .srq_from_packet = false,
     .segments = true, .writes = true, .reads = false, .atomics = false, .multicast = false,
     .checks_qkey = false, .checks_pkey = true, .receives_grh_space = false, .send_error_stops_only_the_send_queue = true,
     .source = "IBA 9.8.2; SRQ: rdma-core ibv_create_qp(3)"},
    {.service = Service::kUd, .name = "UD", .ibv_qp_type = 4, .wire_transport = WireTransport::kUd,
     .acked = false, .retries = false, .ordered = false, .connected = false, .uses_ah = true,
     .has_requester = true, .has_responder = true, .has_receive_queue = true, .may_use_srq = true, .srq_from_packet = false,
     .segments = false, .writes = false, .reads = false, .atomics = false, .multicast = true,
     .checks_qkey = true, .checks_pkey = true, .receives_grh_space = true, .send_error_stops_only_the_send_queue = true,
     .source = "IBA 9.8.3"},
    {.service = Service::kXrcIni, .name = "XRC_INI", .ibv_qp_type = 9, .wire_transport = WireTransport::kXrc,
     .acked = true, .retries = true, .ordered = true, .connected = true, .uses_ah = false,
     .has_requester = true, .has_responder = false, .has_receive_queue = false, .may_use_srq = false, .srq_from_packet = false,
     .segments = true, .writes = true, .reads = true, .atomics = true, .multicast = false,
     .checks_qkey = false, .checks_pkey = true, .receives_grh_space = false, .send_error_stops_only_the_send_queue = false,
     .source = "IBA A14"},
    {.service = Service::kXrcTgt, .name = "XRC_TGT", .ibv_qp_type = 10, .wire_transport = WireTransport::kXrc,
     .acked = true, .retries = false, .ordered = true, .connected = true, .uses_ah = false,
     .has_requester = false, .has_responder = true, .has_receive_queue = false, .may_use_srq = false, .srq_from_packet = true,
     .segments = true, .writes = true, .reads = true, .atomics = true, .multicast = false,
     .checks_qkey = false, .checks_pkey = true, .receives_grh_space = false, .send_error_stops_only_the_send_queue = false,
     .source = "IBA A14"},
    {.service = Service::kRawPacket, .name = "RAW_PACKET", .ibv_qp_type = 8, .wire_transport = WireTransport::kNone,
     .acked = false, .retries = false, .ordered = false, .connected = false, .uses_ah = false,
     .has_requester = true, .has_responder = true, .has_receive_queue = true, .may_use_srq = true, .srq_from_packet = false,
     .segments = false, .writes = false, .reads = false, .atomics = false, .multicast = true,
     .checks_qkey = false, .checks_pkey = false, .receives_grh_space = false, .send_error_stops_only_the_send_queue = true,
     .source = "rdma-core ibv_create_qp(3)"},
});
// clang-format on

constexpr const ServiceProperties& properties(Service service) {
    for (const ServiceProperties& row : kServices) {
        if (row.service == service) {
            return row;
        }
    }
    return kServices[0];  // unreachable: tests/model checks that each enumerator has a row
}

constexpr std::string_view to_string(Service service) {
    return properties(service).name;
}

// The service at the other end of a message: an XRC initiator speaks to an XRC target.
constexpr Service peer_of(Service service) {
    switch (service) {
        case Service::kXrcIni:
            return Service::kXrcTgt;
        case Service::kXrcTgt:
            return Service::kXrcIni;
        default:
            return service;
    }
}

// The service of a value of enum ibv_qp_type, or nullptr where it is not modelled.
constexpr const ServiceProperties* find_service(std::uint32_t ibv_qp_type) {
    for (const ServiceProperties& row : kServices) {
        if (row.ibv_qp_type == ibv_qp_type) {
            return &row;
        }
    }
    return nullptr;
}

}  // namespace simverbs
