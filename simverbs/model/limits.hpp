// The limits that a device and its ports report; requests beyond them are refused.
//
// One structure for query_device, query_device_ex and query_port: the figure that is reported is
// the figure that create_* and modify_* compare with. Zero says that a feature is absent.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "fabric/net/mtu.hpp"

#include "simverbs/model/enum_set.hpp"
#include "simverbs/model/port_caps.hpp"
#include "simverbs/model/services.hpp"

namespace simverbs {

// Same bits as enum ibv_device_cap_flags.
enum class DeviceCap : std::uint64_t {
    kResizeMaxWr = 1U << 0,
    kBadPkeyCntr = 1U << 1,
    kBadQkeyCntr = 1U << 2,
    kRawMulti = 1U << 3,
    kAutoPathMig = 1U << 4,
    kChangePhyPort = 1U << 5,
    kUdAvPortEnforce = 1U << 6,
    kCurrQpStateMod = 1U << 7,
    kShutdownPort = 1U << 8,
    kInitType = 1U << 9,
    kPortActiveEvent = 1U << 10,
    kSysImageGuid = 1U << 11,
    kRcRnrNakGen = 1U << 12,
    kSrqResize = 1U << 13,
    kNNotifyCq = 1U << 14,
    kMemWindow = 1U << 17,
    kUdIpCsum = 1U << 18,
    kXrc = 1U << 20,
    kMemMgtExtensions = 1U << 21,
    kMemWindowType2A = 1U << 23,
    kMemWindowType2B = 1U << 24,
    kRcIpCsum = 1U << 25,
    kRawIpCsum = 1U << 26,
    kManagedFlowSteering = 1U << 29,
    kRawScatterFcs = 1ULL << 34,  // these five in device_cap_flags_ex only
    kPciWriteEndPadding = 1ULL << 36,
    kFlushGlobal = 1ULL << 38,
    kFlushPersistent = 1ULL << 39,
    kAtomicWrite = 1ULL << 40,
};
template <>
inline constexpr bool kIsSetMember<DeviceCap> = true;
using DeviceCaps = EnumSet<DeviceCap>;
// The capabilities that a device may report: the features that are modelled.
inline constexpr DeviceCaps kModelledCaps =
    DeviceCaps(DeviceCap::kResizeMaxWr) | DeviceCap::kBadPkeyCntr | DeviceCap::kCurrQpStateMod |
    DeviceCap::kPortActiveEvent | DeviceCap::kSysImageGuid | DeviceCap::kRcRnrNakGen |
    DeviceCap::kMemWindow | DeviceCap::kMemWindowType2B | DeviceCap::kMemMgtExtensions |
    DeviceCap::kManagedFlowSteering | DeviceCap::kRawIpCsum | DeviceCap::kRawScatterFcs |
    DeviceCap::kPciWriteEndPadding | DeviceCap::kSrqResize | DeviceCap::kUdAvPortEnforce |
    DeviceCap::kXrc | DeviceCap::kAutoPathMig | DeviceCap::kChangePhyPort |
    DeviceCap::kBadQkeyCntr | DeviceCap::kFlushGlobal | DeviceCap::kFlushPersistent |
    DeviceCap::kAtomicWrite;
struct DeviceCapName {
    DeviceCap cap;
    std::string_view name;  // as in rdma-core, without IBV_DEVICE_
};
inline constexpr auto kDeviceCapNames = std::to_array<DeviceCapName>({
    {DeviceCap::kResizeMaxWr, "RESIZE_MAX_WR"},
    {DeviceCap::kBadPkeyCntr, "BAD_PKEY_CNTR"},
    {DeviceCap::kBadQkeyCntr, "BAD_QKEY_CNTR"},
    {DeviceCap::kRawMulti, "RAW_MULTI"},
    {DeviceCap::kAutoPathMig, "AUTO_PATH_MIG"},
    {DeviceCap::kChangePhyPort, "CHANGE_PHY_PORT"},
    {DeviceCap::kUdAvPortEnforce, "UD_AV_PORT_ENFORCE"},
    {DeviceCap::kCurrQpStateMod, "CURR_QP_STATE_MOD"},
    {DeviceCap::kShutdownPort, "SHUTDOWN_PORT"},
    {DeviceCap::kInitType, "INIT_TYPE"},
    {DeviceCap::kPortActiveEvent, "PORT_ACTIVE_EVENT"},
    {DeviceCap::kSysImageGuid, "SYS_IMAGE_GUID"},
    {DeviceCap::kRcRnrNakGen, "RC_RNR_NAK_GEN"},
    {DeviceCap::kSrqResize, "SRQ_RESIZE"},
    {DeviceCap::kNNotifyCq, "N_NOTIFY_CQ"},
    {DeviceCap::kMemWindow, "MEM_WINDOW"},
    {DeviceCap::kUdIpCsum, "UD_IP_CSUM"},
    {DeviceCap::kXrc, "XRC"},
    {DeviceCap::kMemMgtExtensions, "MEM_MGT_EXTENSIONS"},
    {DeviceCap::kMemWindowType2A, "MEM_WINDOW_TYPE_2A"},
    {DeviceCap::kMemWindowType2B, "MEM_WINDOW_TYPE_2B"},
    {DeviceCap::kRcIpCsum, "RC_IP_CSUM"},
    {DeviceCap::kRawIpCsum, "RAW_IP_CSUM"},
    {DeviceCap::kManagedFlowSteering, "MANAGED_FLOW_STEERING"},
    {DeviceCap::kRawScatterFcs, "RAW_SCATTER_FCS"},
    {DeviceCap::kPciWriteEndPadding, "PCI_WRITE_END_PADDING"},
    {DeviceCap::kFlushGlobal, "FLUSH_GLOBAL"},
    {DeviceCap::kFlushPersistent, "FLUSH_PERSISTENT"},
    {DeviceCap::kAtomicWrite, "ATOMIC_WRITE"},
});
constexpr std::string_view to_string(DeviceCap cap) {
    for (const DeviceCapName& row : kDeviceCapNames) {
        if (row.cap == cap) {
            return row.name;
        }
    }
    return "unknown";
}

// Same bits as enum ibv_raw_packet_caps.
enum class RawPacketCap : std::uint32_t {
    kCvlanStripping = 1U << 0,
    kScatterFcs = 1U << 1,
    kIpCsum = 1U << 2,
    kDelayDrop = 1U << 3,
};
template <>
inline constexpr bool kIsSetMember<RawPacketCap> = true;
using RawPacketCaps = EnumSet<RawPacketCap>;

// enum ibv_atomic_cap: atomic among the QPs of this device, or also against the host's processors.
enum class AtomicScope : std::uint8_t { kNone, kHca, kGlobal };
inline constexpr auto kAtomicScopeNames =
    std::to_array<std::string_view>({"ATOMIC_NONE", "ATOMIC_HCA", "ATOMIC_GLOB"});
constexpr std::string_view to_string(AtomicScope scope) {
    return kAtomicScopeNames[static_cast<std::size_t>(scope)];
}

// Bits of enum ibv_odp_transport_cap_bits.
struct OnDemandPaging {
    bool explicit_regions = false;
    bool implicit_regions = false;
    std::uint32_t rc = 0;
    std::uint32_t uc = 0;
    std::uint32_t ud = 0;
    std::uint32_t xrc = 0;
};

struct PortLimits {
    std::uint32_t max_message_bytes = 0;  // ibv_port_attr.max_msg_sz
    std::uint32_t gid_entries = 0;
    std::uint16_t pkey_entries = 0;
    fabric::Mtu max_mtu = fabric::Mtu::k4096;
    std::uint32_t ethernet_mtu = 0;   // bytes after the Ethernet header
    bool has_roce_v1 = true;          // of each Ethernet GID, beside RoCE v2
    std::uint8_t max_vl_num = 0;      // coded: 1 = VL0, 2 = VL0-1, 3 = VL0-3, 4 = VL0-7
    std::uint8_t subnet_timeout = 0;  // 4.096 us x 2^n
    PortCaps infiniband_caps;         // ibv_port_attr.port_cap_flags by link layer
    PortCaps ethernet_caps;
};

// Tag matching (struct ibv_tm_caps). A tag's handle travels in a byte.
inline constexpr std::uint32_t kMostTags = 256;
struct TagMatchingLimits {
    std::uint32_t max_rendezvous_message_bytes = 0;  // of a request that the device carries out
    std::uint32_t max_tags = 0;                      // of a list; 0: no tag matching
    std::uint32_t max_operations = 0;                // on a list, outstanding
    std::uint32_t max_segments = 0;                  // of a tagged buffer
    Services services;
};

struct DeviceLimits {
    std::uint64_t max_mr_bytes = 0;
    std::uint64_t page_size_cap = 0;  // bit n: pages of 2^n bytes
    DeviceCaps caps;

