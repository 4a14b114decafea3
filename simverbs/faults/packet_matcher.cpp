#include "simverbs/faults/packet_matcher.hpp"

#include <algorithm>

namespace simverbs {
namespace {

bool contains(const std::vector<fabric::NodeId>& nodes, fabric::NodeId node) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace

std::bitset<256> opcodes_named(std::string_view name) {
    std::bitset<256> found;
    for (const WireOpcode& row : kWireOpcodes) {
        const bool same_kind =
            row.operation.starts_with(name) &&
            (row.operation.size() == name.size() || row.operation[name.size()] == '_');
        found[row.opcode] = row.known && !name.empty() && same_kind;
    }
    return found;
}

bool PacketMatcher::matches(const fabric::Frame& frame) {
    if (!is_between(frame) || (pattern_.management && !frame.is_management)) {
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
        return {.operation = "MAD"};
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
