// Members and values of the ABI that are younger than Debian 12's headers (rdma-core 44), up to
// rdma-core 65, so that a program compiled against any of them finds what it expects at the offset
// it expects. Only declarations, checked in layout.cpp; the base is always the distribution's own
// header.
#pragma once

#include <cstddef>
#include <cstdint>

#include <infiniband/verbs.h>

#include "simverbs/abi/export.hpp"

namespace simverbs::abi {

using Slot = void (*)();

// struct verbs_context grows towards lower addresses: 648 bytes in release 44, 696 in release 64.
// The slots are null: a client takes a null slot for a feature that is absent.
struct NewerVerbsContext {
    Slot free_buf;             // 64
    Slot alloc_buf;            // 64
    Slot dm_export_dmabuf_fd;  // 62
    Slot reg_mr_ex;            // 59
    Slot dealloc_dmah;         // 59
    Slot alloc_dmah;           // 59
    verbs_context older;
};

// struct ibv_qp_ex with ibv_wr_flush() (45): 360 bytes.
struct NewerQpEx {
    ibv_qp_ex older;
    void (*wr_flush)(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_addr,
                     std::size_t length, std::uint8_t type, std::uint8_t level);
};

// struct ibv_port_attr with the speeds that do not fit into active_speed (49): 56 bytes. What a
// client asks for says how much of it may be written: 48, 52 or 56 bytes.
struct NewerPortAttr {
    ibv_port_attr older;
    std::uint32_t active_speed_ex;
};

// struct ibv_mr_init_attr (59) with the handle of a buffer (64), which only the mask's bit says to
// be there: 64 bytes without.
struct Buffer;
struct MrInitAttr {
    std::size_t length;
    int access;
    std::uint64_t comp_mask;  // kRegMr*
    std::uint64_t iova;
    void* address;
    int descriptor;
    std::uint64_t descriptor_offset;
    void* dma_handle;
    Buffer* buffer;
};
inline constexpr std::uint64_t kRegMrIova = 1U << 0;              // enum ibv_mr_init_attr_mask
inline constexpr std::uint64_t kRegMrAddress = 1U << 1;           //
inline constexpr std::uint64_t kRegMrDescriptor = 1U << 2;        //
inline constexpr std::uint64_t kRegMrDescriptorOffset = 1U << 3;  //
inline constexpr std::uint64_t kRegMrBuffer = 1U << 5;            // 64

// Completion counters (65): struct ibv_comp_cntr and its attributes.
struct CompCntr {
    ibv_context* context;
    std::uint32_t handle;
};
struct CompCntrCaps {
    std::uint64_t max_value;
    std::uint32_t max_counters;
    std::uint32_t supported_qp_attach_ops;
};
struct CompCntrInitAttr {
    std::uint32_t comp_mask;
    int type;  // enum ibv_comp_cntr_type
    std::uint32_t flags;
};
struct QpAttachCompCntrAttr {
    std::uint32_t comp_mask;
    std::uint32_t op_mask;
};

inline constexpr auto kWrFlush = static_cast<ibv_wr_opcode>(14);                  // 45
inline constexpr auto kWcFlush = static_cast<ibv_wc_opcode>(8);                   // 45
inline constexpr unsigned kAccessFlushGlobal = 1U << 8;                           // 45
inline constexpr unsigned kAccessFlushPersistent = 1U << 9;                       // 45
inline constexpr std::uint64_t kQpExWithFlush = 1U << 11;                         // 45
inline constexpr unsigned kParentDomainAllowUnprotected = 1U << 2;                // 64
inline constexpr auto kEventDeviceSpeedChange = static_cast<ibv_event_type>(20);  // 62

}  // namespace simverbs::abi

// Exported with a public prototype, but in the private nodes (49).
SIMVERBS_ABI const char* simverbs_abi_ibv_wr_opcode_str(ibv_wr_opcode opcode);
