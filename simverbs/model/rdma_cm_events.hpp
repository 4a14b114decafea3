// The events of rdma_cm ids (enum rdma_cm_event_type of <rdma/rdma_cma.h>), and what causes each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace simverbs {

enum class RdmaEventType : std::uint8_t {
    kAddrResolved,
    kAddrError,
    kRouteResolved,
    kRouteError,
    kConnectRequest,
    kConnectResponse,
    kConnectError,
    kUnreachable,
    kRejected,
    kEstablished,
    kDisconnected,
    kDeviceRemoval,
    kMulticastJoin,
    kMulticastError,
    kAddrChange,
    kTimewaitExit,
};
inline constexpr auto kRdmaEventNames = std::to_array<std::string_view>(
    {"ADDR_RESOLVED", "ADDR_ERROR", "ROUTE_RESOLVED", "ROUTE_ERROR", "CONNECT_REQUEST",
     "CONNECT_RESPONSE", "CONNECT_ERROR", "UNREACHABLE", "REJECTED", "ESTABLISHED", "DISCONNECTED",
     "DEVICE_REMOVAL", "MULTICAST_JOIN", "MULTICAST_ERROR", "ADDR_CHANGE", "TIMEWAIT_EXIT"});
inline constexpr std::size_t kRdmaEventTypes = kRdmaEventNames.size();
static_assert(kRdmaEventTypes == static_cast<std::size_t>(RdmaEventType::kTimewaitExit) + 1);
constexpr std::string_view to_string(RdmaEventType type) {
    return kRdmaEventNames[static_cast<std::size_t>(type)];
}

struct RdmaEventCause {
    RdmaEventType event;
    std::string_view cause;
    std::string_view status;  // of the event
    std::string_view source;
};

// clang-format off
inline constexpr auto kRdmaEventCauses = [] {
    using enum RdmaEventType;
    return std::to_array<RdmaEventCause>({
        {kAddrResolved,    "the destination has a GID as seen from a port of this host",            "0",          "Linux addr_handler"},
        {kAddrError,       "no neighbour answers within the time given",                            "-ETIMEDOUT", "Linux process_one_req"},
        {kAddrError,       "no RDMA port has the address from which packets to the destination leave", "-ENODEV", "Linux addr_handler"},
        {kAddrError,       "the SIDR_REP brings another Q_Key than the id has",                     "-EINVAL",    "Linux cma_sidr_rep_handler"},
        {kRouteResolved,   "subnet administration has a path; on Ethernet at once",                 "0",          "Linux cma_work_handler"},
        {kRouteError,      "subnet administration has no path",                                     "-EINVAL",    "Linux cma_query_handler"},
        {kRouteError,      "subnet administration does not answer within the time given",           "-ETIMEDOUT", "Linux cma_query_handler"},
        {kConnectRequest,  "a REQ for a port that is listened on",                                  "0",          "Linux cma_ib_req_handler"},
        {kConnectRequest,  "a SIDR_REQ for a port that is listened on",                             "0",          "Linux cma_ib_req_handler"},
        {kConnectResponse, "a REP, which librdmacm reports where the id has no queue pair",         "0",          "Linux cma_ib_handler"},
        {kConnectError,    "librdmacm: the queue pair of the id does not go to RTR or RTS at the REP", "-1",       "librdmacm ucma_process_conn_resp"},
        {kUnreachable,     "no answer to the REQ, however often it was sent",                       "-ETIMEDOUT", "Linux cma_ib_handler"},
        {kUnreachable,     "no answer to the REP",                                                  "-ETIMEDOUT", "Linux cma_ib_handler"},
        {kUnreachable,     "no answer to the SIDR_REQ",                                             "-ETIMEDOUT", "Linux cma_sidr_rep_handler"},
        {kUnreachable,     "a SIDR_REP that refuses",                                               "its status", "Linux cma_sidr_rep_handler"},
        {kRejected,        "nobody listens on the port: a REJ with reason 8",                       "8",          "Linux cm_req_handler"},
        {kRejected,        "the listener has another service type, or the header of the request is none: a REJ with reason 28", "28", "Linux cma_ib_req_handler"},
        {kRejected,        "the peer's program refuses: a REJ with reason 28",                      "28",         "Linux rdma_reject"},
        {kRejected,        "the peer's program refuses the vendor's options: a REJ with reason 35",  "35",         "librdmacm rdma_reject_ece"},
        {kRejected,        "the peer has a connection of the same queue pair still: a REJ with reason 10", "10",   "Linux cm_match_req"},
        {kRejected,        "the active side destroys its id before the REP comes: a REJ with reason 4", "4",        "Linux cm_destroy_id"},
        {kRejected,        "the peer's manager refuses the REQ or REP for another reason, as a fault `cm_reject` says", "the reason", "IBA 12.6.7.2"},
        {kEstablished,     "the RTU at the passive side",                                           "0",          "Linux cma_ib_handler"},
        {kEstablished,     "the REP, where the id has a queue pair that librdmacm takes to RTS",    "0",          "librdmacm ucma_process_conn_resp"},
        {kEstablished,     "a message that comes before the RTU: rdma_notify(IBV_EVENT_COMM_EST)",  "0",          "Linux cm_establish"},
        {kEstablished,     "the SIDR_REP with a queue pair",                                        "0",          "Linux cma_sidr_rep_handler"},
        {kDisconnected,    "a DREQ of the peer, or its DREP",                                       "0",          "Linux cma_ib_handler"},
        {kDisconnected,    "no answer to the DREQ",                                                 "-ETIMEDOUT", "Linux cma_ib_handler"},
        {kDeviceRemoval,   "the device of the id is removed, or dies",                              "0",          "Linux cma_remove_id_dev"},
        {kMulticastJoin,   "subnet administration has taken the port into the group; on Ethernet at once", "0",   "Linux cma_ib_mc_handler"},
        {kMulticastError,  "subnet administration refuses, or does not answer",                     "-EINVAL, -ETIMEDOUT", "Linux cma_ib_mc_handler"},
        {kMulticastError,  "the port goes down or gets another LID: it is out of its groups",       "-ENETRESET", "Linux mcast_event_handler"},
        {kMulticastError,  "the group has another Q_Key than the id",                               "-EINVAL",    "Linux cma_make_mc_event"},
        {kAddrChange,      "the port loses the GID that the id is bound to, as when a bond fails over",  "0",       "Linux cma_netdev_change"},
        {kTimewaitExit,    "the connection has been in TIMEWAIT for long enough",                   "0",          "Linux cma_ib_handler"},
    });
}();
// clang-format on

}  // namespace simverbs
