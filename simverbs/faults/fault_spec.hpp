// A fault as somebody asks for it: what happens, when, to what. Names have been looked up.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "fabric/core/sim_time.hpp"
#include "fabric/faults/occasion.hpp"
#include "fabric/net/link.hpp"
#include "fabric/net/node.hpp"

#include "simverbs/faults/packet_faults.hpp"
#include "simverbs/faults/packet_matcher.hpp"
#include "simverbs/hca/command_code.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/model/fault_actions.hpp"
#include "simverbs/transport/work_queue.hpp"

namespace simverbs {

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

// The triggers of faults.
struct OnTime {};
struct OnPacket {
    std::vector<fabric::LinkDirection*> directions;
    PacketPattern pattern;
};
struct OnWorkRequest {
    const Hca* hca = nullptr;  // nullptr: any
    QueuePairName qp;
    CompletedQueue queue = CompletedQueue::kSend;
    bool as_it_completes = false;  // not as the device takes it up
};
struct OnCall {
    const Hca* hca = nullptr;  // nullptr: any
    CommandCode command = CommandCode::kModifyQp;
};
// A device is about to send the event of a completion channel.
struct OnCompletionEvent {
    const Hca* hca = nullptr;  // nullptr: any
};
using FaultTrigger = std::variant<OnTime, OnPacket, OnWorkRequest, OnCall, OnCompletionEvent>;

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
    simverbs_header_field field = SIMVERBS_HEADER_OPCODE;
    fabric::LinkWidth width = fabric::LinkWidth::k4x;
    fabric::LinkSpeed speed = fabric::LinkSpeed::kEdr;
};

struct FaultSpec {
    simverbs_fault_action action = SIMVERBS_FAULT_MARK;
    FaultTrigger on;
    fabric::FaultId after;  // 0: none
    fabric::SimDuration after_delay{};
    fabric::OccasionRules when;
    fabric::SimDuration delay{};
    FaultTarget target;
    FaultArguments with;
    std::string name{};  // "": it has none
};

}  // namespace simverbs
