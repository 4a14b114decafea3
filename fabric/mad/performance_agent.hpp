// The performance management agent of a node (IBA 16.1): the model's counters as counters of their
// widths that stick at their limit and can be set. The model's own never go back: what a Set clears
// is remembered as a base. Refuses sampling.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/mad/datagram.hpp"
#include "fabric/net/node.hpp"

namespace fabric {

// The counters of a port, by names of IBA 16.1.3 and 16.1.4.
enum class PerformanceCounter : std::uint8_t {
    kSymbolErrors,
    kLinkErrorRecovery,
    kLinkDowned,
    kRcvErrors,
    kRcvRemotePhysicalErrors,
    kRcvSwitchRelayErrors,
    kXmitDiscards,
    kXmitConstraintErrors,
    kRcvConstraintErrors,
    kLocalLinkIntegrityErrors,
    kExcessiveBufferOverruns,
    kVl15Dropped,
    kXmitData,
    kRcvData,
    kXmitPackets,
    kRcvPackets,
    kXmitWait,
    kUnicastXmitPackets,
    kUnicastRcvPackets,
    kMulticastXmitPackets,
    kMulticastRcvPackets,
    kInactiveDiscards,
    kNeighborMtuDiscards,
    kLifetimeDiscards,
    kHeadOfQueueDiscards,
    kLocalPhysicalErrors,
    kMalformedPackets,
    kBufferOverruns,
    kDlidMappingErrors,
    kVlMappingErrors,
    kLoopingErrors,
    // The same as four above, in 64 bits and cleared apart from them.
    kExtendedXmitData,
    kExtendedRcvData,
    kExtendedXmitPackets,
    kExtendedRcvPackets,
};
inline constexpr std::size_t kPerformanceCounters =
    static_cast<std::size_t>(PerformanceCounter::kExtendedRcvPackets) + 1;

class PerformanceAgent {
  public:
    explicit PerformanceAgent(Node& node);

    // False: no request that an agent of this class answers. `response` is a copy of the request;
    // `arrived_at` is a host's port, 0 on a switch.
    bool process(PortNumber arrived_at, const mad::Datagram& request, mad::Datagram& response);

    // Since it was last set, without a limit.
    [[nodiscard]] std::uint64_t value(PortNumber port, PerformanceCounter counter) const;
    void set_value(PortNumber port, PerformanceCounter counter, std::uint64_t value);

  private:
    struct CounterField;

    mad::Status execute(PortNumber arrived_at, mad::Datagram& response);
    mad::Status access(std::span<const CounterField> fields, PortNumber arrived_at,
                       mad::Datagram& response);
    [[nodiscard]] std::uint64_t counted(PortNumber port, PerformanceCounter counter) const;
    [[nodiscard]] std::uint64_t sum(std::span<const PortNumber> ports, PerformanceCounter counter,
                                    std::uint8_t bits) const;

    Node& node_;
    // The value to subtract from the model's counter, modulo 2^64; by port number.
    std::vector<std::array<std::uint64_t, kPerformanceCounters>> bases_;
};

}  // namespace fabric
