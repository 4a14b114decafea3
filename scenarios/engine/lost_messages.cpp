#include "scenarios/engine/lost_messages.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/packet_fate.hpp"

namespace scenarios {

namespace {

constexpr std::uint64_t kMulticastQpn = 0xFFFFFF;

// The cause of a "dropped" record in words.
std::string reason_of(std::string_view cause) {
    using Row = std::pair<std::string_view, std::string_view>;
    constexpr auto kReasons = std::to_array<Row>({
        {"no receive on UC, UD, raw", "no receive was posted"},
        {"wrong Q_Key", "its Q_Key is not that of the queue pair"},
        {"receive of UC, UD, raw: too small",
         "the receive was too short (a datagram needs 40 bytes more, for the GRH)"},
        {"datagram above the SRQ's receive",
         "the receive was too short (a datagram needs 40 bytes more, for the GRH)"},
        {"message cut on UC", "another packet of its message was missing"},
    });
    const auto known = std::ranges::find(kReasons, cause, &Row::first);
    if (known != kReasons.end()) {
        return std::string(known->second);
    }
    const auto row =
        std::ranges::find(simverbs::kCompletionFaults, cause, &simverbs::CompletionFault::name);
    return row == simverbs::kCompletionFaults.end()
               ? std::string(cause)
               : fmt::format("{} ({})", row->description, row->name);
}

class LostMessages {
  public:
    LostMessages(const Question& question, const RunNames* names)
        : question_(question), names_(names) {}

    void see(const Record& record) {
        if (record.name == "queue_pair") {
            owners_[record.number("qpn")].insert(record.node);
        } else if (record.name == "packet_sent") {
            sent_[flow_of(record, "qpn")] = &record;
            if (is_unacknowledged(record)) {
                last_sent_[{record.node, record.number("dest_qpn"), record.number("psn")}] =
                    &record;
            }
        } else if (record.name == "frame_received") {
            const auto found = sent_.find(flow_of(record, "flow"));
            arrived_[record.node] = found == sent_.end() ? nullptr : found->second;
        } else if (record.name == "dropped") {
            const Record* const hit = hit_of_arrived(record.node);
            lose_arrived(record, record.number("qpn"),
                         hit != nullptr && hit->text("action") == "no_receive"
                             ? fault_text(*hit) + " hid the receives"
                             : reason_of(record.text("cause")));
        } else if (record.name == "packet_discarded") {
            lose_discarded(record);
        } else if (record.name == "fault") {
            fault_names_[record.number("fault")] = record.text("name");
        } else if (record.name == "fault_fired") {
            fired_ = &record;
        } else if (record.name == "frame_sent") {
            if (has_hit(record)) {
                hits_[flow_of(record, "flow")] = fired_;
            }
        } else if (record.name == "frame_dropped") {
            const auto found = sent_.find(flow_of(record, "flow"));
            if (found != sent_.end()) {
                const std::uint64_t target = found->second->number("dest_qpn");
                lose(*found->second, record, target, reason_of_drop(record));
            }
        }
    }

    [[nodiscard]] std::string text() const {
        std::string text;
        for (const Loss& loss : losses_) {
            text += fmt::format(
                "    {}: {} {} of {} for {} lost at {}, and the sender is not told: {}. The first "
                "had PSN {}.\n",
                time_text(loss.first_ps), loss.count,
                loss.count == 1 ? "packet without acknowledgment"
                                : "packets without acknowledgment",
                end_text(names_, loss.sender, loss.qpn),
                loss.target == kMulticastQpn ? std::string("a multicast group")
                                             : fmt::format("QP {:#x}", loss.target),
                loss.where, loss.reason, loss.psn);
        }
        return text;
    }

  private:
    using Flow = std::pair<std::uint64_t, std::uint64_t>;  // QPN of the sender, number of the frame

    // Packets of one sender for one target that were lost at one node for one reason.
    struct Loss {
        std::string sender;
        std::uint64_t qpn;
        std::string where;
        std::uint64_t target;
        std::string reason;
        std::int64_t first_ps;
        std::uint64_t psn;
        std::uint64_t count;
    };

    [[nodiscard]] bool has_hit(const Record& frame) const {
        return fired_ != nullptr && fired_->time_ps == frame.time_ps &&
               fired_->node == frame.node && fired_->number("flow") == frame.number("flow");
    }

    [[nodiscard]] std::string fault_text(const Record& fired) const {
        const auto name = fault_names_.find(fired.number("fault"));
        return fmt::format("the injected fault {} ({})",
                           name == fault_names_.end() ? std::to_string(fired.number("fault"))
                                                      : fmt::format("\"{}\"", name->second),
                           fired.text("action"));
    }

    static Flow flow_of(const Record& record, std::string_view qpn) {
        return {record.number(qpn), record.number("frame")};
    }

