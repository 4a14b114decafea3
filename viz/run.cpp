#include "viz/run.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

#include <fmt/format.h>

#include "simverbs/model/aeth.hpp"
#include "simverbs/model/wire_opcodes.hpp"

namespace simverbs::viz {
namespace {

using FrameName = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

FrameName frame_of(const Record& record) {
    return {record.id("source"), record.id("flow"), record.id("frame")};
}

RunPacket packet_of(const Record& record) {
    RunPacket packet;
    packet.from = {record.node, record.id("qpn")};
    packet.dest_qpn = record.id("dest_qpn");
    packet.bth_opcode = static_cast<std::uint8_t>(record.number("bth_opcode"));
    packet.opcode = record.text("opcode");
    packet.psn = record.id("psn");
    packet.payload = record.id("payload");
    packet.retransmission = record.number("retransmission") != 0;
    packet.syndrome = static_cast<std::uint8_t>(record.number("syndrome"));
    packet.sent = record.time;
    packet.sent_seq = record.seq;
    return packet;
}

RunLink link_of(const Record& record) {
    return {.name = std::string(record.text("link")),
            .node = record.node,
            .port = record.id("port"),
            .peer = record.id("peer"),
            .peer_port = record.id("peer_port"),
            .layer = std::string(record.text("layer")),
            .bits_per_second = static_cast<std::uint64_t>(record.number("bits_per_second")),
            .up = record.text("state") == "UP"};
}

// Follows the records one by one.
class Reader {
  public:
    explicit Reader(Run& run) : run_(run) {}

    void read(const Record& record) {
        if (record.category == "object") {
            describe(record);
        } else if (record.category == "packet") {
            follow(record);
        } else if (record.name == "fault_fired") {
            last_fault_ = &record;
        } else if (record.name == "qp_state") {
            states_[{record.node, record.id("qpn")}] = record.text("to");
        } else if (record.name == "dropped") {
            const CompletionFault* const cause = cause_named(record.text("cause"));
            discard(record, record.id("qpn"),
                    std::string(cause == nullptr ? record.text("cause") : cause->description));
        } else if (record.name == "link_state") {
            for (RunLink& link : run_.links) {
                link.up = link.name == record.text("link") ? record.text("to") == "UP" : link.up;
            }
        }
    }

  private:
    void describe(const Record& record) {
        if (record.name == "node") {
            run_.nodes[record.node] = {std::string(record.text("label")),
                                       record.text("kind") == "switch"};
        } else if (record.name == "queue_pair") {
            const QpName qp{record.node, record.id("qpn")};
            run_.services[qp] = record.text("service");
            if (const auto [place, is_new] = run_.places.try_emplace(qp, 0); is_new) {
                place->second = ++queue_pairs_[record.node];
            }
        } else if (record.name == "fault") {
            run_.fault_names[record.number("fault")] = record.text("name");
        } else if (record.name == "link") {
            const auto known = std::find_if(
                run_.links.begin(), run_.links.end(),
                [&record](const RunLink& link) { return link.name == record.text("link"); });
            if (known == run_.links.end()) {
                run_.links.push_back(link_of(record));
            } else {
                *known = link_of(record);
            }
        }
    }

    void follow(const Record& record) {
        if (record.name == "packet_sent") {
            open_[{record.node, record.id("qpn"), record.id("frame")}] = run_.packets.size();
            run_.packets.push_back(packet_of(record));
            return;
        }
        if (record.name == "packet_discarded") {
            discard(record, record.id("dest_qpn"), fate_of(record));
            return;
        }
        if (record.name == "rate_reduced") {
            return;
        }
        PortUse& port = run_.ports[{record.node, record.id("port")}];
        const auto bytes = static_cast<std::uint64_t>(record.number("wire_bytes"));
        const auto found = open_.find(frame_of(record));
        RunPacket* const packet = found == open_.end() ? nullptr : &run_.packets[found->second];
        if (record.name == "frame_sent") {
            ++port.frames;
            port.bytes += bytes;
            if (packet != nullptr) {
                packet->hops.push_back({record.node, record.id("port"), record.number("start"),
                                        record.number("arrival")});
            }
        } else if (record.name == "frame_held_back") {
            --port.frames;
            port.bytes -= bytes;
            if (packet != nullptr && !packet->hops.empty()) {
                packet->hops.pop_back();
            }
        } else if (record.name == "frame_dropped") {
            ++port.lost;
            if (packet != nullptr) {
                packet->lost = record.text("reason");
                packet->lost_where =
                    fmt::format("{} port {}", run_.label(record.node), record.id("port"));
                packet->lost_at = record.node;
                packet->lost_time = record.time;
                packet->end_seq = record.seq;
                packet->lost_fault = fault_of(record);
            }
        } else if (record.name == "frame_received" && packet != nullptr) {
            const auto node = run_.nodes.find(record.node);
            if (node != run_.nodes.end() && !node->second.is_switch) {
                packet->arrived_at = record.node;
                packet->arrived = record.time;
                packet->end_seq = record.seq;
                last_received_[record.node] = found->second;
                run_.peers.insert_or_assign(std::pair(packet->from, packet->dest_qpn),
                                            QpName{record.node, packet->dest_qpn});
            }
        }
    }

