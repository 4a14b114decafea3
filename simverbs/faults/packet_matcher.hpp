// Which packets a fault is meant for: addressed as people think of them, by hosts, operation, queue
// pair, distance from its first PSN and number of the attempt.
//
// Frames without a transport (management, raw Ethernet) match where nothing is asked of one.
// Messages of communication management have names like operations: CM_REQ.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <vector>

#include "fabric/core/strong_id.hpp"
#include "fabric/faults/frame_matcher.hpp"
#include "fabric/net/link_direction.hpp"

#include "simverbs/model/cm_codes.hpp"
#include "simverbs/model/fault_values.hpp"
#include "simverbs/model/psn.hpp"
#include "simverbs/wire/packet.hpp"

namespace simverbs {

// Facts about the ends of a packet that only the devices know.
class PacketEnds {
  public:
    // Where queue pair `qpn` of a node stands in the order of its device's, from 1, and where its
    // PSNs begin.
    struct Origin {
        std::uint32_t ordinal = 0;
        Psn first_psn{0};
    };
    // Nothing: there is no such queue pair (any more).
    [[nodiscard]] virtual std::optional<Origin> origin(fabric::NodeId node,
                                                       std::uint32_t qpn) const = 0;
    // Whom a frame is addressed to; nothing: nobody, or a group.
    [[nodiscard]] virtual std::optional<fabric::NodeId> destination(
        const fabric::Frame& frame) const = 0;

  protected:
    ~PacketEnds() = default;
};

struct PacketPattern {
    std::vector<fabric::NodeId> from;  // empty: any
    std::vector<fabric::NodeId> to;
    std::optional<std::bitset<256>> opcodes;
    bool management = false;  // management datagrams, and nothing else
    // These messages of communication management, and nothing else; by number of CmMessage.
    std::optional<std::bitset<kCmMessages.size()>> cm_messages;
    simverbs_direction direction = SIMVERBS_EITHER_WAY;
    // The requester's queue pair; 0: any.
    std::uint32_t ordinal = 0;
    std::uint32_t qpn = 0;
    // From 1; 0: any.
    std::uint32_t relative_psn = 0;
    std::uint32_t attempt = 0;

    // Returns true if frames without a transport are left out.
    [[nodiscard]] bool asks_for_packets() const {
        return opcodes || direction != SIMVERBS_EITHER_WAY || ordinal != 0 || qpn != 0 ||
               relative_psn != 0 || attempt != 0;
    }
};

// The opcodes whose operation is `name` or one of its kind ("SEND" of "SEND_FIRST"), whose service
// is `name` ("UD"), or both ("UD_SEND"). None: no such operation.
std::bitset<256> opcodes_named(std::string_view name);

// The messages of communication management of that name or kind: "CM", "CM_SIDR", "CM_REQ".
std::bitset<kCmMessages.size()> cm_messages_named(std::string_view name);

// Returns the message of communication management that a frame carries, if it does.
std::optional<CmMessage> cm_message_of(const fabric::Frame& frame);

// Returns true if the frame carries a packet of the transport.
inline bool has_packet(const fabric::Frame& frame) {
    return !frame.is_management && !frame.is_raw;
}

class PacketMatcher final : public fabric::FrameMatcher {
  public:
    PacketMatcher(PacketPattern pattern, const PacketEnds& ends)
        : pattern_(std::move(pattern)), ends_(ends) {}

    bool matches(const fabric::Frame& frame) override;
    [[nodiscard]] fabric::FrameDescription describe(const fabric::Frame& frame) const override;

  private:
    [[nodiscard]] bool is_cm_message(const fabric::Frame& frame) const;
    [[nodiscard]] bool is_between(const fabric::Frame& frame) const;
    [[nodiscard]] bool is_of_queue_pair(const fabric::Frame& frame, const Packet& packet) const;
    // The queue pair whose request a packet is, or answers.
    struct Place {
        std::uint32_t qpn;
        std::uint32_t ordinal;
        std::uint32_t relative_psn;  // 1 is its first
    };
    [[nodiscard]] std::optional<Place> place_of(const fabric::Frame& frame,
                                                const Packet& packet) const;

    PacketPattern pattern_;
    const PacketEnds& ends_;
};

}  // namespace simverbs
