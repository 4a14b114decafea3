// A fault as somebody asks for it: what happens, when, to what. Names have been looked up.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "fabric/core/sim_time.hpp"
#include "fabric/faults/occasion.hpp"
#include "fabric/net/link.hpp"
#include "fabric/net/node.hpp"

#include "simverbs/hca/command_code.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/model/aeth.hpp"
#include "simverbs/transport/packet_faults.hpp"
#include "simverbs/transport/packet_matcher.hpp"
#include "simverbs/transport/work_queue.hpp"

namespace simverbs {

enum class FaultAction : std::uint8_t {
    kMark,
    kDrop,
    kCorrupt,
    kRewrite,
    kDuplicate,
    kDelay,
    kReorder,
    kHold,
    kLandLate,
    kMarkCongestion,
    kNotifyCongestion,
    kNak,
    kRnrNak,
    kRelease,
    kLinkDown,
    kLinkUp,
    kLinkFlap,
    kLinkRate,
    kPause,
    kPortError,
    kLid,
    kPkey,
    kSmLid,
    kReregister,
    kSwitchDeath,
    kSmDeath,
    kHostKill,
    kHostRestart,
    kProcessStop,
    kProcessKill,
    kDeviceFatal,
    kDeviceRemove,
    kDeviceArrive,
    kQpError,
    kRing,
    kSrqRing,
    kCqOverrun,
    kMrInvalidate,
    kCompletion,
    kExecution,
    kSyndrome,
    kCall,
};

// What an action is done to.
enum class FaultSubject : std::uint8_t {
    kNothing,
    kPacket,
    kFault,
    kLink,
    kLinkEnd,
    kPort,
    kSwitch,
    kHost,
    kPrograms,
    kQueuePair,
    kQueue,
    kObject,
    kWorkRequest,
    kCall,
};

struct FaultActionRow {
    FaultAction action;
    std::string_view name;  // in the trace, and of people
    FaultSubject subject;
};
// clang-format off
inline constexpr auto kFaultActions = std::to_array<FaultActionRow>({
    {FaultAction::kMark,             "mark",              FaultSubject::kNothing},
    {FaultAction::kDrop,             "drop",              FaultSubject::kPacket},
    {FaultAction::kCorrupt,          "corrupt",           FaultSubject::kPacket},
    {FaultAction::kRewrite,          "rewrite",           FaultSubject::kPacket},
    {FaultAction::kDuplicate,        "duplicate",         FaultSubject::kPacket},
    {FaultAction::kDelay,            "delay",             FaultSubject::kPacket},
    {FaultAction::kReorder,          "reorder",           FaultSubject::kPacket},
    {FaultAction::kHold,             "hold",              FaultSubject::kPacket},
    {FaultAction::kLandLate,         "land_late",         FaultSubject::kPacket},
    {FaultAction::kMarkCongestion,   "mark_congestion",   FaultSubject::kPacket},
    {FaultAction::kNotifyCongestion, "notify_congestion", FaultSubject::kPacket},
    {FaultAction::kNak,              "nak",               FaultSubject::kPacket},
    {FaultAction::kRnrNak,           "rnr_nak",           FaultSubject::kPacket},
    {FaultAction::kRelease,          "release",           FaultSubject::kFault},
    {FaultAction::kLinkDown,         "link_down",         FaultSubject::kLink},
    {FaultAction::kLinkUp,           "link_up",           FaultSubject::kLink},
    {FaultAction::kLinkFlap,         "link_flap",         FaultSubject::kLink},
    {FaultAction::kLinkRate,         "link_rate",         FaultSubject::kLink},
    {FaultAction::kPause,            "pause",             FaultSubject::kLinkEnd},
    {FaultAction::kPortError,        "port_error",        FaultSubject::kPort},
    {FaultAction::kLid,              "lid",               FaultSubject::kPort},
    {FaultAction::kPkey,             "pkey",              FaultSubject::kPort},
    {FaultAction::kSmLid,            "sm_lid",            FaultSubject::kPort},
    {FaultAction::kReregister,       "reregister",        FaultSubject::kPort},
    {FaultAction::kSwitchDeath,      "switch_death",      FaultSubject::kSwitch},
    {FaultAction::kSmDeath,          "sm_death",          FaultSubject::kNothing},
    {FaultAction::kHostKill,         "host_kill",         FaultSubject::kHost},
    {FaultAction::kHostRestart,      "host_restart",      FaultSubject::kHost},
    {FaultAction::kProcessStop,      "process_stop",      FaultSubject::kPrograms},
    {FaultAction::kProcessKill,      "process_kill",      FaultSubject::kPrograms},
    {FaultAction::kDeviceFatal,      "device_fatal",      FaultSubject::kHost},
    {FaultAction::kDeviceRemove,     "device_remove",     FaultSubject::kHost},
    {FaultAction::kDeviceArrive,     "device_arrive",     FaultSubject::kHost},
    {FaultAction::kQpError,          "qp_error",          FaultSubject::kQueuePair},
    {FaultAction::kRing,             "ring",              FaultSubject::kQueue},
    {FaultAction::kSrqRing,          "srq_ring",          FaultSubject::kObject},
    {FaultAction::kCqOverrun,        "cq_overrun",        FaultSubject::kObject},
    {FaultAction::kMrInvalidate,     "mr_invalidate",     FaultSubject::kObject},
    {FaultAction::kCompletion,       "completion",        FaultSubject::kWorkRequest},
    {FaultAction::kExecution,        "execution",         FaultSubject::kWorkRequest},
    {FaultAction::kSyndrome,         "syndrome",          FaultSubject::kWorkRequest},
    {FaultAction::kCall,             "call",              FaultSubject::kCall},
});
// clang-format on
static_assert(kFaultActions.size() == static_cast<std::size_t>(FaultAction::kCall) + 1);
constexpr const FaultActionRow& row_of(FaultAction action) {
    return kFaultActions[static_cast<std::size_t>(action)];
}
constexpr std::string_view to_string(FaultAction action) {
    return row_of(action).name;
}

// A queue pair of a device, by number or by its place in the order of their making.
struct QueuePairName {
    std::uint32_t qpn = 0;      // 0: any, or by its place
    std::uint32_t ordinal = 0;  // from 1; 0: any

