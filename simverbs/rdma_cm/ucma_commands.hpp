// The commands of /dev/infiniband/rdma_cm by name, and the id that each is about, for traces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include <rdma/rdma_user_cm.h>

namespace simverbs::rdma_cm {

struct UcmaCommandRow {
    std::uint32_t command;
    std::string_view name;
    // Offset of the id in what is written behind the header; kNoId: it is in the answer.
    std::size_t id_at;
};
inline constexpr std::size_t kNoId = SIZE_MAX;

inline constexpr auto kUcmaCommands = std::to_array<UcmaCommandRow>({
    {RDMA_USER_CM_CMD_CREATE_ID, "CREATE_ID", kNoId},
    {RDMA_USER_CM_CMD_DESTROY_ID, "DESTROY_ID", offsetof(rdma_ucm_destroy_id, id)},
    {RDMA_USER_CM_CMD_BIND_IP, "BIND_IP", offsetof(rdma_ucm_bind_ip, id)},
    {RDMA_USER_CM_CMD_RESOLVE_IP, "RESOLVE_IP", offsetof(rdma_ucm_resolve_ip, id)},
    {RDMA_USER_CM_CMD_RESOLVE_ROUTE, "RESOLVE_ROUTE", offsetof(rdma_ucm_resolve_route, id)},
    {RDMA_USER_CM_CMD_QUERY_ROUTE, "QUERY_ROUTE", offsetof(rdma_ucm_query, id)},
    {RDMA_USER_CM_CMD_CONNECT, "CONNECT", offsetof(rdma_ucm_connect, id)},
    {RDMA_USER_CM_CMD_LISTEN, "LISTEN", offsetof(rdma_ucm_listen, id)},
    {RDMA_USER_CM_CMD_ACCEPT, "ACCEPT", offsetof(rdma_ucm_accept, id)},
    {RDMA_USER_CM_CMD_REJECT, "REJECT", offsetof(rdma_ucm_reject, id)},
    {RDMA_USER_CM_CMD_DISCONNECT, "DISCONNECT", offsetof(rdma_ucm_disconnect, id)},
    {RDMA_USER_CM_CMD_INIT_QP_ATTR, "INIT_QP_ATTR", offsetof(rdma_ucm_init_qp_attr, id)},
    {RDMA_USER_CM_CMD_GET_EVENT, "GET_EVENT", kNoId},
    {RDMA_USER_CM_CMD_GET_OPTION, "GET_OPTION", kNoId},
    {RDMA_USER_CM_CMD_SET_OPTION, "SET_OPTION", offsetof(rdma_ucm_set_option, id)},
    {RDMA_USER_CM_CMD_NOTIFY, "NOTIFY", offsetof(rdma_ucm_notify, id)},
    {RDMA_USER_CM_CMD_JOIN_IP_MCAST, "JOIN_IP_MCAST", offsetof(rdma_ucm_join_ip_mcast, id)},
    {RDMA_USER_CM_CMD_LEAVE_MCAST, "LEAVE_MCAST", offsetof(rdma_ucm_destroy_id, id)},
    {RDMA_USER_CM_CMD_MIGRATE_ID, "MIGRATE_ID", offsetof(rdma_ucm_migrate_id, id)},
    {RDMA_USER_CM_CMD_QUERY, "QUERY", offsetof(rdma_ucm_query, id)},
    {RDMA_USER_CM_CMD_BIND, "BIND", offsetof(rdma_ucm_bind, id)},
    {RDMA_USER_CM_CMD_RESOLVE_ADDR, "RESOLVE_ADDR", offsetof(rdma_ucm_resolve_addr, id)},
    {RDMA_USER_CM_CMD_JOIN_MCAST, "JOIN_MCAST", offsetof(rdma_ucm_join_mcast, id)},
});

// nullptr: there is no such command.
constexpr const UcmaCommandRow* find_ucma_command(std::uint32_t command) {
    return command < kUcmaCommands.size() ? &kUcmaCommands[command] : nullptr;
}
static_assert([] {
    for (std::uint32_t i = 0; i < kUcmaCommands.size(); ++i) {
        if (kUcmaCommands[i].command != i) {
            return false;
        }
    }
    return true;
}());

// Nothing: the bytes end before it, or it is not there.
inline std::optional<std::uint32_t> id_at(std::span<const std::uint8_t> bytes, std::size_t place) {
    std::uint32_t id = 0;
    if (place == kNoId || bytes.size() < sizeof id || place > bytes.size() - sizeof id) {
        return std::nullopt;
    }
    std::memcpy(&id, bytes.data() + place, sizeof id);
    return id;
}

}  // namespace simverbs::rdma_cm
