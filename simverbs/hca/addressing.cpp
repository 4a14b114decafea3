#include "simverbs/hca/addressing.hpp"

#include <cerrno>

#include "simverbs/hca/hca.hpp"
#include "simverbs/wire/packet.hpp"

namespace simverbs {
namespace {

constexpr std::uint8_t kMaxServiceLevel = 15;
constexpr std::uint8_t kMaxPathBits = 127;
constexpr std::uint32_t kMaxFlowLabel = 0xFFFFF;
constexpr std::uint8_t kMaxStaticRate = 24;  // IBV_RATE_1200_GBPS

// The LIDs of a port are those that share all but their lowest LMC bits (IBA 4.1.3).
bool has_lid(const fabric::Port& port, fabric::Lid lid) {
    const fabric::PortAttributes& own = port.attributes();
    return lid.value() >> own.lmc == own.lid.value() >> own.lmc && own.lid != fabric::kNoLid;
}

}  // namespace

int resolve_path(const Hca& hca, AddressVector& path) {
    if (!hca.has_port(path.port) || path.sl > kMaxServiceLevel ||
        path.src_path_bits > kMaxPathBits || path.static_rate > kMaxStaticRate) {
        return EINVAL;
    }
    if (!path.is_global) {
        return 0;
    }
    if (path.flow_label > kMaxFlowLabel ||
        path.sgid_index >= hca.personality().limits.port.gid_entries) {
        return EINVAL;
    }
    const std::size_t gids = hca.port(path.port).attributes().gids.size();
    return path.sgid_index < gids ? 0 : ENODATA;
}

void address_frame(fabric::Frame& frame, const fabric::Port& port, const AddressVector& path,
                   std::uint32_t source_qpn) {
    const fabric::PortAttributes& attributes = port.attributes();
    frame.source = port.node().id();
    frame.flow = source_qpn;
    frame.slid =
        fabric::Lid(static_cast<std::uint16_t>(attributes.lid.value() | path.src_path_bits));
    frame.dlid = fabric::Lid(path.dlid);
    frame.sl = path.sl;
    frame.has_grh = path.is_global;
    if (path.is_global) {
        frame.grh.sgid = attributes.gids[path.sgid_index];
        frame.grh.dgid.bytes = path.dgid;
        frame.grh.flow_label = path.flow_label;
        frame.grh.traffic_class = path.traffic_class;
        frame.grh.hop_limit = path.hop_limit;
    }
}

void size_frame(fabric::Frame& frame, const WireOpcode& operation, std::uint32_t payload_bytes) {
    frame.payload_bytes = payload_bytes;
    frame.wire_bytes = infiniband_wire_bytes(operation, payload_bytes, frame.has_grh);
}

bool came_by(const fabric::Frame& frame, const AddressVector& path) {
    return frame.slid == fabric::Lid(path.dlid);
}

bool leads_back(const fabric::Port& port, const AddressVector& path) {
    return has_lid(port, fabric::Lid(path.dlid));
}

bool leads_back(const fabric::Port& port, const fabric::Frame& frame) {
    return has_lid(port, frame.dlid);
}

}  // namespace simverbs