    [[nodiscard]] bool fits(const QueuePair& qp) const;
    [[nodiscard]] QueuePair* find(const Hca& hca) const;
};

// Where packets begin: what leads out of these hosts' ports, or, without any, out of all.
std::vector<fabric::LinkDirection*> directions_from_hosts(const fabric::Network& network,
                                                          const std::vector<fabric::NodeId>& hosts);

// What a fault waits for.
struct OnTime {};
struct OnPacket {
    std::vector<fabric::LinkDirection*> directions;
    PacketPattern pattern;
};
struct OnWorkRequest {
    const Hca* hca = nullptr;  // nullptr: any
    QueuePairName qp;
    CompletedQueue queue = CompletedQueue::kSend;
};
struct OnCall {
    const Hca* hca = nullptr;  // nullptr: any
    CommandCode command = CommandCode::kModifyQp;
};
using FaultTrigger = std::variant<OnTime, OnPacket, OnWorkRequest, OnCall>;

struct FaultTarget {
    fabric::Link* link = nullptr;
    fabric::LinkDirection* direction = nullptr;
    fabric::Port* port = nullptr;
    fabric::Node* node = nullptr;
    Hca* hca = nullptr;  // nullptr, of a work request or call as trigger: theirs
    QueuePairName qp;
    CompletedQueue queue = CompletedQueue::kSend;
    std::uint32_t object = 0;
    fabric::FaultId fault;
};

struct FaultArguments {
    fabric::SimDuration duration{};
    fabric::SimDuration interval{};
    std::uint64_t times = 1;
    std::uint64_t value = 0;
    std::uint32_t offset = 0;
    std::uint8_t bits = 0xFF;
    HeaderField field = HeaderField::kOpcode;
    fabric::LinkWidth width = fabric::LinkWidth::k4x;
    fabric::LinkSpeed speed = fabric::LinkSpeed::kEdr;
};

struct FaultSpec {
    FaultAction action = FaultAction::kMark;
    FaultTrigger on;
    fabric::FaultId after;  // 0: none
    fabric::SimDuration after_delay{};
    fabric::OccasionRules when;
    fabric::SimDuration delay{};
    FaultTarget target;
    FaultArguments with;
};

}  // namespace simverbs
