// The answers of Linux Soft-RoCE (rdma_rxe of Linux 6.1, rdma-core 44, RoCE v2) answered to
// ibv_modify_qp in each state of an RC, UC and UD queue pair, shortened from a run of probes on
// that device.
//
// `required`: EINVAL without it. `optional`: accepted, and not needed. Anything else: EINVAL. Moves
// that are not listed were refused. SQE is missing: this device never enters it.
#pragma once

#include <array>
#include <string_view>

#include "simverbs/model/services.hpp"

namespace simverbs::oracle {

struct RxeAnswer {
    Service service;
    std::string_view from;
    std::string_view to;
    std::string_view required;
    std::string_view optional;
};

// clang-format off
inline constexpr auto kRxeAnswers = std::to_array<RxeAnswer>({
    {Service::kRc, "RESET", "RESET", "", ""},
    {Service::kRc, "RESET", "INIT", "ACCESS_FLAGS PKEY_INDEX PORT", ""},
    {Service::kRc, "INIT", "RESET", "", ""},
    {Service::kRc, "INIT", "INIT", "", "ACCESS_FLAGS PKEY_INDEX PORT"},
    {Service::kRc, "INIT", "RTR", "AV PATH_MTU RQ_PSN MIN_RNR_TIMER MAX_DEST_RD_ATOMIC DEST_QPN", "ACCESS_FLAGS PKEY_INDEX"},
    {Service::kRc, "INIT", "ERR", "", ""},
    {Service::kRc, "RTR", "RESET", "", ""},
    {Service::kRc, "RTR", "RTS", "TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC SQ_PSN", "CUR_STATE ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
    {Service::kRc, "RTR", "ERR", "", ""},
    {Service::kRc, "RTS", "RESET", "", ""},
    {Service::kRc, "RTS", "RTS", "", "CUR_STATE ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
    {Service::kRc, "RTS", "SQD", "", "EN_SQD_ASYNC_NOTIFY"},
    {Service::kRc, "RTS", "ERR", "", ""},
    {Service::kRc, "SQD", "RESET", "", ""},
    {Service::kRc, "SQD", "RTS", "", "CUR_STATE ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
    {Service::kRc, "SQD", "SQD", "", "ACCESS_FLAGS PKEY_INDEX PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MIN_RNR_TIMER MAX_DEST_RD_ATOMIC PATH_MIG_STATE"},
    {Service::kRc, "SQD", "ERR", "", ""},
    {Service::kRc, "ERR", "RESET", "", ""},
    {Service::kRc, "ERR", "ERR", "", ""},
    {Service::kUc, "RESET", "RESET", "", ""},
    {Service::kUc, "RESET", "INIT", "ACCESS_FLAGS PKEY_INDEX PORT", ""},
    {Service::kUc, "INIT", "RESET", "", ""},
    {Service::kUc, "INIT", "INIT", "", "ACCESS_FLAGS PKEY_INDEX PORT"},
    {Service::kUc, "INIT", "RTR", "AV PATH_MTU RQ_PSN DEST_QPN", "ACCESS_FLAGS PKEY_INDEX"},
    {Service::kUc, "INIT", "ERR", "", ""},
    {Service::kUc, "RTR", "RESET", "", ""},
    {Service::kUc, "RTR", "RTS", "SQ_PSN", "CUR_STATE ACCESS_FLAGS PATH_MIG_STATE"},
    {Service::kUc, "RTR", "ERR", "", ""},
    {Service::kUc, "RTS", "RESET", "", ""},
    {Service::kUc, "RTS", "RTS", "", "CUR_STATE ACCESS_FLAGS PATH_MIG_STATE"},
    {Service::kUc, "RTS", "SQD", "", "EN_SQD_ASYNC_NOTIFY"},
    {Service::kUc, "RTS", "ERR", "", ""},
    {Service::kUc, "SQD", "RESET", "", ""},
    {Service::kUc, "SQD", "RTS", "", "CUR_STATE ACCESS_FLAGS PATH_MIG_STATE"},
    {Service::kUc, "SQD", "SQD", "", "ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE"},
    {Service::kUc, "SQD", "ERR", "", ""},
    {Service::kUc, "ERR", "RESET", "", ""},
    {Service::kUc, "ERR", "ERR", "", ""},
    {Service::kUd, "RESET", "RESET", "", ""},
    {Service::kUd, "RESET", "INIT", "PKEY_INDEX PORT QKEY", ""},
    {Service::kUd, "INIT", "RESET", "", ""},
    {Service::kUd, "INIT", "INIT", "", "PKEY_INDEX PORT QKEY"},
    {Service::kUd, "INIT", "RTR", "", "PKEY_INDEX QKEY"},
    {Service::kUd, "INIT", "ERR", "", ""},
    {Service::kUd, "RTR", "RESET", "", ""},
    {Service::kUd, "RTR", "RTS", "SQ_PSN", "CUR_STATE QKEY"},
    {Service::kUd, "RTR", "ERR", "", ""},
    {Service::kUd, "RTS", "RESET", "", ""},
    {Service::kUd, "RTS", "RTS", "", "CUR_STATE QKEY"},
    {Service::kUd, "RTS", "SQD", "", "EN_SQD_ASYNC_NOTIFY"},
    {Service::kUd, "RTS", "ERR", "", ""},
    {Service::kUd, "SQD", "RESET", "", ""},
    {Service::kUd, "SQD", "RTS", "", "CUR_STATE QKEY"},
    {Service::kUd, "SQD", "SQD", "", "PKEY_INDEX QKEY"},
    {Service::kUd, "SQD", "ERR", "", ""},
    {Service::kUd, "ERR", "RESET", "", ""},
    {Service::kUd, "ERR", "ERR", "", ""},
});
// clang-format on

}  // namespace simverbs::oracle