    std::int32_t max_qp = 0;
    std::int32_t max_qp_wr = 0;
    std::int32_t max_sge = 0;
    std::int32_t max_sge_rd = 0;
    std::uint32_t max_inline_bytes = 0;  // no verb reports it; create_qp returns what it granted
    std::int32_t max_cq = 0;
    std::int32_t max_cqe = 0;
    std::int32_t max_mr = 0;
    std::int32_t max_pd = 0;
    std::int32_t max_mw = 0;
    std::int32_t max_ah = 0;
    std::int32_t max_srq = 0;
    std::int32_t max_srq_wr = 0;
    std::int32_t max_srq_sge = 0;
    std::int32_t max_xrcd = 0;
    std::int32_t max_qp_rd_atom = 0;       // READs and atomics a QP takes as responder
    std::int32_t max_qp_init_rd_atom = 0;  // and has outstanding as requester
    std::int32_t max_res_rd_atom = 0;      // responder resources of the whole device
    AtomicScope atomic_scope = AtomicScope::kNone;
    std::int32_t max_raw_ethy_qp = 0;
    std::int32_t max_mcast_grp = 0;
    std::int32_t max_mcast_qp_attach = 0;
    std::int32_t max_total_mcast_qp_attach = 0;
    std::uint16_t max_pkeys = 0;
    std::uint8_t local_ca_ack_delay = 0;  // 4.096 us x 2^n
    std::uint32_t completion_vectors = 1;

