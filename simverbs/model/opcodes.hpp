// The opcodes of work requests and of their completions.
//
// Same values as enum ibv_wr_opcode, enum ibv_wc_opcode and enum ibv_wc_flags. DRIVER1 and tag
// matching are not modelled: the enumerators exist so that they can be refused by name.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "simverbs/model/access.hpp"
#include "simverbs/model/enum_set.hpp"
#include "simverbs/model/services.hpp"
#include "simverbs/model/wire_opcodes.hpp"

namespace simverbs {

enum class WrOpcode : std::uint8_t {
    kRdmaWrite = 0,
    kRdmaWriteWithImm = 1,
    kSend = 2,
    kSendWithImm = 3,
    kRdmaRead = 4,
    kAtomicCmpAndSwp = 5,
    kAtomicFetchAndAdd = 6,
    kLocalInv = 7,
    kBindMw = 8,
    kSendWithInv = 9,
    kTso = 10,
    kDriver1 = 11,
    kFlush = 14,
    kAtomicWrite = 15,
};

enum class WcOpcode : std::uint8_t {
    kSend = 0,
    kRdmaWrite = 1,
    kRdmaRead = 2,
    kCompSwap = 3,
    kFetchAdd = 4,
    kBindMw = 5,
    kLocalInv = 6,
    kTso = 7,
    kFlush = 8,
    kAtomicWrite = 9,
    kRecv = 128,
    kRecvRdmaWithImm = 129,
    kTmAdd = 130,
    kTmDel = 131,
    kTmSync = 132,
    kTmRecv = 133,
    kTmNoTag = 134,
    kDriver1 = 135,
    kDriver2 = 136,
    kDriver3 = 137,
};
struct WcOpcodeName {
    WcOpcode opcode;
    std::string_view name;
};
inline constexpr auto kWcOpcodeNames = std::to_array<WcOpcodeName>({
    {WcOpcode::kSend, "SEND"},          {WcOpcode::kRdmaWrite, "RDMA_WRITE"},
    {WcOpcode::kRdmaRead, "RDMA_READ"}, {WcOpcode::kCompSwap, "COMP_SWAP"},
    {WcOpcode::kFetchAdd, "FETCH_ADD"}, {WcOpcode::kBindMw, "BIND_MW"},
    {WcOpcode::kLocalInv, "LOCAL_INV"}, {WcOpcode::kTso, "TSO"},
    {WcOpcode::kFlush, "FLUSH"},        {WcOpcode::kAtomicWrite, "ATOMIC_WRITE"},
    {WcOpcode::kRecv, "RECV"},          {WcOpcode::kRecvRdmaWithImm, "RECV_RDMA_WITH_IMM"},
    {WcOpcode::kTmAdd, "TM_ADD"},       {WcOpcode::kTmDel, "TM_DEL"},
    {WcOpcode::kTmSync, "TM_SYNC"},     {WcOpcode::kTmRecv, "TM_RECV"},
    {WcOpcode::kTmNoTag, "TM_NO_TAG"},  {WcOpcode::kDriver1, "DRIVER1"},
    {WcOpcode::kDriver2, "DRIVER2"},    {WcOpcode::kDriver3, "DRIVER3"},
});
constexpr std::string_view to_string(WcOpcode opcode) {
    for (const WcOpcodeName& row : kWcOpcodeNames) {
        if (row.opcode == opcode) {
            return row.name;
        }
    }
    return "unknown";
}

enum class WcFlag : std::uint32_t {
    kGrh = 1U << 0,
    kWithImm = 1U << 1,
    kIpCsumOk = 1U << 2,
    kWithInv = 1U << 3,
    kTmSyncReq = 1U << 4,
    kTmMatch = 1U << 5,
    kTmDataValid = 1U << 6,
};
template <>
inline constexpr bool kIsSetMember<WcFlag> = true;
using WcFlags = EnumSet<WcFlag>;
constexpr std::string_view to_string(WcFlag flag) {
    switch (flag) {
        case WcFlag::kGrh:
            return "GRH";
        case WcFlag::kWithImm:
            return "WITH_IMM";
        case WcFlag::kIpCsumOk:
            return "IP_CSUM_OK";
        case WcFlag::kWithInv:
            return "WITH_INV";
        case WcFlag::kTmSyncReq:
            return "TM_SYNC_REQ";
        case WcFlag::kTmMatch:
            return "TM_MATCH";
        case WcFlag::kTmDataValid:
            break;
    }
    return "TM_DATA_VALID";
}

enum class SendFlag : std::uint32_t {
    kFence = 1U << 0,
    kSignaled = 1U << 1,
    kSolicited = 1U << 2,
    kInline = 1U << 3,
    kIpCsum = 1U << 4,
};
template <>
inline constexpr bool kIsSetMember<SendFlag> = true;
using SendFlags = EnumSet<SendFlag>;
constexpr std::string_view to_string(SendFlag flag) {
    switch (flag) {
        case SendFlag::kFence:
            return "FENCE";
        case SendFlag::kSignaled:
            return "SIGNALED";
        case SendFlag::kSolicited:
            return "SOLICITED";
        case SendFlag::kInline:
            return "INLINE";
        case SendFlag::kIpCsum:
            break;
    }
    return "IP_CSUM";
}

struct WrOpcodeProperties {
    WrOpcode opcode;
    std::string_view name;    // as in rdma-core, without IBV_WR_
    Services services;        // where posting it is legal; elsewhere it completes LOC_QP_OP_ERR
    MessageKind message;      // kNone: executed at the sender
    Trailer trailer;          // immediate or rkey to invalidate, in the last packet
    bool consumes_receive;    // takes a receive of the peer and completes it
    bool addresses_remote;    // remote address and rkey
    bool occupies_initiator;  // counts against max_rd_atomic (IBA 9.4.4, 9.4.5)
    bool returns_data;        // scatters into its SGEs when the response arrives
    bool atomic;              // eight bytes, naturally aligned at the responder
    bool may_be_inline;
    AccessRights remote_right;  // that the responder's QP and key must grant
    WcOpcode completion;
    std::optional<WcOpcode> receive_completion;
    std::string_view source;
};

namespace detail {
inline constexpr Services kAllSend = kAllServices.without(Service::kXrcTgt);
inline constexpr Services kImmSend = kAllSend.without(Service::kRawPacket);
inline constexpr Services kConnectedSend = Services(Service::kRc) | Service::kUc | Service::kXrcIni;
inline constexpr Services kReliableSend = Service::kRc | Service::kXrcIni;
inline constexpr Services kTsoSend = Service::kUd | Service::kRawPacket;
inline constexpr std::string_view kManual = "ibv_post_send(3)";
}  // namespace detail

// FLUSH needs the right of each placement type that it asks for, not both (IBA A19).
// clang-format off
inline constexpr auto kWrOpcodes = [] {
    using namespace detail;  // NOLINT(google-build-using-namespace): a table wants short words
    using enum WrOpcode;
    using M = MessageKind;
    using T = Trailer;
    using C = WcOpcode;
    constexpr std::optional<WcOpcode> kNo;
    return std::to_array<WrOpcodeProperties>({
        // opcode            name                    services        message          trailer         receive remote initr. returns atomic inline right                  completion        receive completion       source
        {kRdmaWrite,         "RDMA_WRITE",           kConnectedSend, M::kWrite,       T::kNone,       false,  true,  false, false,  false, true,  Access::kRemoteWrite,  C::kRdmaWrite,    kNo,                     kManual},
        {kRdmaWriteWithImm,  "RDMA_WRITE_WITH_IMM",  kConnectedSend, M::kWrite,       T::kImmediate,  true,   true,  false, false,  false, true,  Access::kRemoteWrite,  C::kRdmaWrite,    C::kRecvRdmaWithImm,     kManual},
        {kSend,              "SEND",                 kAllSend,       M::kSend,        T::kNone,       true,   false, false, false,  false, true,  {},                    C::kSend,         C::kRecv,                kManual},
        {kSendWithImm,       "SEND_WITH_IMM",        kImmSend,       M::kSend,        T::kImmediate,  true,   false, false, false,  false, true,  {},                    C::kSend,         C::kRecv,                kManual},
        {kRdmaRead,          "RDMA_READ",            kReliableSend,  M::kRead,        T::kNone,       false,  true,  true,  true,   false, false, Access::kRemoteRead,   C::kRdmaRead,     kNo,                     kManual},
        {kAtomicCmpAndSwp,   "ATOMIC_CMP_AND_SWP",   kReliableSend,  M::kCompareSwap, T::kNone,       false,  true,  true,  true,   true,  false, Access::kRemoteAtomic, C::kCompSwap,     kNo,                     kManual},
        {kAtomicFetchAndAdd, "ATOMIC_FETCH_AND_ADD", kReliableSend,  M::kFetchAdd,    T::kNone,       false,  true,  true,  true,   true,  false, Access::kRemoteAtomic, C::kFetchAdd,     kNo,                     kManual},
        {kLocalInv,          "LOCAL_INV",            kConnectedSend, M::kNone,        T::kNone,       false,  false, false, false,  false, false, {},                    C::kLocalInv,     kNo,                     kManual},
        {kBindMw,            "BIND_MW",              kConnectedSend, M::kNone,        T::kNone,       false,  false, false, false,  false, false, {},                    C::kBindMw,       kNo,                     kManual},
        {kSendWithInv,       "SEND_WITH_INV",        kConnectedSend, M::kSend,        T::kInvalidate, true,   false, false, false,  false, true,  {},                    C::kSend,         C::kRecv,                kManual},
        {kTso,               "TSO",                  kTsoSend,       M::kSend,        T::kNone,       true,   false, false, false,  false, false, {},                    C::kTso,          C::kRecv,                kManual},
        {kDriver1,           "DRIVER1",              {},             M::kNone,        T::kNone,       false,  false, false, false,  false, false, {},                    C::kDriver1,      kNo,                     "refused"},
        {kFlush,             "FLUSH",                kReliableSend,  M::kFlush,       T::kNone,       false,  true,  true,  false,  false, false, kFlushRights,          C::kFlush,        kNo,                     "IBA A19"},
        {kAtomicWrite,       "ATOMIC_WRITE",         kReliableSend,  M::kAtomicWrite, T::kNone,       false,  true,  true,  false,  true,  true,  Access::kRemoteWrite,  C::kAtomicWrite,  kNo,                     "IBA A19"},
    });
}();
// clang-format on

// nullptr for a value that no enumerator has (12, 13, or anything above 15).
constexpr const WrOpcodeProperties* find_wr_opcode(std::uint32_t value) {
    for (const WrOpcodeProperties& row : kWrOpcodes) {
        if (static_cast<std::uint32_t>(row.opcode) == value) {
            return &row;
        }
    }
    return nullptr;
}

constexpr const WrOpcodeProperties& properties(WrOpcode opcode) {
    return *find_wr_opcode(static_cast<std::uint32_t>(opcode));
}

constexpr std::string_view to_string(WrOpcode opcode) {
    return properties(opcode).name;
}

inline constexpr std::uint32_t kAtomicBytes = 8;

}  // namespace simverbs
