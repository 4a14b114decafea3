// Names of the enumerators of verbs.h, as rdma-core spells them: programs print them, and people
// search for what was printed. A value without a name is "unknown"; tests/abi compares every answer
// with the distribution's own library.
#include <array>
#include <cstddef>
#include <span>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/newer_abi.hpp"

namespace {

constexpr auto kNodeTypes = std::to_array<const char*>({
    nullptr,  // there is no node type 0
    "InfiniBand channel adapter",
    "InfiniBand switch",
    "InfiniBand router",
    "iWARP NIC",
    "usNIC",
    "usNIC UDP",
    "unspecified",
});
static_assert(kNodeTypes.size() == IBV_NODE_UNSPECIFIED + 1);

constexpr auto kPortStates = std::to_array<const char*>({
    "no state change (NOP)",
    "down",
    "init",
    "armed",
    "active",
    "active defer",
});
static_assert(kPortStates.size() == IBV_PORT_ACTIVE_DEFER + 1);

constexpr auto kEvents = std::to_array<const char*>({
    "CQ error",
    "local work queue catastrophic error",
    "invalid request local work queue error",
    "local access violation work queue error",
    "communication established",
    "send queue drained",
    "path migrated",
    "path migration request error",
    "local catastrophic error",
    "port active",
    "port error",
    "LID change",
    "P_Key change",
    "SM change",
    "SRQ catastrophic error",
    "SRQ limit reached",
    "last WQE reached",
    "client reregistration",
    "GID table change",
    "WQ fatal",
});
static_assert(kEvents.size() == IBV_EVENT_WQ_FATAL + 1);

constexpr auto kStatuses = std::to_array<const char*>({
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "Work Request Flushed Error",
    "memory management operation error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "aborted error",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout error",
    "general error",
    "TM error",
    "TM software rendezvous",
});
static_assert(kStatuses.size() == IBV_WC_TM_RNDV_INCOMPLETE + 1);

constexpr auto kOpcodes = std::to_array<const char*>({
    "rdma-write",
    "rdma-write-with-imm",
    "send",
    "send-with-imm",
    "rdma-read",
    "atomic-cmp-and-swp",
    "atomic-fetch-and-add",
    "local-inv",
    "bind-mw",
    "send-with-inv",
    "tso",
    "driver1",
    nullptr,  // 12 and 13 were never assigned; rdma-core answers a null pointer here
    nullptr,
    "flush",
    "atomic-write",
});
static_assert(kOpcodes.size() == IBV_WR_ATOMIC_WRITE + 1);

const char* name_of(int value, std::span<const char* const> names) {
    const bool in_range = value >= 0 && static_cast<std::size_t>(value) < names.size();
    const char* name = in_range ? names[static_cast<std::size_t>(value)] : nullptr;
    return name != nullptr ? name : "unknown";
}

}  // namespace

const char* simverbs_abi_ibv_node_type_str(ibv_node_type node_type) {
    return name_of(node_type, kNodeTypes);
}

const char* simverbs_abi_ibv_port_state_str(ibv_port_state port_state) {
    return name_of(port_state, kPortStates);
}

const char* simverbs_abi_ibv_event_type_str(ibv_event_type event) {
    return name_of(event, kEvents);
}

const char* simverbs_abi_ibv_wc_status_str(ibv_wc_status status) {
    return name_of(status, kStatuses);
}

const char* simverbs_abi_ibv_wr_opcode_str(ibv_wr_opcode opcode) {
    return name_of(opcode, kOpcodes);
}
