// How mlx5 devices lay a send request out in the queue, and so how much inline data it has room
// for. rdma-core v64 providers/mlx5/verbs.c: _sq_overhead(), mlx5_calc_send_wqe(); sizes of the
// segments are those of providers/mlx5/mlx5dv.h and wqe.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/services.hpp"

namespace simverbs {

// The operations for which a send queue is made, a bit for each WrOpcode.
using SendOperations = std::uint32_t;

constexpr SendOperations operation(WrOpcode opcode) {
    return SendOperations{1} << static_cast<unsigned>(opcode);
}

// ibv_create_qp(3) names none, so there is room for all that the service has.
inline constexpr SendOperations kAllSendOperations = ~SendOperations{0};

namespace detail {

constexpr std::uint32_t operation_header_bytes(SendOperations operations) {
    constexpr std::uint32_t kControl = 16;
    constexpr std::uint32_t kRemoteAddress = 16;
    constexpr std::uint32_t kAtomic = 16;
    // mlx5_wqe_umr_ctrl_seg, mlx5_wqe_mkey_context_seg and a block of translations.
    constexpr std::uint32_t kWindow = 48 + 64 + 64;
    constexpr SendOperations kWindows =
        operation(WrOpcode::kBindMw) | operation(WrOpcode::kLocalInv);
    constexpr SendOperations kAtomics =
        operation(WrOpcode::kAtomicCmpAndSwp) | operation(WrOpcode::kAtomicFetchAndAdd);
    constexpr SendOperations kRdma = operation(WrOpcode::kRdmaWrite) |
                                     operation(WrOpcode::kRdmaWriteWithImm) |
                                     operation(WrOpcode::kRdmaRead);
    if ((operations & kWindows) != 0) {
        return kControl + kWindow;
    }
    if ((operations & kAtomics) != 0) {
        return kControl + kRemoteAddress + kAtomic;
    }
    return kControl + ((operations & kRdma) != 0 ? kRemoteAddress : 0);
}

}  // namespace detail

// Bytes of a request that are neither segments nor inline data.
constexpr std::uint32_t send_header_bytes(Service service, SendOperations operations) {
    constexpr std::uint32_t kControl = 16;
    constexpr std::uint32_t kAddressVector = 48;
    constexpr std::uint32_t kEthernet = 32;
    constexpr std::uint32_t kXrc = 16;
    switch (service) {
        case Service::kUd:
            return kControl + kAddressVector;
        case Service::kRawPacket:
            return kControl + kEthernet;
        case Service::kXrcIni:
        case Service::kXrcTgt:
            return detail::operation_header_bytes(operations) + kXrc;
        default:
            return detail::operation_header_bytes(operations);
    }
}

struct SendRequestRoom {
    std::uint32_t segments = 0;
    std::uint32_t inline_bytes = 0;
    std::uint32_t tso_header_bytes = 0;
};

// Returns the inline bytes of a request that has room for `asked`: it fills blocks of 64 bytes, and
// what is left of the last one is granted, too.
constexpr std::uint32_t inline_bytes_in_blocks(std::uint32_t header_bytes,
                                               const SendRequestRoom& asked) {
    constexpr std::uint32_t kBlock = 64;
    constexpr std::uint32_t kSegment = 16;
    constexpr std::uint32_t kInlineHeader = 4;
    const auto aligned = [](std::uint32_t bytes, std::uint32_t unit) {
        return (bytes + unit - 1) / unit * unit;
    };
    const std::uint32_t with_segments =
        header_bytes + aligned(asked.tso_header_bytes, kSegment) + asked.segments * kSegment;
    const std::uint32_t with_inline =
        asked.inline_bytes == 0
            ? 0
            : header_bytes + aligned(kInlineHeader + asked.inline_bytes, kSegment);
    return aligned(std::max(with_segments, with_inline), kBlock) - header_bytes - kInlineHeader;
}

}  // namespace simverbs
