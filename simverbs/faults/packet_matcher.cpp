#include "simverbs/faults/packet_matcher.hpp"

#include <algorithm>

#include "fabric/mad/datagram_pool.hpp"

namespace simverbs {
namespace {

bool contains(const std::vector<fabric::NodeId>& nodes, fabric::NodeId node) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

bool is_of_kind(std::string_view operation, std::string_view name) {
    return !name.empty() && operation.starts_with(name) &&
           (operation.size() == name.size() || operation[name.size()] == '_');
}

// UD, and UD_SEND_ONLY. The opcode of CNP has no service.
bool is_of_service(const WireOpcode& row, std::string_view name) {
    if (row.transport == WireTransport::kNone || !is_of_kind(name, to_string(row.transport))) {
        return false;
    }
    name.remove_prefix(to_string(row.transport).size());
    return name.empty() || is_of_kind(row.operation, name.substr(1));
}

}  // namespace

std::optional<CmMessage> cm_message_of(const fabric::Frame& frame) {
    if (!frame.is_management) {
        return std::nullopt;
    }
    const fabric::mad::Datagram& datagram = fabric::datagram_of(frame);
    return datagram.management_class() == fabric::mad::Class::kCommunication
               ? find_cm_message(datagram.attribute())
               : std::nullopt;
}

std::bitset<256> opcodes_named(std::string_view name) {
    std::bitset<256> found;
    for (const WireOpcode& row : kWireOpcodes) {
        found[row.opcode] =
            row.known && (is_of_kind(row.operation, name) || is_of_service(row, name));
    }
    return found;
}

std::bitset<kCmMessages.size()> cm_messages_named(std::string_view name) {
    std::bitset<kCmMessages.size()> found;
    for (const CmMessageProperties& row : kCmMessages) {
        found[static_cast<std::size_t>(row.message)] = is_of_kind(row.operation, name);
    }
    return found;
}

bool PacketMatcher::matches(const fabric::Frame& frame) {
    if (!is_between(frame) || (pattern_.management && !frame.is_management) ||
        (pattern_.cm_messages && !is_cm_message(frame))) {
        return false;
    }
    if (!pattern_.asks_for_packets()) {
        return true;
    }
    if (!has_packet(frame)) {
        return false;
    }
    const Packet& packet = frame.transport_as<Packet>();
    const bool is_response = packet.operation().response();
    if ((pattern_.direction == SIMVERBS_REQUESTS && is_response) ||
        (pattern_.direction == SIMVERBS_RESPONSES && !is_response) ||
        (pattern_.opcodes && !pattern_.opcodes->test(packet.opcode)) ||
        !is_of_queue_pair(frame, packet)) {
        return false;
    }
    return pattern_.attempt == 0 || packet.attempt == pattern_.attempt;
}

bool PacketMatcher::is_cm_message(const fabric::Frame& frame) const {
    const auto message = cm_message_of(frame);
    return message && pattern_.cm_messages->test(static_cast<std::size_t>(*message));
}

bool PacketMatcher::is_between(const fabric::Frame& frame) const {
    if (!pattern_.from.empty() && !contains(pattern_.from, frame.source)) {
        return false;
    }
    if (pattern_.to.empty()) {
        return true;
    }
    const auto destination = ends_.destination(frame);
    return destination && contains(pattern_.to, *destination);
}

std::optional<PacketMatcher::Place> PacketMatcher::place_of(const fabric::Frame& frame,
                                                            const Packet& packet) const {
    const bool is_response = packet.operation().response();
    const std::uint32_t qpn = is_response ? packet.dest_qpn : frame.flow;
    const auto node = is_response ? ends_.destination(frame) : frame.source;
    const auto origin = node ? ends_.origin(*node, qpn) : std::nullopt;
    if (!origin) {
        return std::nullopt;
    }
    const Psn steps = packet.psn + (Psn::kModulus - origin->first_psn.value());
    return Place{qpn, origin->ordinal, steps.value() + 1};
}

bool PacketMatcher::is_of_queue_pair(const fabric::Frame& frame, const Packet& packet) const {
    if (pattern_.ordinal == 0 && pattern_.qpn == 0 && pattern_.relative_psn == 0) {
        return true;
    }
    const auto place = place_of(frame, packet);
    return place && (pattern_.qpn == 0 || pattern_.qpn == place->qpn) &&
           (pattern_.ordinal == 0 || pattern_.ordinal == place->ordinal) &&
           (pattern_.relative_psn == 0 || pattern_.relative_psn == place->relative_psn);
}

fabric::FrameDescription PacketMatcher::describe(const fabric::Frame& frame) const {
    if (frame.is_management) {
        const auto message = cm_message_of(frame);
        return {.operation = message ? properties(*message).operation : "MAD"};
    }
    if (frame.is_raw) {
        return {.operation = "raw"};
    }
    const Packet& packet = frame.transport_as<Packet>();
    const auto place = place_of(frame, packet);
    return {.operation = packet.operation().operation,
            .relative_psn = place ? place->relative_psn : 0,
            .attempt = packet.attempt,
            .to_flow = packet.dest_qpn};
}

}  // namespace simverbs
