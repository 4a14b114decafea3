#include "scenarios/engine/explain_steps.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <fmt/core.h>

#include "fabric/core/counted.hpp"

namespace scenarios {

std::string describe_undelivered(std::span<const Record> records, const Record& completion) {
    const Record* last = nullptr;  // of the queue, before it died
    for (const Record& record : records) {
        if (record.node != completion.node || record.number("cq") != completion.number("cq")) {
            continue;
        }
        if (record.name == "completion") {
            last = &record;
        } else if (record.name == "cq_state" && record.text("to") == "DEAD") {
            const bool overran = last == &completion && record.time_ps == last->time_ps;
            if (overran || &record < &completion) {
                return fmt::format(
                    "    The program did not get that completion: at {} completion queue {} of {} "
                    "overran.\n",
                    time_text(record.time_ps), record.number("cq"), record.node);
            }
            break;
        }
    }
    return {};
}

std::string arrival_text(const Trail& trail, const Record& refused) {
    for (const Transmission& sent : trail.transmissions()) {
        if (!sent.is_answer && sent.is_oldest && sent.arrived != nullptr &&
            sent.arrived->time_ps < refused.time_ps) {
            return fmt::format(" in a request that had arrived at {}",
                               time_text(sent.arrived->time_ps));
        }
    }
    return {};
}

std::string describe_calls(std::span<const Record> records, const Record& before) {
    constexpr auto kTelling =
        std::to_array<std::string_view>({"dereg_mr", "rereg_mr", "dealloc_mw"});
    std::string text;
    for (const Record& record : records) {
        const bool tells = record.name == "verb" && record.number("errno") == 0 &&
                           record.node == before.node &&
                           std::ranges::find(kTelling, record.text("verb")) != kTelling.end();
        if (tells && record.time_ps <= before.time_ps && &record < &before) {
            text += fmt::format("    {}: {} had called ibv_{}.\n", time_text(record.time_ps),
                                record.node, record.text("verb"));
        }
    }
    return text;
}

std::string describe_sent_before(std::span<const Record> records, const Record& completion) {
    const std::uint64_t sent = Trail(records, completion).sent_of_request();
    return (sent == 0 ? fmt::format("    Nothing of it was sent: {} refused it before.\n",
                                    completion.node)
                      : fmt::format("    {} of it had been sent when {} found that.\n",
                                    fabric::counted(sent, "packet"), completion.node)) +
           describe_calls(records, completion);
}

std::string describe_retries(const Trail& trail) {
    if (trail.sent_again() == 0) {
        return {};
    }
    // How many it sent is known from the beginning of its connection on only.
    return trail.has_beginning()
               ? fmt::format("    {} had sent {} on that queue pair, and {} more again.\n",
                             trail.node(), fabric::counted(trail.first_sent(), "packet"),
                             trail.sent_again())
               : fmt::format("    {} had sent {} again, as far back as records go.\n", trail.node(),
                             fabric::counted(trail.sent_again(), "packet"));
}

std::string describe_drop(const Record& dropped) {
    struct Row {
        std::string_view reason;
        std::string_view text;  // {}: the port that dropped
    };
    static constexpr auto kRows = std::to_array<Row>({
        {"port_not_active", "its port {} was not ACTIVE"},
        {"peer_not_active", "the port at the other end of port {} was not ACTIVE"},
        {"arrived_inactive", "it arrived at port {}, which was not ACTIVE"},
        {"exceeds_mtu", "it is longer than the MTU of port {}"},
        {"link_down", "the link of port {} was down"},
        {"head_of_queue_lifetime", "it waited for port {} for longer than it may"},
        {"queue_full", "the queue of port {} was full"},
        {"no_route", "no route leads there"},
        {"no_lane", "its service level has no lane at port {}"},
        {"back_to_sender", "its route leads back to port {}, where it came from"},
        {"partition_in", "it arrived at port {}, which may not send with that P_Key"},
        {"partition_out", "port {}, where it would leave, does not take that P_Key"},
        {"no_consumer", "nothing there takes it"},
        {"vlan", "its VLAN does not pass port {}"},
    });
    const std::string_view reason = dropped.text("reason");
    const auto* const row = std::ranges::find(kRows, reason, &Row::reason);
    const bool names_lid = reason == "no_route" && dropped.number("dlid") != 0;
    return fmt::format(
        "{} dropped a frame{}: {}", dropped.node,
        names_lid ? fmt::format(" for LID {}", dropped.number("dlid")) : "",
        row == kRows.end()
            ? std::string(reason)
            : fmt::format("{} ({})", fmt::format(fmt::runtime(row->text), dropped.number("port")),
                          reason));
}

std::string describe_not_ready(std::span<const Record> records, const Record& completion) {
    constexpr std::uint64_t kKind = 0x60;
    constexpr std::uint64_t kRnr = 0x20;
    const Record* const reset = last_reset(records, completion);
    std::uint64_t naks = 0;
    bool are_hidden = false;
    std::string who;
    for (const Record& record : records) {
        are_hidden = are_hidden || (record.name == "fault_fired" && &record > reset &&
                                    record.text("action") == "no_receive" &&
                                    record.number("flow") == completion.number("qpn"));
        if (&record > reset && record.name == "packet_sent" &&
            record.text("opcode") == "ACKNOWLEDGE" && (record.number("syndrome") & kKind) == kRnr &&
            record.node != completion.node &&
            record.number("dest_qpn") == completion.number("qpn")) {
            ++naks;
            who = record.node;
        }
    }
    return fmt::format("    {} answered {} that it was not ready: {}.\n", who,
                       fabric::counted(naks, "time"),
                       are_hidden ? "a fault hid its receives" : "it had no receive posted");
}

}  // namespace scenarios
