// The names of the records that traces have; tests/scenarios compares them with the events of the
// sources.
#pragma once

#include <array>
#include <string_view>

namespace scenarios {

// clang-format off
inline constexpr auto kRecordNames = std::to_array<std::string_view>({
    "async_event", "completion", "context", "cq_state", "credit_loop", "datagram_sent", "delivered",
    "dropped", "fabric_command", "fault", "fault_fired", "fault_missed", "frame_dropped",
    "frame_held_back", "frame_received", "frame_sent", "link", "link_state", "memory_region", "misuse",
    "node", "packet_discarded", "packet_sent", "port", "port_event", "port_state", "posted",
    "programs", "qp_state", "qp_stayed", "queue_pair", "queue_pair_connected",
    "rate_reduced", "rdma_cm",
    "rdma_cm_event", "routes_changed", "routes_computed", "sm_state", "srq_state", "sweep_begins", "sweep_ends", "tag",
    "tag_list", "tags_posted", "trap_received", "trap_sent", "verb", "wq_posted", "wq_state",
});
// clang-format on

}  // namespace scenarios
