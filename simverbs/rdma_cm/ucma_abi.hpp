// Between the structs of <rdma/rdma_user_cm.h> and the terms of rdma_cm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include <rdma/rdma_user_cm.h>

#include "simverbs/rdma_cm/rdma_event.hpp"
#include "simverbs/rdma_cm/rdma_id.hpp"
#include "simverbs/rdma_cm/socket_address.hpp"
#include "simverbs/rdma_cm/ucma_file.hpp"

namespace simverbs::rdma_cm {

template <class T>
constexpr std::span<const std::uint8_t> bytes_of(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return {static_cast<const std::uint8_t*>(static_cast<const void*>(&value)), sizeof value};
}

// Copies a command out of what was written. Nothing, which is EFAULT: it ends earlier.
template <class T>
std::optional<T> read_command(std::span<const std::uint8_t> payload) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (payload.size() < sizeof(T)) {
        return std::nullopt;
    }
    T command;
    std::memcpy(&command, payload.data(), sizeof command);
    return command;
}

inline UcmaReply failure(int error) {
    return {.error = error};
}

// A reply with as much of `response` as the program has room for.
template <class T>
UcmaReply respond(std::uint64_t address, const T& response, std::size_t room = sizeof(T)) {
    const std::span<const std::uint8_t> bytes = bytes_of(response).first(std::min(room, sizeof(T)));
    return {.address = address, .bytes = {bytes.begin(), bytes.end()}};
}

// Returns the address if its family is known and it fits into `Sockaddr`.
template <class Sockaddr>
std::optional<SocketAddress> read_address(const Sockaddr& given) {
    const SocketAddress address(bytes_of(given));
    return address.size() == 0 || address.size() > sizeof given ? std::nullopt
                                                                : std::optional(address);
}

// `private_data_len` may be any byte; the array has room for it.
ConnectionParameters from_user(const rdma_ucm_conn_param& given, const RdmaId& id);

rdma_ucm_event_resp to_user(const RdmaEvent& event, bool is_datagram);

}  // namespace simverbs::rdma_cm
