#include "fabric/mad/performance_agent.hpp"

#include <algorithm>

#include "fabric/core/assert.hpp"
#include "fabric/mad/attributes.hpp"

namespace fabric {

using mad::Datagram;
using mad::Field;
using mad::Status;
using Counter = PerformanceCounter;
using mad::PerformanceAttribute;

namespace {

constexpr std::size_t kDataOffset = 64;

// CounterSelect2 of PortCounters follows the 16 bits of CounterSelect here.
constexpr unsigned kSelect2 = 16;

}  // namespace

struct PerformanceAgent::CounterField {
    Counter counter;
    Field field;
    unsigned select;  // bit of CounterSelect
};

PerformanceAgent::PerformanceAgent(Node& node) : node_(node), bases_(node.port_count() + 1U) {}

std::uint64_t PerformanceAgent::counted(PortNumber port, Counter counter) const {
    const PortCounters& model = node_.port(port).counters();
    switch (counter) {
        case Counter::kLinkDowned:
            return model.link_downed;
        case Counter::kSymbolErrors:
            return model.symbol_errors;
        case Counter::kLinkErrorRecovery:
            return model.link_error_recoveries;
        case Counter::kRcvErrors:
            return model.rcv_errors;
        case Counter::kVl15Dropped:
            return model.vl15_dropped;
        case Counter::kRcvSwitchRelayErrors:
            return model.rcv_switch_relay_errors();
        case Counter::kXmitConstraintErrors:
            return model.xmit_constraint_errors();
        case Counter::kRcvConstraintErrors:
            return model.rcv_constraint_errors();
        case Counter::kXmitWait:
            return model.xmit_wait;
        case Counter::kVlMappingErrors:
            return model.discarded(DropReason::kNoLane);
        case Counter::kMulticastXmitPackets:
            return model.xmit_multicast_packets;
        case Counter::kMulticastRcvPackets:
            return model.rcv_multicast_packets;
        case Counter::kUnicastXmitPackets:
            return model.xmit_packets - model.xmit_multicast_packets;
        case Counter::kUnicastRcvPackets:
            return model.rcv_packets - model.rcv_multicast_packets;
        case Counter::kDlidMappingErrors:
            return model.discarded(DropReason::kNoRoute);
        case Counter::kLoopingErrors:
            return model.discarded(DropReason::kBackToSender);
        case Counter::kXmitDiscards:
            return model.xmit_discards();
        case Counter::kInactiveDiscards:
            return model.discarded(DropReason::kPeerNotActive) +
                   model.discarded(DropReason::kPortNotActive) +
                   model.discarded(DropReason::kLinkDown);
        case Counter::kHeadOfQueueDiscards:
            return model.discarded(DropReason::kHeadOfQueueLifetime);
        case Counter::kNeighborMtuDiscards:
            return model.discarded(DropReason::kExceedsMtu);
        case Counter::kXmitData:
        case Counter::kExtendedXmitData:
            return model.xmit_data_bytes / PortCounters::kDataWordBytes;
        case Counter::kRcvData:
        case Counter::kExtendedRcvData:
            return model.rcv_data_bytes / PortCounters::kDataWordBytes;
        case Counter::kXmitPackets:
        case Counter::kExtendedXmitPackets:
            return model.xmit_packets;
        case Counter::kRcvPackets:
        case Counter::kExtendedRcvPackets:
            return model.rcv_packets;
        default:
            return 0;  // never happens in the model
    }
}

std::uint64_t PerformanceAgent::value(PortNumber port, Counter counter) const {
    return counted(port, counter) - bases_.at(port.value()).at(static_cast<std::size_t>(counter));
}

void PerformanceAgent::set_value(PortNumber port, Counter counter, std::uint64_t value) {
    bases_.at(port.value()).at(static_cast<std::size_t>(counter)) = counted(port, counter) - value;
}

// Counters of up to 32 bits stick at their limit (IBA 16.1.3.5).
std::uint64_t PerformanceAgent::sum(std::span<const PortNumber> ports, Counter counter,
                                    std::uint8_t bits) const {
    std::uint64_t total = 0;
    for (const PortNumber port : ports) {
        total += value(port, counter);
    }
    return bits == 64 ? total : std::min(total, (std::uint64_t{1} << bits) - 1);
}

bool PerformanceAgent::process(PortNumber arrived_at, const Datagram& request, Datagram& response) {
    const mad::Method method = request.method();
    if (request.management_class() != mad::Class::kPerformance ||
        (method != mad::Method::kGet && method != mad::Method::kSet)) {
        return false;
    }
    const bool good_version =
        request.get(mad::header::kBaseVersion) == 1 && request.get(mad::header::kClassVersion) == 1;
    const Status status = good_version ? execute(arrived_at, response) : Status::kBadVersion;
    response.set(mad::header::kStatus, static_cast<std::uint64_t>(status));
    return true;
}

namespace {

void describe_class(mad::Bytes data) {
    std::ranges::fill(data, std::uint8_t{0});
    mad::set(data, mad::class_port_info::kBaseVersion, 1);
    mad::set(data, mad::class_port_info::kClassVersion, 1);
    mad::set(data, mad::class_port_info::kCapabilityMask,
             mad::port_counters::kAllPortSelect | mad::port_counters::kExtendedWidth |
                 mad::port_counters::kXmitWait);
    mad::set(data, mad::class_port_info::kResponseTime, 8);  // 1 ms
}

}  // namespace

Status PerformanceAgent::execute(PortNumber arrived_at, Datagram& response) {
    // clang-format off
    static constexpr auto kPortCounters = std::to_array<CounterField>({
        {Counter::kSymbolErrors,             {32, 16},  0},
        {Counter::kLinkErrorRecovery,        {48, 8},   1},
        {Counter::kLinkDowned,               {56, 8},   2},
        {Counter::kRcvErrors,                {64, 16},  3},
        {Counter::kRcvRemotePhysicalErrors,  {80, 16},  4},
        {Counter::kRcvSwitchRelayErrors,     {96, 16},  5},
        {Counter::kXmitDiscards,             {112, 16}, 6},
        {Counter::kXmitConstraintErrors,     {128, 8},  7},
        {Counter::kRcvConstraintErrors,      {136, 8},  8},
        {Counter::kLocalLinkIntegrityErrors, {152, 4},  9},
        {Counter::kExcessiveBufferOverruns,  {156, 4},  10},
        {Counter::kVl15Dropped,              {176, 16}, 11},
        {Counter::kXmitData,                 {192, 32}, 12},
        {Counter::kRcvData,                  {224, 32}, 13},
        {Counter::kXmitPackets,              {256, 32}, 14},
        {Counter::kRcvPackets,               {288, 32}, 15},
        {Counter::kXmitWait,                 {320, 32}, kSelect2},
    });
    static constexpr auto kExtended = std::to_array<CounterField>({
        {Counter::kExtendedXmitData,     {64, 64},  0},
        {Counter::kExtendedRcvData,      {128, 64}, 1},
        {Counter::kExtendedXmitPackets,  {192, 64}, 2},
        {Counter::kExtendedRcvPackets,   {256, 64}, 3},
        {Counter::kUnicastXmitPackets,   {320, 64}, 4},
        {Counter::kUnicastRcvPackets,    {384, 64}, 5},
        {Counter::kMulticastXmitPackets, {448, 64}, 6},
        {Counter::kMulticastRcvPackets,  {512, 64}, 7},
    });
    static constexpr auto kRcvErrorDetails = std::to_array<CounterField>({
        {Counter::kLocalPhysicalErrors, {32, 16},  0},
        {Counter::kMalformedPackets,    {48, 16},  1},
        {Counter::kBufferOverruns,      {64, 16},  2},
        {Counter::kDlidMappingErrors,   {80, 16},  3},
        {Counter::kVlMappingErrors,     {96, 16},  4},
        {Counter::kLoopingErrors,       {112, 16}, 5},
    });
    static constexpr auto kXmitDiscardDetails = std::to_array<CounterField>({
        {Counter::kInactiveDiscards,     {32, 16}, 0},
        {Counter::kNeighborMtuDiscards,  {48, 16}, 1},
        {Counter::kLifetimeDiscards,     {64, 16}, 2},
        {Counter::kHeadOfQueueDiscards,  {80, 16}, 3},
    });
    // clang-format on
    switch (static_cast<PerformanceAttribute>(response.attribute())) {
        case PerformanceAttribute::kClassPortInfo:
            // A set says where traps go: this class has none.
            if (response.method() != mad::Method::kSet) {
                describe_class(response.from(kDataOffset));
            }
            return Status::kOk;
        case PerformanceAttribute::kPortCounters:
            return access(kPortCounters, arrived_at, response);
        case PerformanceAttribute::kPortCountersExtended:
            return access(kExtended, arrived_at, response);
        case PerformanceAttribute::kPortRcvErrorDetails:
            return access(kRcvErrorDetails, arrived_at, response);
        case PerformanceAttribute::kPortXmitDiscardDetails:
            return access(kXmitDiscardDetails, arrived_at, response);
    }
    return Status::kBadMethodOrAttribute;
}

Status PerformanceAgent::access(std::span<const CounterField> fields, PortNumber arrived_at,
                                Datagram& response) {
    namespace counters = mad::port_counters;
    const mad::Bytes data = response.from(kDataOffset);
    const std::uint64_t port_select = mad::get(data, counters::kPortSelect);
    const bool is_host = node_.kind() == NodeKind::kHca;
    std::vector<PortNumber> ports;
    if (port_select == counters::kAllPorts) {
        for (std::uint16_t number = 1; number <= node_.port_count(); ++number) {
            if (!is_host || number == arrived_at.value()) {
                ports.push_back(PortNumber{number});
            }
        }
    } else if (port_select > node_.port_count() || (is_host && port_select == 0)) {
        return Status::kBadValue;
    } else {
        ports.push_back(PortNumber{static_cast<std::uint16_t>(port_select)});
    }
    std::uint64_t selected = mad::get(data, counters::kCounterSelect);
    if (fields.back().select == kSelect2) {
        selected |= mad::get(data, counters::kCounterSelect2) << kSelect2;
    }
    for (const CounterField& each : fields) {
        const bool sets =
            response.method() == mad::Method::kSet && (selected >> each.select & 1) != 0;
        for (const PortNumber port : ports) {
            if (sets) {
                set_value(port, each.counter, mad::get(data, each.field));
            }
        }
    }
    for (const CounterField& each : fields) {
        mad::set(data, each.field, sum(ports, each.counter, each.field.bits));
    }
    return Status::kOk;
}

}  // namespace fabric
