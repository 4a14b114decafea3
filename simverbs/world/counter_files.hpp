// Names the counters of a port in /sys/class/infiniband/<device>/ports/<port>: InfiniBand's and
// Ethernet's in counters (Linux, drivers/infiniband/core/sysfs.c), Soft-RoCE's in hw_counters. A
// file that Linux has and that nothing here counts is left out.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "fabric/mad/performance_agent.hpp"
#include "fabric/net/port.hpp"

#include "simverbs/model/hw_counters.hpp"

namespace simverbs {

struct CounterFile {
    std::string_view name;
    fabric::PerformanceCounter counter;
};

inline constexpr auto kCounterFiles = std::to_array<CounterFile>({
    {"symbol_error", fabric::PerformanceCounter::kSymbolErrors},
    {"link_error_recovery", fabric::PerformanceCounter::kLinkErrorRecovery},
    {"link_downed", fabric::PerformanceCounter::kLinkDowned},
    {"port_rcv_errors", fabric::PerformanceCounter::kRcvErrors},
    {"port_rcv_remote_physical_errors", fabric::PerformanceCounter::kRcvRemotePhysicalErrors},
    {"port_rcv_switch_relay_errors", fabric::PerformanceCounter::kRcvSwitchRelayErrors},
    {"port_xmit_discards", fabric::PerformanceCounter::kXmitDiscards},
    {"port_xmit_constraint_errors", fabric::PerformanceCounter::kXmitConstraintErrors},
    {"port_rcv_constraint_errors", fabric::PerformanceCounter::kRcvConstraintErrors},
    {"local_link_integrity_errors", fabric::PerformanceCounter::kLocalLinkIntegrityErrors},
    {"excessive_buffer_overrun_errors", fabric::PerformanceCounter::kExcessiveBufferOverruns},
    {"VL15_dropped", fabric::PerformanceCounter::kVl15Dropped},
    {"port_xmit_data", fabric::PerformanceCounter::kXmitData},
    {"port_rcv_data", fabric::PerformanceCounter::kRcvData},
    {"port_xmit_packets", fabric::PerformanceCounter::kXmitPackets},
    {"port_rcv_packets", fabric::PerformanceCounter::kRcvPackets},
    {"port_xmit_wait", fabric::PerformanceCounter::kXmitWait},
    {"unicast_xmit_packets", fabric::PerformanceCounter::kUnicastXmitPackets},
    {"unicast_rcv_packets", fabric::PerformanceCounter::kUnicastRcvPackets},
    {"multicast_xmit_packets", fabric::PerformanceCounter::kMulticastXmitPackets},
    {"multicast_rcv_packets", fabric::PerformanceCounter::kMulticastRcvPackets},
});

// As mlx5 has them: without the errors of management and of an InfiniBand link.
struct EthernetCounterFile {
    std::string_view name;
    std::uint64_t (*value)(const fabric::PortCounters&);
};

inline constexpr auto kEthernetCounterFiles = std::to_array<EthernetCounterFile>({
    {"link_downed", [](const fabric::PortCounters& port) { return port.link_downed; }},
    {"port_xmit_data",
     [](const fabric::PortCounters& port) {
         return port.xmit_data_bytes / fabric::PortCounters::kDataWordBytes;
     }},
    {"port_rcv_data",
     [](const fabric::PortCounters& port) {
         return port.rcv_data_bytes / fabric::PortCounters::kDataWordBytes;
     }},
    {"port_xmit_packets", [](const fabric::PortCounters& port) { return port.xmit_packets; }},
    {"port_rcv_packets", [](const fabric::PortCounters& port) { return port.rcv_packets; }},
    {"port_xmit_wait", [](const fabric::PortCounters& port) { return port.xmit_wait; }},
    {"unicast_xmit_packets",
     [](const fabric::PortCounters& port) {
         return port.xmit_packets - port.xmit_multicast_packets;
     }},
    {"unicast_rcv_packets",
     [](const fabric::PortCounters& port) {
         return port.rcv_packets - port.rcv_multicast_packets;
     }},
    {"multicast_xmit_packets",
     [](const fabric::PortCounters& port) { return port.xmit_multicast_packets; }},
    {"multicast_rcv_packets",
     [](const fabric::PortCounters& port) { return port.rcv_multicast_packets; }},
});

// Linux, drivers/infiniband/sw/rxe/rxe_hw_counters.c.
struct SoftRoceCounterFile {
    std::string_view name;
    std::uint64_t (*value)(const fabric::PortCounters&, const HwCounters&);
};

inline constexpr auto kSoftRoceCounterFiles = std::to_array<SoftRoceCounterFile>({
    {"sent_pkts", [](const fabric::PortCounters& port,
                     const HwCounters& /*device*/) { return port.xmit_packets; }},
    {"rcvd_pkts",  // a packet whose ICRC is wrong is not one
     [](const fabric::PortCounters& port, const HwCounters& device) {
         return port.rcv_packets - device.value(HwCounter::kRxIcrcEncapsulated);
     }},
    {"duplicate_request",
     [](const fabric::PortCounters& /*port*/, const HwCounters& device) {
         return device.value(HwCounter::kDuplicateRequest);
     }},
    {"rcvd_rnr_err",
     [](const fabric::PortCounters& /*port*/, const HwCounters& device) {
         return device.value(HwCounter::kRnrNakRetryErr);
     }},
    {"send_rnr_err",
     [](const fabric::PortCounters& /*port*/, const HwCounters& device) {
         return device.value(HwCounter::kOutOfBuffer);
     }},
    {"link_downed", [](const fabric::PortCounters& port,
                       const HwCounters& /*device*/) { return port.link_downed; }},
});

}  // namespace simverbs