    // Returns what a queue pair that is not ready was instead: ERR, for example.
    [[nodiscard]] std::string fate_of(const Record& record) const {
        const std::string fate(record.text("fate"));
        const auto state = states_.find({record.node, record.id("dest_qpn")});
        return fate == "queue pair not ready" && state != states_.end()
                   ? fmt::format("queue pair in {}", state->second)
                   : fate;
    }

    // The record of a discarded packet follows that of its arrival.
    void discard(const Record& record, std::uint32_t qpn, std::string why) {
        const auto last = last_received_.find(record.node);
        if (last == last_received_.end()) {
            return;
        }
        RunPacket& packet = run_.packets[last->second];
        if (packet.dest_qpn == qpn && packet.psn == record.id("psn")) {
            packet.discarded = std::move(why);
        }
    }

    // The fault that fired on this frame at the same instant; "" where none did.
    [[nodiscard]] std::string fault_of(const Record& dropped) const {
        const bool is_cause = last_fault_ != nullptr && dropped.text("reason") == "fault" &&
                              last_fault_->time == dropped.time &&
                              last_fault_->id("source") == dropped.id("source") &&
                              last_fault_->id("flow") == dropped.id("flow");
        return is_cause ? run_.fault_text(*last_fault_) : std::string();
    }

    Run& run_;
    std::map<FrameName, std::size_t> open_;
    std::map<std::uint32_t, std::size_t> last_received_;  // by node: a packet
    std::map<QpName, std::string> states_;
    std::map<std::uint32_t, std::uint32_t> queue_pairs_;  // by node: how many there were
    const Record* last_fault_ = nullptr;
};

}  // namespace

const CompletionFault* cause_named(std::string_view name) {
    const auto* const found =
        std::find_if(kCompletionFaults.begin(), kCompletionFaults.end(),
                     [name](const CompletionFault& row) { return row.name == name; });
    return found == kCompletionFaults.end() ? nullptr : &*found;
}

std::string size_text(std::uint64_t bytes) {
    constexpr std::uint64_t kKibi = 1024;
    return bytes == 0 || bytes % kKibi != 0 ? fmt::format("{} B", bytes)
           : bytes % (kKibi * kKibi) == 0   ? fmt::format("{} MiB", bytes / kKibi / kKibi)
                                            : fmt::format("{} KiB", bytes / kKibi);
}

std::string RunPacket::answer() const {
    if (!wire_opcode(bth_opcode).has(WireHeader::kAeth)) {
        return {};
    }
    const std::optional<AethSyndrome> decoded = decode_aeth_syndrome(syndrome);
    if (!decoded) {
        return fmt::format("reserved syndrome 0x{:02x}", syndrome);
    }
    if (const std::optional<NakCode> code = decoded->nak_code(); code) {
        return fmt::format("NAK: {}", to_string(*code));
    }
    return decoded->kind == AethKind::kRnrNak ? fmt::format("RNR NAK, timer {}", decoded->value)
                                              : std::string(to_string(decoded->kind));
}

std::string Run::label(std::uint32_t node) const {
    const auto found = nodes.find(node);
    return found == nodes.end() ? fmt::format("node {}", node) : found->second.label;
}

std::string Run::label(const QpName& qp) const {
    return fmt::format("{} QP 0x{:x}", label(qp.node), qp.qpn);
}

std::string Run::fault_text(const Record& fired) const {
    const auto named = fault_names.find(fired.number("fault"));
    return fmt::format("fault {}: {}",
                       named == fault_names.end() ? std::to_string(fired.number("fault"))
                                                  : fmt::format("\"{}\"", named->second),
                       fired.text("action"));
}

std::optional<QpName> Run::destination(const RunPacket& packet) const {
    if (packet.arrived_at) {
        return QpName{*packet.arrived_at, packet.dest_qpn};
    }
    const auto peer = peers.find({packet.from, packet.dest_qpn});
    if (peer != peers.end()) {
        return peer->second;
    }
    std::optional<QpName> only;
    for (const auto& [qp, service] : services) {
        if (qp.qpn == packet.dest_qpn && qp != packet.from) {
            if (only) {
                return std::nullopt;
            }
            only = qp;
        }
    }
    return only;
}

std::optional<QpName> Run::parse_qp(std::string_view text) const {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        return std::nullopt;
    }
    std::string_view digits = text.substr(colon + 1);
    const bool is_hex = digits.starts_with("0x");
    digits.remove_prefix(is_hex ? 2 : 0);
    std::uint32_t qpn = 0;
    const auto [rest, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), qpn, is_hex ? 16 : 10);
    if (error != std::errc() || rest != digits.data() + digits.size()) {
        return std::nullopt;
    }
    for (const auto& [number, node] : nodes) {
        const QpName qp{number, qpn};
        if (node.label == text.substr(0, colon) &&
            (services.contains(qp) ||
             std::any_of(packets.begin(), packets.end(),
                         [&qp](const RunPacket& packet) { return packet.from == qp; }))) {
            return qp;
        }
    }
    return std::nullopt;
}

Run read_run(const Trace& trace) {
    Run run;
    Reader reader(run);
    for (const Record& record : trace.records) {
        reader.read(record);
    }
    if (!trace.records.empty()) {
        run.begin = trace.records.front().time;
        run.end = trace.records.back().time;
    }
    return run;
}

}  // namespace simverbs::viz
