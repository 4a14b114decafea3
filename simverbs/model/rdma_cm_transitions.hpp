// The states of an rdma_cm id (Linux drivers/infiniband/core/cma.c), as rows. A command without a
// row is EINVAL; an event of the network without one is dropped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "simverbs/model/transition_table.hpp"

namespace simverbs {

// In the order of enum rdma_cm_state of Linux.
enum class RdmaCmState : std::uint8_t {
    kIdle,
    kAddrQuery,
    kAddrResolved,
    kRouteQuery,
    kRouteResolved,
    kConnect,
    kDisconnect,
    kAddrBound,
    kListen,
    kDeviceRemoval,
    kDestroying,
};
inline constexpr auto kRdmaCmStateNames = std::to_array<std::string_view>(
    {"IDLE", "ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_QUERY", "ROUTE_RESOLVED", "CONNECT",
     "DISCONNECT", "ADDR_BOUND", "LISTEN", "DEVICE_REMOVAL", "DESTROYING"});
static_assert(kRdmaCmStateNames.size() == static_cast<std::size_t>(RdmaCmState::kDestroying) + 1);
constexpr std::string_view to_string(RdmaCmState state) {
    return kRdmaCmStateNames[static_cast<std::size_t>(state)];
}

enum class RdmaCmTrigger : std::uint8_t {
    // Commands of the user.
    kBind,
    kResolveAddr,
    kResolveRoute,
    kSetPath,
    kStartListening,
    kSendRequest,
    kDestroy,
    // Events.
    kAddressFound,
    kAddressFailed,
    kPathFound,
    kPathFailed,
    kRequest,       // a REQ or a SIDR_REQ makes an id of its own
    kDisconnected,  // DREQ, DREP, or no answer to the DREQ
    kDeviceRemoved,
};
inline constexpr auto kRdmaCmTriggerNames = std::to_array<std::string_view>(
    {"bind", "resolve addr", "resolve route", "set path", "start listening", "send request",
     "destroy", "address found", "address failed", "path found", "path failed", "request",
     "disconnected", "device removed"});
static_assert(kRdmaCmTriggerNames.size() ==
              static_cast<std::size_t>(RdmaCmTrigger::kDeviceRemoved) + 1);
constexpr std::string_view to_string(RdmaCmTrigger trigger) {
    return kRdmaCmTriggerNames[static_cast<std::size_t>(trigger)];
}

// Returns true for commands of the program; the others happen.
constexpr bool is_command(RdmaCmTrigger trigger) {
    return trigger <= RdmaCmTrigger::kDestroy;
}

using RdmaCmTransition = Transition<RdmaCmState, RdmaCmTrigger>;

// clang-format off
inline constexpr auto kRdmaCmTransitions = [] {
    using enum RdmaCmState;
    using enum RdmaCmTrigger;
    return std::to_array<RdmaCmTransition>({
        // from           trigger          to               source
        {kIdle,           kBind,           kAddrBound,      "Linux rdma_bind_addr"},
        {kAddrBound,      kResolveAddr,    kAddrQuery,      "Linux rdma_resolve_addr"},
        {kAddrQuery,      kAddressFound,   kAddrResolved,   "Linux addr_handler"},
        {kAddrQuery,      kAddressFailed,  kAddrBound,      "Linux addr_handler"},
        {kAddrResolved,   kResolveRoute,   kRouteQuery,     "Linux rdma_resolve_route"},
        {kAddrResolved,   kSetPath,        kRouteResolved,  "Linux rdma_set_ib_path"},
        {kRouteQuery,     kPathFound,      kRouteResolved,  "Linux cma_work_handler"},
        {kRouteQuery,     kPathFailed,     kAddrResolved,   "Linux cma_query_handler"},
        {kRouteResolved,  kSendRequest,    kConnect,        "Linux rdma_connect"},
        {kAddrBound,      kStartListening, kListen,         "Linux rdma_listen"},
        {kIdle,           kRequest,        kConnect,        "Linux cma_ib_new_conn_id"},
        {kConnect,        kDisconnected,   kDisconnect,     "Linux cma_ib_handler"},

        // A device is known from ADDR_BOUND on.
        {kAddrQuery,      kDeviceRemoved,  kDeviceRemoval,  "Linux cma_send_device_removal_put"},
        {kAddrResolved,   kDeviceRemoved,  kDeviceRemoval,  "Linux cma_send_device_removal_put"},
        {kRouteQuery,     kDeviceRemoved,  kDeviceRemoval,  "Linux cma_send_device_removal_put"},
        {kRouteResolved,  kDeviceRemoved,  kDeviceRemoval,  "Linux cma_send_device_removal_put"},
        {kConnect,        kDeviceRemoved,  kDeviceRemoval,  "Linux cma_send_device_removal_put"},
        {kDisconnect,     kDeviceRemoved,  kDeviceRemoval,  "Linux cma_send_device_removal_put"},
        {kAddrBound,      kDeviceRemoved,  kDeviceRemoval,  "Linux cma_send_device_removal_put"},
        {kListen,         kDeviceRemoved,  kDeviceRemoval,  "Linux cma_send_device_removal_put"},

        {kIdle,           kDestroy,        kDestroying,     "Linux rdma_destroy_id"},
        {kAddrQuery,      kDestroy,        kDestroying,     "Linux rdma_destroy_id"},
        {kAddrResolved,   kDestroy,        kDestroying,     "Linux rdma_destroy_id"},
        {kRouteQuery,     kDestroy,        kDestroying,     "Linux rdma_destroy_id"},
        {kRouteResolved,  kDestroy,        kDestroying,     "Linux rdma_destroy_id"},
        {kConnect,        kDestroy,        kDestroying,     "Linux rdma_destroy_id"},
        {kDisconnect,     kDestroy,        kDestroying,     "Linux rdma_destroy_id"},
        {kAddrBound,      kDestroy,        kDestroying,     "Linux rdma_destroy_id"},
        {kListen,         kDestroy,        kDestroying,     "Linux rdma_destroy_id"},
        {kDeviceRemoval,  kDestroy,        kDestroying,     "Linux rdma_destroy_id"},
    });
}();
// clang-format on

static_assert(rows_are_unambiguous(std::span<const RdmaCmTransition>(kRdmaCmTransitions)),
              "two rows claim the same trigger");

inline constexpr TransitionTable<RdmaCmState, RdmaCmTrigger, kRdmaCmStateNames.size(),
                                 kRdmaCmTriggerNames.size()>
    kRdmaCmTable{kRdmaCmTransitions};

// Nothing where the trigger has no row.
constexpr std::optional<RdmaCmState> next_state(RdmaCmState from, RdmaCmTrigger trigger) {
    return kRdmaCmTable.next(from, trigger);
}

}  // namespace simverbs
