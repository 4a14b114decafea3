// The operations of a queue of receives on the Ethernet frames that it takes, and which of it a
// device reports (ibv_create_wq(3), ibv_create_qp_ex(3), ibv_query_device_ex(3)).
#pragma once

#include <cstdint>

#include "simverbs/model/enum_set.hpp"
#include "simverbs/model/limits.hpp"

namespace simverbs {

// Same bits as enum ibv_wq_flags.
enum class FrameOffload : std::uint32_t {
    kCvlanStripping = 1U << 0,  // takes the customer VLAN tag out of the frame
    kScatterFcs = 1U << 1,      // puts the frame check sequence behind the frame
    kDelayDrop = 1U << 2,       // keeps frames for which no receive is posted yet
    // Fills the last cache line on the PCI bus. Nothing behind the message is written here, and the
    // bus takes no time, so that nobody sees a difference.
    kPciWriteEndPadding = 1U << 3,
};
template <>
inline constexpr bool kIsSetMember<FrameOffload> = true;
using FrameOffloads = EnumSet<FrameOffload>;

inline constexpr FrameOffloads kKnownFrameOffloads =
    FrameOffload::kCvlanStripping | FrameOffload::kScatterFcs | FrameOffload::kDelayDrop |
    FrameOffload::kPciWriteEndPadding;

constexpr FrameOffloads offered_offloads(const DeviceLimits& limits) {
    const RawPacketCaps caps = limits.raw_packet_caps;
    FrameOffloads offered;
    if (caps.contains(RawPacketCap::kCvlanStripping)) {
        offered = offered | FrameOffload::kCvlanStripping;
    }
    if (caps.contains(RawPacketCap::kScatterFcs)) {
        offered = offered | FrameOffload::kScatterFcs;
    }
    if (limits.caps.contains(DeviceCap::kPciWriteEndPadding)) {
        offered = offered | FrameOffload::kPciWriteEndPadding;
    }
    return offered;
}

}  // namespace simverbs
