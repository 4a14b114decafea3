#include "simverbs/faults/packet_faults.hpp"

#include <optional>
#include <utility>
#include <variant>

#include "fabric/mad/datagram_pool.hpp"
#include "fabric/net/management.hpp"
#include "fabric/net/node.hpp"

#include "simverbs/cm/messages.hpp"
#include "simverbs/transport/frame_size.hpp"

namespace simverbs {
namespace {

bool has_field(const WireOpcode& operation, const HeaderFieldRow& row) {
    const bool of_atomic =
        operation.has(WireHeader::kAtomicEth) &&
        (row.field == SIMVERBS_HEADER_RKEY || row.field == SIMVERBS_HEADER_REMOTE_ADDRESS);
    return operation.has(row.header) || of_atomic;
}

void write(Packet& packet, simverbs_header_field field, std::uint64_t value) {
    const auto word = static_cast<std::uint32_t>(value);
    switch (field) {
        case SIMVERBS_HEADER_OPCODE:
            packet.opcode = static_cast<std::uint8_t>(value);
            return;
        case SIMVERBS_HEADER_PSN:
            packet.psn = Psn(word);
            return;
        case SIMVERBS_HEADER_DEST_QP:
            packet.dest_qpn = word;
            return;
        case SIMVERBS_HEADER_PKEY:
            packet.pkey = static_cast<std::uint16_t>(value);
            return;
        case SIMVERBS_HEADER_QKEY:
            packet.qkey = word;
            return;
        case SIMVERBS_HEADER_SYNDROME:
            packet.syndrome = *decode_aeth_syndrome(static_cast<std::uint8_t>(value));
            return;
        case SIMVERBS_HEADER_MSN:
            packet.msn = word;
            return;
        case SIMVERBS_HEADER_RKEY:
            packet.rkey = word;
            return;
        case SIMVERBS_HEADER_REMOTE_ADDRESS:
            packet.remote_address = value;
            return;
        case SIMVERBS_HEADER_LENGTH:
            packet.dma_length = word;
            return;
        case SIMVERBS_HEADER_IMMEDIATE:
            packet.immediate = word;
            return;
        case SIMVERBS_HEADER_ACK_REQUEST:
            packet.ack_request = value != 0;
            return;
        case SIMVERBS_HEADER_SOLICITED:
            packet.solicited = value != 0;
            return;
    }
}

// Returns the REJ that answers a REQ or REP; nothing for other datagrams.
std::optional<cm::Rej> rejection_of(const fabric::mad::Datagram& datagram, RejectReason reason) {
    const std::optional<cm::Message> message = cm::parse(datagram);
    if (!message) {
        return std::nullopt;
    }
    if (const auto* const request = std::get_if<cm::Req>(&*message)) {
        return cm::rejection_of(*request, reason);
    }
    if (const auto* const reply = std::get_if<cm::Rep>(&*message)) {
        return cm::rejection_of(*reply, reason);
    }
    return std::nullopt;
}

}  // namespace

bool holds(simverbs_header_field field, std::uint64_t value) {
    if (value > row_of(field).most) {
        return false;
    }
    const auto byte = static_cast<std::uint8_t>(value);
    return (field != SIMVERBS_HEADER_SYNDROME || decode_aeth_syndrome(byte)) &&
           (field != SIMVERBS_HEADER_OPCODE || wire_opcode(byte).known);
}

bool CorruptPacket::applies(const fabric::Frame& frame) const {
    if (!has_packet(frame)) {
        return false;
    }
    const Packet& packet = frame.transport_as<Packet>();
    return byte_ < packet.operation().header_bytes + padded(packet.payload.length) + kIcrcBytes;
}

fabric::Verdict CorruptPacket::act(fabric::Frame& frame,
                                   const fabric::LinkDirection& /*direction*/) {
    Packet& packet = frame.transport_as<Packet>();
    packet.corrupted_byte = static_cast<std::uint16_t>(byte_);
    packet.corrupted_bits = bits_;
    return fabric::Verdict::kPass;
}

bool RewritePacket::applies(const fabric::Frame& frame) const {
    return has_packet(frame) && has_field(frame.transport_as<Packet>().operation(), field_);
}

fabric::Verdict RewritePacket::act(fabric::Frame& frame,
                                   const fabric::LinkDirection& /*direction*/) {
    write(frame.transport_as<Packet>(), field_.field, value_);
    return fabric::Verdict::kPass;
}

bool LandLate::applies(const fabric::Frame& frame) const {
    return has_packet(frame) && frame.transport_as<Packet>().payload.length > 0;
}

fabric::Verdict LandLate::act(fabric::Frame& frame, const fabric::LinkDirection& /*direction*/) {
    frame.transport_as<Packet>().landing_delay = delay_;
    return fabric::Verdict::kPass;
}

// Those packets that make a responder look for a receive.
bool WithholdReceive::applies(const fabric::Frame& frame) const {
    if (!has_packet(frame)) {
        return false;
    }
    const WireOpcode& operation = frame.transport_as<Packet>().operation();
    return !operation.response() &&
           (operation.kind == MessageKind::kSend
                ? operation.starts_message
                : operation.ends_message && operation.trailer == Trailer::kImmediate);
}

fabric::Verdict WithholdReceive::act(fabric::Frame& frame,
                                     const fabric::LinkDirection& /*direction*/) {
    frame.transport_as<Packet>().finds_no_receive = true;
    return fabric::Verdict::kPass;
}

bool MarkCongestion::applies(const fabric::Frame& frame) const {
    return has_packet(frame) && frame.over_udp;
}

fabric::Verdict MarkCongestion::act(fabric::Frame& frame,
                                    const fabric::LinkDirection& /*direction*/) {
    frame.ecn = fabric::Ecn::kCongested;
    return fabric::Verdict::kPass;
}

fabric::FramePtr AnswerPacket::frame_back(const fabric::Frame& request,
                                          const fabric::LinkDirection& direction) const {
    fabric::FramePtr frame = request.pool->make();
    frame->source = ends_.destination(request).value_or(direction.to().node().id());
    frame->slid = request.dlid;
    frame->dlid = request.slid;
    frame->pkey = request.pkey;
    frame->sl = request.sl;
    frame->over_udp = request.over_udp;
    frame->has_grh = request.has_grh;
    if (request.has_grh) {
        frame->grh = request.grh;
        std::swap(frame->grh.sgid, frame->grh.dgid);
    }
    frame->source_mac = request.destination_mac;
    frame->destination_mac = request.source_mac;
    frame->vlan = request.vlan;
    return frame;
}

void AnswerPacket::answer(const fabric::Frame& request, const fabric::LinkDirection& direction,
                          Packet packet, std::uint32_t payload_bytes) {
    const Packet& asked = request.transport_as<Packet>();
    fabric::FramePtr frame = frame_back(request, direction);
    frame->flow = asked.dest_qpn;
    packet.pkey = asked.pkey;
    packet.dest_qpn = request.flow;
    packet.source_qpn = asked.dest_qpn;
    size_frame(*frame, direction.to(), packet.operation(), payload_bytes);
    frame->transport_as<Packet>() = packet;
    direction.to().send(std::move(frame));
}

bool NotifyCongestion::applies(const fabric::Frame& frame) const {
    return has_packet(frame) && frame.over_udp &&
           frame.transport_as<Packet>().operation().kind != MessageKind::kCongestionNotification;
}

fabric::Verdict NotifyCongestion::act(fabric::Frame& frame,
                                      const fabric::LinkDirection& direction) {
    Packet packet;
    packet.opcode = kCnpOpcode;
    answer(frame, direction, packet, kCnpPayloadBytes);
    return fabric::Verdict::kPass;
}

bool RefusePacket::applies(const fabric::Frame& frame) const {
    if (!has_packet(frame)) {
        return false;
    }
    const WireOpcode& operation = frame.transport_as<Packet>().operation();
    return operation.known && operation.request &&
           encode_opcode(operation.transport, MessageKind::kAck, PacketPosition::kOnly);
}

fabric::Verdict RefusePacket::act(fabric::Frame& frame, const fabric::LinkDirection& direction) {
    const Packet& asked = frame.transport_as<Packet>();
    Packet packet;
    packet.opcode =
        *encode_opcode(asked.operation().transport, MessageKind::kAck, PacketPosition::kOnly);
    packet.psn = asked.psn;
    packet.syndrome = syndrome_;
    packet.cause = FaultCause::kInjectedStatus;
    answer(frame, direction, packet, 0);
    return fabric::Verdict::kDrop;
}

bool RejectConnection::applies(const fabric::Frame& frame) const {
    const std::optional<CmMessage> message = cm_message_of(frame);
    return message == CmMessage::kReq || message == CmMessage::kRep;
}

// All datagrams have one size, so the frame back is as long.
fabric::Verdict RejectConnection::act(fabric::Frame& frame,
                                      const fabric::LinkDirection& direction) {
    const std::optional<cm::Rej> rejection = rejection_of(fabric::datagram_of(frame), reason_);
    if (!rejection) {
        return fabric::Verdict::kPass;
    }
    fabric::DatagramCargo& cargo =
        static_cast<const fabric::DatagramCargo*>(frame.cargo)->pool().take();
    cargo.datagram = cm::build(*rejection);
    const auto& header = frame.transport_as<fabric::ManagementHeader>();
    fabric::FramePtr answer = frame_back(frame, direction);
    answer->cargo = &cargo;
    answer->is_management = true;
    answer->flow = header.destination_qp;
    answer->wire_bytes = frame.wire_bytes;
    answer->payload_bytes = frame.payload_bytes;
    answer->transport_as<fabric::ManagementHeader>() = {header.destination_qp, header.source_qp,
                                                        header.qkey};
    direction.to().send(std::move(answer));
    return fabric::Verdict::kDrop;
}

}  // namespace simverbs
