#include "fabric/mad/datagram_address.hpp"

#include <algorithm>

#include "fabric/mad/datagram.hpp"

namespace fabric {

namespace {

// LRH, BTH, DETH, ICRC, VCRC.
constexpr std::uint32_t kHeaderBytes = 8 + 12 + 8 + 4 + 2;
constexpr std::uint32_t kGrhBytes = 40;
constexpr std::uint16_t kFullMember = 0x8000;

std::uint8_t index_of_gid(const PortAttributes& own, const Gid& gid) {
    const auto found = std::find_if(own.gids.begin(), own.gids.end(),
                                    [&gid](const GidEntry& entry) { return entry.gid == gid; });
    return found == own.gids.end() ? std::uint8_t{0}
                                   : static_cast<std::uint8_t>(found - own.gids.begin());
}

}  // namespace

void address_datagram(Frame& frame, const PortAttributes& own, const DatagramAddress& to) {
    frame.wire_bytes = kHeaderBytes + static_cast<std::uint32_t>(mad::kDatagramBytes);
    frame.payload_bytes = mad::kDatagramBytes;
    frame.slid = Lid(static_cast<std::uint16_t>(own.lid.value() | to.path_bits));
    frame.dlid = to.lid;
    frame.sl = to.sl;
    if (frame.transport_as<ManagementHeader>().source_qp == kSubnetManagementQp) {
        frame.vl = kManagementVl;
    } else if (to.pkey_index < own.pkeys.size()) {
        frame.pkey = own.pkeys[to.pkey_index];
    }
    if (to.global) {
        frame.wire_bytes += kGrhBytes;
        frame.has_grh = true;
        const std::size_t index = std::min<std::size_t>(to.global->gid_index, own.gids.size() - 1);
        frame.grh = {own.gids[index].gid, to.global->gid, to.global->flow_label,
                     to.global->traffic_class, to.global->hop_limit};
    }
}

DatagramAddress sender_of(const Frame& frame, const PortAttributes& own) {
    const auto& header = frame.transport_as<ManagementHeader>();
    DatagramAddress from{.lid = frame.slid,
                         .qp = header.source_qp,
                         .qkey = header.qkey,
                         .sl = frame.sl,
                         .path_bits = 0,
                         .pkey_index = index_of_pkey(own, frame.pkey).value_or(0),
                         .global = std::nullopt};
    if (is_unicast(frame.dlid)) {
        from.path_bits = static_cast<std::uint8_t>(frame.dlid.value() & ((1U << own.lmc) - 1));
    }
    if (frame.has_grh) {
        from.global =
            GlobalAddress{frame.grh.sgid, index_of_gid(own, frame.grh.dgid), frame.grh.hop_limit,
                          frame.grh.traffic_class, frame.grh.flow_label};
    }
    return from;
}

std::optional<std::uint16_t> index_of_pkey(const PortAttributes& own, std::uint16_t pkey) {
    for (std::size_t i = 0; i < own.pkeys.size(); ++i) {
        const bool same = ((own.pkeys[i] ^ pkey) & ~kFullMember) == 0;
        if (own.pkeys[i] != 0 && same && ((own.pkeys[i] | pkey) & kFullMember) != 0) {
            return static_cast<std::uint16_t>(i);
        }
    }
    return std::nullopt;
}

}  // namespace fabric
