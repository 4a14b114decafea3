// Commands about ports, addresses and what steers packets.
#pragma once

#include <array>
#include <cstdint>

#include "fabric/net/ethernet.hpp"

#include "simverbs/hca/command_code.hpp"
#include "simverbs/transport/qp_attributes.hpp"
#include "simverbs/wire/ethernet_headers.hpp"

namespace simverbs {

inline constexpr std::uint32_t kMaxCounters = 32;  // of one object

struct QueryPortReply {
    std::uint32_t state = 0;  // enum ibv_port_state
    std::uint32_t physical_state = 0;
    std::uint32_t max_mtu = 0;
    std::uint32_t active_mtu = 0;
    std::uint32_t gid_entries = 0;
    std::uint32_t bad_pkey_count = 0;
    std::uint32_t bad_qkey_count = 0;
    std::uint16_t pkey_entries = 0;
    std::uint16_t lid = 0;
    std::uint16_t sm_lid = 0;
    std::uint8_t lmc = 0;
    std::uint8_t sm_sl = 0;
    std::uint32_t width = 0;
    std::uint32_t speed = 0;
    std::uint8_t link_layer = 0;  // IBV_LINK_LAYER_*
    std::uint8_t is_sm = 0;       // a subnet manager holds the port
};
struct QueryPort {
    static constexpr CommandCode kCode = CommandCode::kQueryPort;
    using Reply = QueryPortReply;
    std::uint32_t context = 0;
    std::uint32_t port = 0;
};

struct QueryGidReply {
    std::array<std::uint8_t, 16> gid{};  // zero: the entry holds nothing
    std::uint32_t type = 0;              // enum ibv_gid_type
    std::uint32_t ndev = 0;              // index of the network interface; 0: none
};
struct QueryGid {
    static constexpr CommandCode kCode = CommandCode::kQueryGid;
    using Reply = QueryGidReply;
    std::uint32_t context = 0;
    std::uint32_t port = 0;
    std::uint32_t index = 0;
};

struct QueryPkeyReply {
    std::uint16_t pkey = 0;
};
struct QueryPkey {
    static constexpr CommandCode kCode = CommandCode::kQueryPkey;
    using Reply = QueryPkeyReply;
    std::uint32_t context = 0;
    std::uint32_t port = 0;
    std::uint32_t index = 0;
};

struct CreateAh {
    static constexpr CommandCode kCode = CommandCode::kCreateAh;
    using Reply = HandleReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    AddressVector path;
};

struct DestroyAh {
    static constexpr CommandCode kCode = CommandCode::kDestroyAh;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

struct AttachMulticast {
    static constexpr CommandCode kCode = CommandCode::kAttachMulticast;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;  // of the queue pair
    std::array<std::uint8_t, 16> gid{};
    std::uint16_t lid = 0;
};

struct DetachMulticast {
    static constexpr CommandCode kCode = CommandCode::kDetachMulticast;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;  // of the queue pair
    std::array<std::uint8_t, 16> gid{};
    std::uint16_t lid = 0;
};

// Finds the station that a path leads to, and in which VLAN (0: none). Errors as of resolve_path();
// EINVAL on InfiniBand.
struct ResolveEthernetReply {
    fabric::MacAddress mac;
    std::uint16_t vlan = 0;
};
struct ResolveEthernet {
    static constexpr CommandCode kCode = CommandCode::kResolveEthernet;
    using Reply = ResolveEthernetReply;
    std::uint32_t context = 0;
    AddressVector path;
};

// Frames that match go to the queue pair; a rule for what is sent lets them pass, and the queue
// pair only says which device it is (ibv_create_flow(3)). EINVAL for one of another service than
// raw packets, and for a port that has none; EOPNOTSUPP for UD, and on a device that does not
// steer; ENOMEM for a rule too many.
struct CreateFlow {
    static constexpr CommandCode kCode = CommandCode::kCreateFlow;
    using Reply = HandleReply;
    std::uint32_t context = 0;
    std::uint32_t qp = 0;
    std::uint32_t type = 0;  // enum ibv_flow_attr_type
    std::uint16_t priority = 0;
    std::uint8_t port = 1;
    std::uint8_t traps = 1;    // 0: the next rule is tried too
    std::uint8_t drops = 0;    // 1: instead of delivering
    std::uint8_t egress = 0;   // 1: for what the port sends, of a normal rule
    std::uint32_t layers = 0;  // FrameLayer
    FrameFields value;
    FrameFields mask;
    std::uint32_t counters = 0;  // 0: none
    std::uint32_t tag = 0;       // 24 bits, of a normal rule
};

struct DestroyFlow {
    static constexpr CommandCode kCode = CommandCode::kDestroyFlow;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

struct CreateCounters {
    static constexpr CommandCode kCode = CommandCode::kCreateCounters;
    using Reply = HandleReply;
    std::uint32_t context = 0;
};

struct DestroyCounters {
    static constexpr CommandCode kCode = CommandCode::kDestroyCounters;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

// The kind of count at an index; several at one index add up. EBUSY once a rule counts.
struct AttachCounters {
    static constexpr CommandCode kCode = CommandCode::kAttachCounters;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    std::uint32_t what = 0;  // enum ibv_counter_description
    std::uint32_t index = 0;
};

struct ReadCountersReply {
    std::uint32_t used = 0;  // values up to the highest index
    std::array<std::uint64_t, kMaxCounters> values{};
};
struct ReadCounters {
    static constexpr CommandCode kCode = CommandCode::kReadCounters;
    using Reply = ReadCountersReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

}  // namespace simverbs