    // Bits 7 to 5 of the opcode (IBA 9.2.1).
    static bool is_unacknowledged(const Record& sent) {
        constexpr std::uint64_t kUc = 1;
        constexpr std::uint64_t kUd = 3;
        const std::uint64_t service = sent.number("bth_opcode") >> 5;
        return service == kUc || service == kUd;
    }

    // Ethernet switches flood: a copy that reaches another station is no loss.
    void lose_discarded(const Record& record) {
        const std::string_view fate = record.text("fate");
        const std::uint64_t target = record.number("dest_qpn");
        if (fate != "for another station" && target != kMulticastQpn) {
            const bool is_rest = fate == to_string(simverbs::PacketFate::kCutMessage);
            lose_arrived(record, target,
                         is_rest ? reason_of("message cut on UC") : reason_of_discard(record));
        }
    }

    // Says which fault it was where one has changed that packet.
    [[nodiscard]] std::string reason_of_discard(const Record& discarded) const {
        const std::string fate(discarded.text("fate"));
        const Record* const hit = hit_of_arrived(discarded.node);
        return hit == nullptr ? fate : fmt::format("{}, by {}", fate, fault_text(*hit));
    }

    // The fault that has hit the last packet that arrived at the node; nullptr: none has.
    [[nodiscard]] const Record* hit_of_arrived(const std::string& node) const {
        const auto arrived = arrived_.find(node);
        const auto hit = arrived == arrived_.end() || arrived->second == nullptr
                             ? hits_.end()
                             : hits_.find(flow_of(*arrived->second, "qpn"));
        return hit == hits_.end() ? nullptr : hit->second;
    }

    // The record of a loss follows that of the frame's arrival. On the way back to its own device a
    // packet has no frame: the last one that was sent there is meant.
    void lose_arrived(const Record& record, std::uint64_t target, std::string reason) {
        const std::uint64_t psn = record.number("psn");
        const auto arrived = arrived_.find(record.node);
        if (arrived != arrived_.end() && arrived->second != nullptr) {
            const Record& sent = *arrived->second;
            const std::uint64_t to = sent.number("dest_qpn");
            if (sent.number("psn") == psn && (to == target || to == kMulticastQpn)) {
                lose(sent, record, target, std::move(reason));
                return;
            }
        }
        const Record* last = nullptr;
        for (const std::uint64_t to : {target, kMulticastQpn}) {
            const auto sent = last_sent_.find({record.node, to, psn});
            if (sent != last_sent_.end() &&
                (last == nullptr || sent->second->time_ps > last->time_ps)) {
                last = sent->second;
            }
        }
        if (last != nullptr) {
            lose(*last, record, target, std::move(reason));
        }
    }

    // Says which fault it was where the one that fired last has hit this frame.
    [[nodiscard]] std::string reason_of_drop(const Record& dropped) const {
        const std::string_view reason = dropped.text("reason");
        return reason == "fault" && has_hit(dropped) ? fault_text(*fired_) : std::string(reason);
    }

    void lose(const Record& sent, const Record& lost, std::uint64_t target, std::string reason) {
        const std::uint64_t qpn = sent.number("qpn");
        const bool is_node = question_.node.empty() || question_.node == sent.node ||
                             question_.node == lost.node ||
                             owners_[target].contains(question_.node);
        const bool is_queue_pair =
            !question_.qpn || *question_.qpn == qpn || *question_.qpn == target;
        if (!is_unacknowledged(sent) || !is_node || !is_queue_pair) {
            return;
        }
        const auto same = std::ranges::find_if(losses_, [&](const Loss& loss) {
            return loss.sender == sent.node && loss.qpn == qpn && loss.where == lost.node &&
                   loss.target == target && loss.reason == reason;
        });
        if (same != losses_.end()) {
            ++same->count;
            return;
        }
        losses_.push_back({sent.node, qpn, lost.node, target, std::move(reason), lost.time_ps,
                           sent.number("psn"), 1});
    }

    const Question& question_;
    const RunNames* names_;
    std::map<std::uint64_t, std::set<std::string>> owners_;  // nodes that have that queue pair
    std::map<Flow, const Record*> sent_;  // the last packet of each frame's number
    // The last packet without acknowledgment of each PSN, by node and destination.
    std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, const Record*> last_sent_;
    std::map<std::string, const Record*> arrived_;  // by node: the packet of the last frame
    const Record* fired_ = nullptr;
    std::map<Flow, const Record*> hits_;  // faults, by the frames that they hit
    std::map<std::uint64_t, std::string> fault_names_;
    std::vector<Loss> losses_;
};

}  // namespace

std::string describe_lost_messages(std::span<const Record> records, const Question& question,
                                   const RunNames* names) {
    LostMessages lost(question, names);
    for (const Record& record : records) {
        lost.see(record);
    }
    return lost.text();
}

}  // namespace scenarios
