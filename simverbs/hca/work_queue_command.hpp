// Commands about work queues and the tables that spread frames over them.
#pragma once

#include <cstdint>

#include "simverbs/hca/command_code.hpp"

namespace simverbs {

// The handle is the number of the queue (ibv_wq.wq_num), which its completions carry.
struct CreateWqReply {
    std::uint32_t handle = 0;
    std::uint32_t requests = 0;
    std::uint32_t segments = 0;
    RingReply ring;
};
// EOPNOTSUPP for flags that the device has not.
struct CreateWq {
    static constexpr CommandCode kCode = CommandCode::kCreateWq;
    using Reply = CreateWqReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    std::uint32_t cq = 0;
    std::uint32_t requests = 0;
    std::uint32_t segments = 0;
    std::uint32_t flags = 0;  // FrameOffload
};

// EOPNOTSUPP for all flags but kCvlanStripping, as Linux mlx5.
struct ModifyWq {
    static constexpr CommandCode kCode = CommandCode::kModifyWq;
    using Reply = HandleReply;  // the state that it is in now, enum ibv_wq_state
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    std::uint32_t mask = 0;           // WqAttr
    std::uint32_t state = 0;          // enum ibv_wq_state
    std::uint32_t current_state = 0;  // enum ibv_wq_state
    std::uint32_t flags_mask = 0;     // FrameOffload: those that change
    std::uint32_t flags = 0;          // FrameOffload: what they become
};

struct DestroyWq {
    static constexpr CommandCode kCode = CommandCode::kDestroyWq;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

struct CreateIndirectionTable {
    static constexpr CommandCode kCode = CommandCode::kCreateIndirectionTable;
    using Reply = HandleReply;
    std::uint32_t context = 0;
    std::uint32_t log_size = 0;
    std::uint64_t queues = 0;  // address of 2^log_size handles, uint32, in the client's memory
};

struct DestroyIndirectionTable {
    static constexpr CommandCode kCode = CommandCode::kDestroyIndirectionTable;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

}  // namespace simverbs
