// Members and values of the ABI that are younger than Debian 12's headers (rdma-core 44), up to
// rdma-core 64, so that a program compiled against any of them finds what it expects at the offset
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

inline constexpr auto kWrFlush = static_cast<ibv_wr_opcode>(14);                  // 45
inline constexpr auto kWcFlush = static_cast<ibv_wc_opcode>(8);                   // 45
inline constexpr unsigned kAccessFlushGlobal = 1U << 8;                           // 45
inline constexpr unsigned kAccessFlushPersistent = 1U << 9;                       // 45
inline constexpr std::uint64_t kQpExWithFlush = 1U << 11;                         // 45
inline constexpr auto kEventDeviceSpeedChange = static_cast<ibv_event_type>(20);  // 62

}  // namespace simverbs::abi

// Exported with a public prototype, but in the private nodes (49).
SIMVERBS_ABI const char* simverbs_abi_ibv_wr_opcode_str(ibv_wr_opcode opcode);
