#include "simverbs/hca/packet_train.hpp"

#include "simverbs/transport/frame_size.hpp"

namespace simverbs {
namespace {

class Cutter final : public fabric::TrainCutter {
  public:
    void keep_first(fabric::Frame& frame, std::uint16_t packets) const override {
        Packet& packet = frame.transport_as<Packet>();
        const WireOpcode& operation = packet.operation();
        packet.opcode = kEncodeOpcode(operation.transport, operation.kind, PacketPosition::kMiddle,
                                      Trailer::kNone);
        packet.packets = packets;
        packet.payload.length = std::uint32_t{packets} * packet.train_mtu;
        packet.ack_request = false;
        packet.solicited = false;
    }
    void drop_first(fabric::Frame& frame, std::uint16_t packets) const override {
        Packet& packet = frame.transport_as<Packet>();
        const std::uint32_t bytes = std::uint32_t{packets} * packet.train_mtu;
        packet.psn = packet.psn + packets;
        packet.packets = static_cast<std::uint16_t>(packet.packets - packets);
        packet.payload.offset += bytes;
        packet.payload.length -= bytes;
    }
};

constinit const Cutter kCutter;

}  // namespace

void size_train(fabric::Frame& frame, const fabric::Port& port, const Packet& train) {
    const std::uint32_t before_last = (train.packets - 1U) * std::uint32_t{train.train_mtu};
    size_frame(frame, port, train.operation(), train.payload.length - before_last);
    frame.last_wire_bytes = frame.wire_bytes;
    frame.last_payload_bytes = frame.payload_bytes;
    size_frame(frame, port, train.operation(), train.train_mtu);
    frame.packets = train.packets;
    frame.cutter = &kCutter;
}

}  // namespace simverbs
