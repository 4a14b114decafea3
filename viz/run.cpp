#include "viz/run.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "simverbs/model/aeth.hpp"
#include "simverbs/model/cm_codes.hpp"
#include "simverbs/model/packet_fate.hpp"
#include "simverbs/model/wire_opcodes.hpp"

namespace simverbs::viz {
namespace {

constexpr std::uint32_t kMulticastQpn = 0xFFFFFF;

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
    packet.dma_length = record.id("dma_length");
    packet.retransmission = record.number("retransmission") != 0;
    packet.syndrome = static_cast<std::uint8_t>(record.number("syndrome"));
    packet.sent = record.time;
    packet.sent_seq = record.seq;
    return packet;
}

// A message of the communication manager; nothing of other management datagrams.
std::optional<RunPacket> message_of(const Record& record) {
    constexpr std::int64_t kCommunicationManagement = 0x07;  // IBA table 111
    const auto* const found = std::find_if(
        kCmMessages.begin(), kCmMessages.end(), [&record](const CmMessageProperties& row) {
            return row.attribute_id == record.number("attribute");
        });
    if (record.number("class") != kCommunicationManagement || found == kCmMessages.end()) {
        return std::nullopt;
    }
    RunPacket packet;
    packet.from = {record.node, record.id("qpn")};
    packet.dest_qpn = record.id("dest_qpn");
    packet.opcode = found->operation;
    packet.is_management = true;
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
        } else if (record.name == "delivered") {
            hand_out(record, {});
        } else if (record.name == "dropped") {
            drop(record);
        } else if (record.name == "link_state") {
            for (RunLink& link : run_.links) {
                link.up = link.name == record.text("link") ? record.text("to") == "UP" : link.up;
            }
        }
    }

    // Says of packets that nobody took where they ended; who the others were for.
    void finish() {
        for (const auto& [number, stray] : strays_) {
            RunPacket& packet = run_.packets[number];
            if (packet.arrivals.empty() && packet.lost.empty()) {
                packet.lost = stray.second;
                packet.lost_where = run_.label(stray.first->node);
                packet.lost_at = stray.first->node;
                packet.lost_time = stray.first->time;
                packet.lost_seq = stray.first->seq;
            }
        }
        for (const RunPacket& packet : run_.packets) {
            if (!packet.arrivals.empty() && packet.dest_qpn != kMulticastQpn) {
                run_.peers.insert_or_assign(std::pair(packet.from, packet.dest_qpn),
                                            packet.arrivals.back().at);
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

    void open(const Record& record, RunPacket packet) {
        open_[{record.node, record.id("qpn"), record.id("frame")}] = run_.packets.size();
        run_.packets.push_back(std::move(packet));
    }

    void follow(const Record& record) {
        if (record.name == "packet_sent") {
            open(record, packet_of(record));
            return;
        }
        if (record.name == "datagram_sent") {
            if (std::optional<RunPacket> message = message_of(record); message) {
                open(record, std::move(*message));
            }
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
                                        record.number("arrival"), bytes});
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
                packet->lost_seq = record.seq;
                packet->lost_fault = fault_of(record);
            }
        } else if (record.name == "frame_received" && packet != nullptr) {
            const auto node = run_.nodes.find(record.node);
            if (node != run_.nodes.end() && !node->second.is_switch) {
                last_received_[record.node] = {found->second, record.time, record.seq};
                if (packet->dest_qpn != kMulticastQpn) {
                    packet->arrivals.push_back(
                        {{record.node, packet->dest_qpn}, record.time, record.seq, {}});
                }
            }
        }
    }

    // The packet that came to this node last.
    RunPacket* last_received(std::uint32_t node) {
        const auto last = last_received_.find(node);
        return last == last_received_.end() ? nullptr : &run_.packets[last->second.packet];
    }

    // Each queue pair of a multicast group has a record of its own for what it takes or drops.
    void hand_out(const Record& record, std::string why) {
        RunPacket* const packet = last_received(record.node);
        if (packet == nullptr || packet->dest_qpn != kMulticastQpn) {
            return;
        }
        const Received& last = last_received_.at(record.node);
        if (last.time == record.time) {
            packet->arrivals.push_back(
                {{record.node, record.id("qpn")}, last.time, last.seq, std::move(why)});
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

    // A packet that begins a message ends the one that was cut, and is taken itself.
    void drop(const Record& record) {
        const CompletionFault* const cause = cause_named(record.text("cause"));
        std::string why(cause == nullptr ? record.text("cause") : cause->description);
        const RunPacket* const packet = last_received(record.node);
        if (packet == nullptr ||
            (cause != nullptr && cause->cause == FaultCause::kUnackedMessageCut &&
             wire_opcode(packet->bth_opcode).starts_message)) {
            return;
        }
        if (packet->dest_qpn == kMulticastQpn) {
            hand_out(record, std::move(why));
        } else {
            discard(record, record.id("qpn"), std::move(why));
        }
    }

    // The record of a discarded packet follows that of its arrival. Switches flood: a copy at
    // another station, or of a group at a host without a member, is told only if it is the only
    // one.
    void discard(const Record& record, std::uint32_t qpn, std::string why) {
        RunPacket* const packet = last_received(record.node);
        if (packet == nullptr || packet->dest_qpn != qpn || packet->psn != record.id("psn")) {
            return;
        }
        const bool is_stray = record.text("fate") == to_string(PacketFate::kOtherStation);
        if (!is_stray && qpn != kMulticastQpn) {
            if (!packet->arrivals.empty() && packet->arrivals.back().at.node == record.node) {
                packet->arrivals.back().discarded = std::move(why);
            }
            return;
        }
        strays_[last_received_.at(record.node).packet] = {&record, std::move(why)};
        if (is_stray && !packet->arrivals.empty() &&
            packet->arrivals.back().at.node == record.node) {
            packet->arrivals.pop_back();
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
    struct Received {
        std::size_t packet = 0;
        std::int64_t time = 0;
        std::uint64_t seq = 0;
    };
    std::map<std::uint32_t, Received> last_received_;                      // by node
    std::map<std::size_t, std::pair<const Record*, std::string>> strays_;  // by packet
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

std::int64_t RunLink::wire_time(std::uint64_t bytes) const {
    __extension__ using Wide = unsigned __int128;
    constexpr Wide kBitPicosecondsAByte = 8'000'000'000'000;
    return bits_per_second == 0
               ? 0
               : static_cast<std::int64_t>(bytes * kBitPicosecondsAByte / bits_per_second);
}

std::size_t RunPacket::ends() const {
    return std::max<std::size_t>(1, arrivals.size() + (lost.empty() ? 0 : 1));
}

const Arrival* RunPacket::arrival(std::size_t end) const {
    return end < arrivals.size() ? &arrivals[end] : nullptr;
}

std::int64_t RunPacket::end_time(std::size_t end) const {
    return end < arrivals.size() ? arrivals[end].time : lost_time;
}

std::uint64_t RunPacket::end_seq(std::size_t end) const {
    return end < arrivals.size() ? arrivals[end].seq : lost_seq;
}

std::string RunPacket::loss_words() const {
    return fmt::format("{}, lost at {}", lost_fault.empty() ? lost : lost_fault, lost_where);
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
    constexpr std::uint32_t kGsi = 1;
    return qp.qpn == kGsi ? fmt::format("{} GSI", label(qp.node))
                          : fmt::format("{} QP 0x{:x}", label(qp.node), qp.qpn);
}

std::string Run::fault_text(const Record& fired) const {
    const auto named = fault_names.find(fired.number("fault"));
    return fmt::format("fault {}: {}",
                       named == fault_names.end() ? std::to_string(fired.number("fault"))
                                                  : fmt::format("\"{}\"", named->second),
                       fired.text("action"));
}

std::optional<QpName> Run::destination(const RunPacket& packet) const {
    if (!packet.arrivals.empty()) {
        return packet.arrivals.front().at;
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

std::vector<QpName> Run::find_qps(std::string_view text) const {
    const std::size_t colon = text.rfind(':');
    std::optional<std::uint32_t> qpn;
    if (colon != std::string_view::npos) {
        std::string_view digits = text.substr(colon + 1);
        const bool is_hex = digits.starts_with("0x");
        digits.remove_prefix(is_hex ? 2 : 0);
        const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(),
                                                   qpn.emplace(), is_hex ? 16 : 10);
        if (error != std::errc() || rest != digits.data() + digits.size()) {
            return {};
        }
    }
    std::set<QpName> known;
    for (const auto& [qp, service] : services) {
        known.insert(qp);
    }
    for (const RunPacket& packet : packets) {
        known.insert(packet.from);
    }
    std::vector<QpName> found;
    for (const QpName& qp : known) {
        const auto node = nodes.find(qp.node);
        if (node != nodes.end() && node->second.label == text.substr(0, colon) &&
            (!qpn || *qpn == qp.qpn)) {
            found.push_back(qp);
        }
    }
    return found;
}

Run read_run(const Trace& trace) {
    Run run;
    Reader reader(run);
    for (const Record& record : trace.records) {
        reader.read(record);
    }
    reader.finish();
    if (!trace.records.empty()) {
        run.begin = trace.records.front().time;
        run.end = trace.records.back().time;
    }
    return run;
}

}  // namespace simverbs::viz
