// InfiniBand's performance counters by their names in /sys/class/infiniband/<device>/ports/<port>/
// counters (Linux, drivers/infiniband/core/sysfs.c).
#pragma once

#include <array>
#include <string_view>

#include "fabric/mad/performance_agent.hpp"

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

}  // namespace simverbs
