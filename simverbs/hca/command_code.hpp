// The codes of the commands of the control channel, and what all commands have in common.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
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
    // Posts, which ask the device only while a fault waits for one.
    kPostSend,
    kPostReceive,
    kPostSrqReceive,
    kPostWqReceive,
    // A poll that finds something, likewise.
    kPollCq,
};
constexpr bool is_post(CommandCode code) {
    return code >= CommandCode::kPostSend && code <= CommandCode::kPostWqReceive;
}
// A verb without "ibv_" of the name by which faults and records know it.
struct CommandName {
    CommandCode code;
    std::string_view verb;
};
inline constexpr auto kCommandNames = std::to_array<CommandName>({
    {CommandCode::kOpenContext, "open_device"},
    {CommandCode::kCloseContext, "close_device"},
    {CommandCode::kAllocatePd, "alloc_pd"},
    {CommandCode::kDeallocatePd, "dealloc_pd"},
    {CommandCode::kRegisterMr, "reg_mr"},
    {CommandCode::kDeregisterMr, "dereg_mr"},
    {CommandCode::kReregisterMr, "rereg_mr"},
    {CommandCode::kAllocateNullMr, "alloc_null_mr"},
    {CommandCode::kAdviseMr, "advise_mr"},
    {CommandCode::kAllocateDm, "alloc_dm"},
    {CommandCode::kFreeDm, "free_dm"},
    {CommandCode::kRegisterDmMr, "reg_dm_mr"},
    {CommandCode::kAllocateMw, "alloc_mw"},
    {CommandCode::kDeallocateMw, "dealloc_mw"},
    {CommandCode::kCreateChannel, "create_comp_channel"},
    {CommandCode::kDestroyChannel, "destroy_comp_channel"},
    {CommandCode::kCreateCq, "create_cq"},
    {CommandCode::kDestroyCq, "destroy_cq"},
    {CommandCode::kResizeCq, "resize_cq"},
    {CommandCode::kCreateQp, "create_qp"},
    {CommandCode::kModifyQp, "modify_qp"},
    {CommandCode::kQueryQp, "query_qp"},
    {CommandCode::kDestroyQp, "destroy_qp"},
    {CommandCode::kQueryPort, "query_port"},
    {CommandCode::kQueryGid, "query_gid"},
    {CommandCode::kQueryPkey, "query_pkey"},
    {CommandCode::kCreateAh, "create_ah"},
    {CommandCode::kDestroyAh, "destroy_ah"},
    {CommandCode::kAttachMulticast, "attach_mcast"},
    {CommandCode::kDetachMulticast, "detach_mcast"},
    {CommandCode::kCreateSrq, "create_srq"},
    {CommandCode::kModifySrq, "modify_srq"},
    {CommandCode::kQuerySrq, "query_srq"},
    {CommandCode::kDestroySrq, "destroy_srq"},
    {CommandCode::kOpenXrcd, "open_xrcd"},
    {CommandCode::kCloseXrcd, "close_xrcd"},
    {CommandCode::kOpenQp, "open_qp"},
    {CommandCode::kModifyCq, "modify_cq"},
    {CommandCode::kQueryClock, "query_rt_values"},
    {CommandCode::kQueryPd, "import_pd"},
    {CommandCode::kQueryMr, "import_mr"},
    {CommandCode::kReportMisuse, "misuse"},
    {CommandCode::kResolveEthernet, "resolve_eth"},
    {CommandCode::kCreateFlow, "create_flow"},
    {CommandCode::kDestroyFlow, "destroy_flow"},
    {CommandCode::kCreateWq, "create_wq"},
    {CommandCode::kModifyWq, "modify_wq"},
    {CommandCode::kDestroyWq, "destroy_wq"},
    {CommandCode::kCreateIndirectionTable, "create_rwq_ind_table"},
    {CommandCode::kDestroyIndirectionTable, "destroy_rwq_ind_table"},
    {CommandCode::kCreateCounters, "create_counters"},
    {CommandCode::kDestroyCounters, "destroy_counters"},
    {CommandCode::kAttachCounters, "attach_counters"},
    {CommandCode::kReadCounters, "read_counters"},
    {CommandCode::kCreateCompletionCounter, "create_comp_cntr"},
    {CommandCode::kDestroyCompletionCounter, "destroy_comp_cntr"},
    {CommandCode::kSetCompletionCounter, "set_comp_cntr"},
    {CommandCode::kIncrementCompletionCounter, "inc_comp_cntr"},
    {CommandCode::kAttachCompletionCounter, "qp_attach_comp_cntr"},
    {CommandCode::kPostSend, "post_send"},
    {CommandCode::kPostReceive, "post_recv"},
    {CommandCode::kPostSrqReceive, "post_srq_recv"},
    {CommandCode::kPostWqReceive, "post_wq_recv"},
    {CommandCode::kPollCq, "poll_cq"},
});
static_assert(std::all_of(kCommandNames.begin(), kCommandNames.end(), [](const CommandName& row) {
    return &row - kCommandNames.data() == static_cast<std::ptrdiff_t>(row.code);
}));
constexpr std::string_view to_string(CommandCode code) {
    return kCommandNames[static_cast<std::size_t>(code)].verb;
}

// A ring that the device made. `place` is its address where driver and device share a process;
// else an offset in the memory whose descriptor comes with the reply, which other rings may share.
struct RingReply {
    std::uint64_t place = 0;
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