    OnDemandPaging odp;
    std::uint64_t completion_timestamp_mask = 0;
    std::uint64_t core_clock_khz = 0;
    std::uint32_t max_tso_bytes = 0;
    Services tso_services;
    std::uint32_t max_rwq_indirection_tables = 0;
    std::uint32_t max_rwq_indirection_table_size = 0;
    std::uint64_t rx_hash_fields = 0;    // bits of enum ibv_rx_hash_fields
    std::uint8_t rx_hash_functions = 0;  // bits of enum ibv_rx_hash_function_flags
    Services rss_services;
    std::uint32_t max_wq_type_rq = 0;
    std::uint32_t rate_limit_min_kbps = 0;
    std::uint32_t rate_limit_max_kbps = 0;
    Services rate_limit_services;
    RawPacketCaps raw_packet_caps;
    TagMatchingLimits tag_matching;
    std::uint16_t max_cq_moderation_count = 0;
    std::uint16_t max_cq_moderation_microseconds = 0;
    std::uint64_t max_device_memory_bytes = 0;
    std::uint32_t max_completion_counters = 0;  // ibv_create_comp_cntr
    std::uint16_t pci_atomic_sizes = 0;         // bits of enum ibv_pci_atomic_op_size

    PortLimits port;
};

// Returns the limits of a device none of whose ports is Ethernet: raw packets, and what works on
// them or by them, are Ethernet's.
constexpr DeviceLimits without_ethernet(DeviceLimits limits) {
    limits.caps = limits.caps.without(DeviceCap::kRawIpCsum | DeviceCap::kRawScatterFcs |
                                      DeviceCap::kManagedFlowSteering);
    limits.max_raw_ethy_qp = 0;
    limits.raw_packet_caps = {};
    limits.max_tso_bytes = 0;
    limits.tso_services = {};
    limits.max_rwq_indirection_tables = 0;
    limits.max_rwq_indirection_table_size = 0;
    limits.rx_hash_fields = 0;
    limits.rx_hash_functions = 0;
    limits.rss_services = {};
    limits.max_wq_type_rq = 0;
    limits.rate_limit_min_kbps = 0;
    limits.rate_limit_max_kbps = 0;
    limits.rate_limit_services = {};
    return limits;
}

// Returns true if `value` is beyond what a device reports.
constexpr bool exceeds(std::uint64_t value, std::int64_t most) {
    return value > static_cast<std::uint64_t>(most < 0 ? 0 : most);
}

namespace detail {
inline constexpr DeviceCaps kSpecCaps =
    DeviceCaps(DeviceCap::kResizeMaxWr) | DeviceCap::kBadPkeyCntr | DeviceCap::kBadQkeyCntr |
    DeviceCap::kAutoPathMig | DeviceCap::kChangePhyPort | DeviceCap::kUdAvPortEnforce |
    DeviceCap::kCurrQpStateMod | DeviceCap::kPortActiveEvent | DeviceCap::kSysImageGuid |
    DeviceCap::kRcRnrNakGen | DeviceCap::kSrqResize | DeviceCap::kMemWindow | DeviceCap::kUdIpCsum |
    DeviceCap::kXrc | DeviceCap::kMemMgtExtensions | DeviceCap::kMemWindowType2B |
    DeviceCap::kRawIpCsum | DeviceCap::kManagedFlowSteering | DeviceCap::kRawScatterFcs |
    DeviceCap::kPciWriteEndPadding | DeviceCap::kFlushGlobal | DeviceCap::kFlushPersistent |
    DeviceCap::kAtomicWrite;
inline constexpr PortCaps kInfinibandPortCaps =
    PortCaps(PortCap::kTrapSup) | PortCap::kNoticeSup | PortCap::kAutoMigrSup | PortCap::kSlMapSup |
    PortCap::kSysImageGuidSup | PortCap::kExtendedSpeedsSup | PortCap::kCapMask2Sup |
    PortCap::kCmSup | PortCap::kClientRegSup;
inline constexpr PortCaps kEthernetPortCaps = PortCap::kCmSup | PortCap::kIpBasedGids;
inline constexpr std::uint32_t kOdpAllAcked = 0x3F;  // send, receive, write, read, atomic, SRQ
inline constexpr std::uint32_t kOdpUnacked = 0x07;   // send, receive, write
inline constexpr std::uint32_t kOdpDatagram = 0x03;  // send, receive
}  // namespace detail

// A mid-sized NIC: large enough for what programs ask for by default, small enough that a test can
// reach the end of each.
inline constexpr DeviceLimits kSpecLimits = {
    .max_mr_bytes = 1ULL << 40,
    .page_size_cap = 0xFFFF'F000,
    .caps = detail::kSpecCaps,
    .max_qp = 65'536,
    .max_qp_wr = 32'768,
    .max_sge = 32,
    .max_sge_rd = 32,
    .max_inline_bytes = 512,
    .max_cq = 65'536,
    .max_cqe = 4'194'303,
    .max_mr = 131'072,
    .max_pd = 8'192,
    .max_mw = 65'536,
    .max_ah = 65'536,
    .max_srq = 8'192,
    .max_srq_wr = 32'767,
    .max_srq_sge = 31,
    .max_xrcd = 1'024,
    .max_qp_rd_atom = 16,
    .max_qp_init_rd_atom = 16,
    .max_res_rd_atom = 65'536 * 16,
    .atomic_scope = AtomicScope::kHca,
    .max_raw_ethy_qp = 1'024,
    .max_mcast_grp = 8'192,
    .max_mcast_qp_attach = 248,
    .max_total_mcast_qp_attach = 8'192 * 248,
    .max_pkeys = 128,
    .local_ca_ack_delay = 4,
    .completion_vectors = 4,
    .odp = {.explicit_regions = true,
            .implicit_regions = true,
            .rc = detail::kOdpAllAcked,
            .uc = detail::kOdpUnacked,
            .ud = detail::kOdpDatagram,
            .xrc = detail::kOdpAllAcked},
    .completion_timestamp_mask = ~0ULL,
    .core_clock_khz = 1'000'000,  // nanoseconds of virtual time
    .max_tso_bytes = 262'144,
    .tso_services = Service::kRawPacket,
    .max_rwq_indirection_tables = 1'024,
    .max_rwq_indirection_table_size = 2'048,
    .rx_hash_fields = 0xFF,
    .rx_hash_functions = 1,
    .rss_services = Service::kRawPacket,
    .max_wq_type_rq = 8'192,
    .rate_limit_min_kbps = 1'000,
    .rate_limit_max_kbps = 100'000'000,
    .rate_limit_services = Service::kRawPacket,
    .raw_packet_caps =
        RawPacketCap::kCvlanStripping | RawPacketCap::kScatterFcs | RawPacketCap::kIpCsum,
    .tag_matching = {.max_rendezvous_message_bytes = 64,
                     .max_tags = 127,
                     .max_operations = 32'768,
                     .max_segments = 1,
                     .services = Service::kRc},
    .max_cq_moderation_count = 65'535,
    .max_cq_moderation_microseconds = 4'095,
    .max_device_memory_bytes = 131'072,
    .max_completion_counters = 1'024,
    .pci_atomic_sizes = 0,
    .port = {.max_message_bytes = 1U << 30,
             .gid_entries = 256,
             .pkey_entries = 128,
             .max_mtu = fabric::Mtu::k4096,
             .ethernet_mtu = 4'200,  // 4096 and headers, as RoCE is set up
             .has_roce_v1 = true,
             .max_vl_num = 4,
             .subnet_timeout = 18,
             .infiniband_caps = detail::kInfinibandPortCaps,
             .ethernet_caps = detail::kEthernetPortCaps},
};

}  // namespace simverbs
