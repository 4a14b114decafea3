// Commands about memory: regions, windows, device memory.
#pragma once

#include <cstdint>

#include "simverbs/hca/command_code.hpp"

namespace simverbs {

struct RegisterMrReply {
    std::uint32_t handle = 0;
    std::uint32_t lkey = 0;
    std::uint32_t rkey = 0;
};
struct RegisterMr {
    static constexpr CommandCode kCode = CommandCode::kRegisterMr;
    using Reply = RegisterMrReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    std::uint64_t address = 0;  // where the bytes are
    std::uint64_t length = 0;
    std::uint64_t iova = 0;  // how work requests name the first of them
    std::uint32_t access = 0;
};

struct DeregisterMr {
    static constexpr CommandCode kCode = CommandCode::kDeregisterMr;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

// Changes what `flags` (enum ibv_rereg_mr_flags) names; the rest is not looked at.
struct ReregisterMr {
    static constexpr CommandCode kCode = CommandCode::kReregisterMr;
    using Reply = RegisterMrReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
    std::uint32_t flags = 0;
    std::uint32_t pd = 0;
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::uint64_t iova = 0;
    std::uint32_t access = 0;
};
inline constexpr std::uint32_t kReregisterTranslation = 1U << 0;
inline constexpr std::uint32_t kReregisterPd = 1U << 1;
inline constexpr std::uint32_t kReregisterAccess = 1U << 2;
inline constexpr std::uint32_t kReregisterAll =
    kReregisterTranslation | kReregisterPd | kReregisterAccess;

// A region without memory behind it: reads give zeros, writes go nowhere. Only its lkey opens it.
struct AllocateNullMr {
    static constexpr CommandCode kCode = CommandCode::kAllocateNullMr;
    using Reply = RegisterMrReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
};

// Asks whether a range of an on-demand region could be fetched ahead; nothing has to be.
struct AdviseMrReply {
    std::uint64_t address = 0;  // where its bytes are
};
struct AdviseMr {
    static constexpr CommandCode kCode = CommandCode::kAdviseMr;
    using Reply = AdviseMrReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    std::uint32_t lkey = 0;
    std::uint32_t for_writing = 0;
    std::uint64_t address = 0;
    std::uint64_t length = 0;
};

struct AllocateDmReply {
    std::uint32_t handle = 0;
    RingReply memory;
};
struct AllocateDm {
    static constexpr CommandCode kCode = CommandCode::kAllocateDm;
    using Reply = AllocateDmReply;
    std::uint32_t context = 0;
    std::uint32_t log_alignment = 0;
    std::uint64_t length = 0;
};

struct FreeDm {
    static constexpr CommandCode kCode = CommandCode::kFreeDm;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

// Zero-based: work requests name bytes by their offset in the region.
struct RegisterDmMr {
    static constexpr CommandCode kCode = CommandCode::kRegisterDmMr;
    using Reply = RegisterMrReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    std::uint32_t dm = 0;
    std::uint32_t access = 0;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

struct AllocateMwReply {
    std::uint32_t handle = 0;
    std::uint32_t rkey = 0;
};
struct AllocateMw {
    static constexpr CommandCode kCode = CommandCode::kAllocateMw;
    using Reply = AllocateMwReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    std::uint32_t type = 0;  // enum ibv_mw_type
};

struct DeallocateMw {
    static constexpr CommandCode kCode = CommandCode::kDeallocateMw;
    using Reply = EmptyReply;
    std::uint32_t context = 0;
    std::uint32_t handle = 0;
};

struct QueryMrReply {
    std::uint32_t lkey = 0;
    std::uint32_t rkey = 0;
    std::uint64_t length = 0;
};
struct QueryMr {
    static constexpr CommandCode kCode = CommandCode::kQueryMr;
    using Reply = QueryMrReply;
    std::uint32_t context = 0;
    std::uint32_t pd = 0;
    std::uint32_t handle = 0;
};

}  // namespace simverbs
