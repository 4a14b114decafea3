// A second transcription of the queue pair state tables, in another shape than the first: for each
// service a matrix of the moves that modify_qp may ask for, and a list of attributes a move.
//
// Read from the Linux core's table (drivers/infiniband/core/verbs.c) and IBA 11.2.5.2. Where the
// two differ: RESET to ERR is the IBA's; raw packets are only in Linux; a queue pair that never
// enters SQE (RC, XRC) has no moves out of it.
#pragma once

#include <array>
#include <string_view>

#include "simverbs/model/services.hpp"

namespace simverbs::oracle {

struct ModifyMatrix {
    Service service;
    // A row a state that the QP is in, a column a state asked for, in the order of enum
    // ibv_qp_state: RESET INIT RTR RTS SQD SQE ERR.
    std::array<std::string_view, 7> rows;
};

inline constexpr std::array<std::string_view, 7> kWithoutSqe = {
    "xx....x",  // RESET
    "xxx...x",  // INIT
    "x..x..x",  // RTR
    "x..xx.x",  // RTS
    "x..xx.x",  // SQD
    ".......",  // SQE
    "x.....x",  // ERR
};
inline constexpr std::array<std::string_view, 7> kWithSqe = {
    "xx....x",  // RESET
    "xxx...x",  // INIT
    "x..x..x",  // RTR
    "x..xx.x",  // RTS
    "x..xx.x",  // SQD
    "x..x..x",  // SQE
    "x.....x",  // ERR
};
inline constexpr auto kModifyMatrices = std::to_array<ModifyMatrix>({
    {Service::kRc, kWithoutSqe},
    {Service::kUc, kWithSqe},
    {Service::kUd, kWithSqe},
    {Service::kXrcIni, kWithoutSqe},
    {Service::kXrcTgt, kWithoutSqe},
    {Service::kRawPacket, kWithSqe},
});

struct MoveAttrs {
    std::string_view from;
    std::string_view to;
    std::string_view required;
    std::string_view optional;
};
struct ServiceAttrs {
    Service service;
    std::array<MoveAttrs, 8> moves;  // moves that are not listed take no attribute
};

// clang-format off
inline constexpr auto kServiceAttrs = std::to_array<ServiceAttrs>({
    {Service::kRc, {{
        {"RESET", "INIT", "PKEY_INDEX PORT ACCESS_FLAGS", ""},
        {"INIT", "INIT", "", "PKEY_INDEX PORT ACCESS_FLAGS"},
        {"INIT", "RTR", "AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER",
                        "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
        {"RTR", "RTS", "TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC",
                       "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
        {"RTS", "RTS", "", "CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE MIN_RNR_TIMER"},
        {"RTS", "SQD", "", "EN_SQD_ASYNC_NOTIFY"},
        {"SQD", "RTS", "", "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
        {"SQD", "SQD", "", "PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC "
                           "ALT_PATH ACCESS_FLAGS PKEY_INDEX MIN_RNR_TIMER PATH_MIG_STATE"},
    }}},
    {Service::kUc, {{
        {"RESET", "INIT", "PKEY_INDEX PORT ACCESS_FLAGS", ""},
        {"INIT", "INIT", "", "PKEY_INDEX PORT ACCESS_FLAGS"},
        {"INIT", "RTR", "AV PATH_MTU DEST_QPN RQ_PSN", "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
        {"RTR", "RTS", "SQ_PSN", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
        {"RTS", "RTS", "", "CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE"},
        {"RTS", "SQD", "", "EN_SQD_ASYNC_NOTIFY"},
        {"SQD", "RTS", "", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
        {"SQD", "SQD", "", "AV ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE"},
    }}},
    {Service::kUd, {{
        {"RESET", "INIT", "PKEY_INDEX PORT QKEY", ""},
        {"INIT", "INIT", "", "PKEY_INDEX PORT QKEY"},
        {"INIT", "RTR", "", "PKEY_INDEX QKEY"},
        {"RTR", "RTS", "SQ_PSN", "CUR_STATE QKEY"},
        {"RTS", "RTS", "", "CUR_STATE QKEY"},
        {"RTS", "SQD", "", "EN_SQD_ASYNC_NOTIFY"},
        {"SQD", "RTS", "", "CUR_STATE QKEY"},
        {"SQD", "SQD", "", "PKEY_INDEX QKEY"},
    }}},
    {Service::kXrcIni, {{
        {"RESET", "INIT", "PKEY_INDEX PORT ACCESS_FLAGS", ""},
        {"INIT", "INIT", "", "PKEY_INDEX PORT ACCESS_FLAGS"},
        {"INIT", "RTR", "AV PATH_MTU DEST_QPN RQ_PSN", "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
        {"RTR", "RTS", "TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC",
                       "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
        {"RTS", "RTS", "", "CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE"},
        {"RTS", "SQD", "", "EN_SQD_ASYNC_NOTIFY"},
        {"SQD", "RTS", "", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
        {"SQD", "SQD", "", "PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC ALT_PATH "
                           "ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE"},
    }}},
    {Service::kXrcTgt, {{
        {"RESET", "INIT", "PKEY_INDEX PORT ACCESS_FLAGS", ""},
        {"INIT", "INIT", "", "PKEY_INDEX PORT ACCESS_FLAGS"},
        {"INIT", "RTR", "AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER",
                        "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
        {"RTR", "RTS", "TIMEOUT SQ_PSN",
                       "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
        {"RTS", "RTS", "", "CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE MIN_RNR_TIMER"},
        {"RTS", "SQD", "", "EN_SQD_ASYNC_NOTIFY"},
        {"SQD", "RTS", "", "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
        {"SQD", "SQD", "", "PORT AV TIMEOUT MAX_DEST_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX "
                           "MIN_RNR_TIMER PATH_MIG_STATE"},
    }}},
    {Service::kRawPacket, {{
        {"RESET", "INIT", "PORT", ""},
        {"INIT", "INIT", "", ""},
        {"INIT", "RTR", "", ""},
        {"RTR", "RTS", "", "RATE_LIMIT"},
        {"RTS", "RTS", "", "RATE_LIMIT"},
        {"RTS", "SQD", "", ""},
        {"SQD", "RTS", "", ""},
        {"SQD", "SQD", "", ""},
    }}},
});
// SQE is left only by RC's unreliable siblings, and with fewer attributes than SQD.
struct SqeAttrs {
    Service service;
    std::string_view optional;
};
inline constexpr auto kSqeToRts = std::to_array<SqeAttrs>({
    {Service::kUc, "CUR_STATE ACCESS_FLAGS"},
    {Service::kUd, "CUR_STATE QKEY"},
    {Service::kRawPacket, ""},
});
// clang-format on

// Where what the consumer did not ask for leads, by the state it happens in (same order as above):
// Q = SQE, E = ERR, D = SQD again (drained), . = nowhere.
struct AsyncMoves {
    Service service;
    std::string_view send_error;
    std::string_view qp_error;
    std::string_view drained;
};
inline constexpr auto kAsyncMoves = std::to_array<AsyncMoves>({
    {Service::kRc, "...EE..", ".EEEE..", "....D.."},
    {Service::kUc, "...QQ..", ".EEEEE.", "....D.."},
    {Service::kUd, "...QQ..", ".EEEEE.", "....D.."},
    {Service::kXrcIni, "...EE..", ".EEEE..", "....D.."},
    {Service::kXrcTgt, ".......", ".EEEE..", "....D.."},
    {Service::kRawPacket, "...QQ..", ".EEEEE.", "....D.."},
});

}  // namespace simverbs::oracle
