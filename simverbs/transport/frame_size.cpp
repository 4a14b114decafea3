#include "simverbs/transport/frame_size.hpp"

#include "fabric/net/ethernet.hpp"
#include "fabric/net/ethernet_queueing.hpp"

#include "simverbs/wire/packet.hpp"

namespace simverbs {

void size_frame(fabric::Frame& frame, const fabric::Port& port, const WireOpcode& operation,
                std::uint32_t payload_bytes) {
    if (port.attributes().link_layer == fabric::LinkLayer::kEthernet) {
        frame.payload_bytes = roce_packet_bytes(operation, payload_bytes, frame.over_udp,
                                                is_ipv4_mapped(frame.grh.dgid));
        const bool tagged = frame.vlan != 0 || frame.sl % fabric::kPriorities != 0;
        frame.wire_bytes =
            fabric::ethernet_wire_bytes(fabric::kEthernetHeaderBytes +
                                        (tagged ? fabric::kVlanTagBytes : 0) + frame.payload_bytes);
        return;
    }
    frame.payload_bytes = payload_bytes;
    frame.wire_bytes = infiniband_wire_bytes(operation, payload_bytes, frame.has_grh);
}

}  // namespace simverbs
