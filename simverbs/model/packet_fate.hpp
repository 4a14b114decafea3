// Why a packet that arrived was not taken, from the port's checks to the engine of the queue pair.
//
// Datagrams and UC messages that an engine drops are not here: see MessageDropped.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace simverbs {

// Their numbers are in packet digests: a new one comes last.
enum class PacketFate : std::uint8_t {
    kOtherStation,
    kNoQueuePair,
    kQueuePairNotReady,
    kOtherPeer,
    kPkeyMismatch,
    kWrongService,
    kNoFlowRule,
    kDeviceDead,
    kCrcWrong,
    kOtherVlan,
    kNoPower,

    // By the protocol engine: consequences of something that went wrong before.
    kOutOfSequence,    // ahead of the PSN that the responder expects
    kBehindRnrNak,     // likewise, while the expected packet waits for a receive
    kNoReceive,        // an RNR NAK goes back
    kRefused,          // a fatal NAK goes back
    kBehindRefused,    // at or behind a packet whose NAK waits for earlier READ responses
    kCutMessage,       // UC: of a message that lost a packet
    kUnanswerable,     // a READ or atomic seen before, no longer among those that are kept
    kNotAwaited,       // an answer to no request that is outstanding
    kResponseMissing,  // an answer behind a READ or atomic response that did not come
};

inline constexpr auto kPacketFateNames = std::to_array<std::string_view>({
    "for another station",   "no such queue pair",
    "queue pair not ready",  "not from the peer",
    "P_Key mismatch",        "wrong service",
    "no flow rule",          "device fatal",
    "invariant CRC wrong",   "of a VLAN that the host is not in",
    "its host has no power", "PSN out of sequence",
    "behind an RNR NAK",     "no receive posted",
    "request refused",       "behind a refused request",
    "rest of a cut message", "duplicate not kept",
    "answer not awaited",    "earlier response missing",
});
static_assert(kPacketFateNames.size() ==
              static_cast<std::size_t>(PacketFate::kResponseMissing) + 1);
constexpr std::string_view to_string(PacketFate fate) {
    return kPacketFateNames[static_cast<std::size_t>(fate)];
}

// Returns true for what an engine discards: it never begins a chain of causes.
constexpr bool is_consequence(PacketFate fate) {
    return fate >= PacketFate::kOutOfSequence;
}
constexpr bool is_consequence(std::string_view fate) {
    const auto* const found = std::ranges::find(kPacketFateNames, fate);
    return found != kPacketFateNames.end() &&
           is_consequence(static_cast<PacketFate>(found - kPacketFateNames.begin()));
}

}  // namespace simverbs
