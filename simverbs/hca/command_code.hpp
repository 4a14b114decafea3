// What a command of the control channel is called, and what all commands have in common.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace simverbs {

enum class CommandCode : std::uint32_t {
    kOpenContext,
    kCloseContext,
    kAllocatePd,
    kDeallocatePd,
    kRegisterMr,
    kDeregisterMr,
    kReregisterMr,
    kAllocateNullMr,
    kAdviseMr,
    kAllocateDm,
    kFreeDm,
    kRegisterDmMr,
    kAllocateMw,
    kDeallocateMw,
    kCreateChannel,
    kDestroyChannel,
    kCreateCq,
    kDestroyCq,
    kResizeCq,
    kCreateQp,
    kModifyQp,
    kQueryQp,
    kDestroyQp,
    kQueryPort,
    kQueryGid,
    kQueryPkey,
    kCreateAh,
    kDestroyAh,
    kAttachMulticast,
    kDetachMulticast,
    kCreateSrq,
    kModifySrq,
    kQuerySrq,
    kDestroySrq,
    kOpenXrcd,
    kCloseXrcd,
    kOpenQp,
    kModifyCq,
    kQueryClock,
    kQueryPd,
    kQueryMr,
    kReportMisuse,
    kResolveEthernet,
    kCreateFlow,
    kDestroyFlow,
    kCreateWq,
    kModifyWq,
    kDestroyWq,
    kCreateIndirectionTable,
    kDestroyIndirectionTable,
    kCreateCounters,
    kDestroyCounters,
    kAttachCounters,
    kReadCounters,
    kCreateCompletionCounter,
    kDestroyCompletionCounter,
    kSetCompletionCounter,
    kIncrementCompletionCounter,
    kAttachCompletionCounter,
};
inline constexpr auto kCommandNames = std::to_array<std::string_view>({"open_device",
                                                                       "close_device",
                                                                       "alloc_pd",
                                                                       "dealloc_pd",
                                                                       "reg_mr",
                                                                       "dereg_mr",
                                                                       "rereg_mr",
                                                                       "alloc_null_mr",
                                                                       "advise_mr",
                                                                       "alloc_dm",
                                                                       "free_dm",
                                                                       "reg_dm_mr",
                                                                       "alloc_mw",
                                                                       "dealloc_mw",
                                                                       "create_comp_channel",
                                                                       "destroy_comp_channel",
                                                                       "create_cq",
                                                                       "destroy_cq",
                                                                       "resize_cq",
                                                                       "create_qp",
                                                                       "modify_qp",
                                                                       "query_qp",
                                                                       "destroy_qp",
                                                                       "query_port",
                                                                       "query_gid",
                                                                       "query_pkey",
                                                                       "create_ah",
                                                                       "destroy_ah",
                                                                       "attach_mcast",
                                                                       "detach_mcast",
                                                                       "create_srq",
                                                                       "modify_srq",
                                                                       "query_srq",
                                                                       "destroy_srq",
                                                                       "open_xrcd",
                                                                       "close_xrcd",
                                                                       "open_qp",
                                                                       "modify_cq",
                                                                       "query_rt_values",
                                                                       "import_pd",
                                                                       "import_mr",
                                                                       "misuse",
                                                                       "resolve_eth",
                                                                       "create_flow",
                                                                       "destroy_flow",
                                                                       "create_wq",
                                                                       "modify_wq",
                                                                       "destroy_wq",
                                                                       "create_rwq_ind_table",
                                                                       "destroy_rwq_ind_table",
                                                                       "create_counters",
                                                                       "destroy_counters",
                                                                       "attach_counters",
                                                                       "read_counters",
                                                                       "create_comp_cntr",
                                                                       "destroy_comp_cntr",
                                                                       "set_comp_cntr",
                                                                       "inc_comp_cntr",
                                                                       "qp_attach_comp_cntr"});
constexpr std::string_view to_string(CommandCode code) {
    return kCommandNames[static_cast<std::size_t>(code)];
}

// A ring that the device made: mapped by address where driver and device share a process, by
// descriptor (one that comes with the reply) where they do not.
struct RingReply {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};

struct HandleReply {
    std::uint32_t handle = 0;
};
struct EmptyReply {};

template <class T>
concept Command =
    std::is_trivially_copyable_v<T> && std::is_trivially_copyable_v<typename T::Reply> && requires {
    { T::kCode } -> std::convertible_to<CommandCode>;
};

}  // namespace simverbs
