#include "viz/ladder_rows.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "simverbs/model/statuses.hpp"

#include "viz/palette.hpp"

namespace simverbs::viz {
namespace {

bool is_of_queue_pair(std::string_view event) {
    return std::any_of(kAsyncEvents.begin(), kAsyncEvents.end(),
                       [event](const AsyncEventProperties& row) {
                           return row.name == event && row.subject == EventSubject::kQp;
                       });
}

// The life line that a record belongs on.
QpName line_of(const Record& record) {
    if (record.name == "fault_fired") {
        return {static_cast<std::uint32_t>(record.number("source")), record.id("flow")};
    }
    return {record.node, record.id(record.name == "async_event" ? "subject" : "qpn")};
}

// Words of a record that belongs on a life line; "" for others.
std::string note(const Record& record, const Run& run, std::string_view& colour) {
    if (record.name == "async_event" && is_of_queue_pair(record.text("event"))) {
        colour = kPurple;
        return fmt::format("event: {}", record.text("event"));
    }
    if (record.name == "fault_fired") {
        colour = kVermilion;
        return run.fault_text(record);
    }
    if (record.name == "qp_state") {
        colour = record.text("to") == "ERR" || record.text("to") == "SQE" ? kVermilion : kGreen;
        return fmt::format("{} > {}", record.text("from"), record.text("to"));
    }
    if (record.name == "completion") {
        const bool good = record.text("status") == "SUCCESS";
        colour = good ? kGreen : kVermilion;
        return good ? fmt::format("done: {}, request {}", record.text("opcode"),
                                  record.number("index"))
                    : fmt::format("failed: {}, request {}: {}", record.text("opcode"),
                                  record.number("index"), record.text("status"));
    }
    return {};
}

// All queue pairs that exchange packets, in the order of the first ones; else all there are.
std::vector<QpName> all_lines(const Run& run) {
    std::vector<QpName> lines;
    std::set<QpName> known;
    for (const RunPacket& packet : run.packets) {
        const std::optional<QpName> to = run.destination(packet);
        for (const QpName& qp : {packet.from, to.value_or(packet.from)}) {
            if (to && known.insert(qp).second) {
                lines.push_back(qp);
            }
        }
    }
    if (lines.empty()) {
        for (const auto& [qp, service] : run.services) {
            lines.push_back(qp);
        }
    }
    return lines;
}

// Keeps the first `most` lines, without those whose packets all go to lines that do not fit.
std::size_t leave_out(const Run& run, std::size_t most, std::vector<QpName>& lines) {
    if (lines.size() <= most) {
        return 0;
    }
    const std::size_t all = lines.size();
    lines.resize(most);
    const std::set<QpName> fitting(lines.begin(), lines.end());
    std::set<QpName> paired;
    for (const RunPacket& packet : run.packets) {
        const std::optional<QpName> to = run.destination(packet);
        if (to && fitting.contains(packet.from) && fitting.contains(*to)) {
            paired.insert(packet.from);
            paired.insert(*to);
        }
    }
    if (!paired.empty()) {
        std::erase_if(lines, [&paired](const QpName& line) { return !paired.contains(line); });
    }
    return all - lines.size();
}

void add_parts(const Run& run, const LadderOptions& options, LadderRows& ladder) {
    const std::set<QpName> shown(ladder.lines.begin(), ladder.lines.end());
    for (std::size_t i = 0; i < ladder.parts.size(); ++i) {
        const RunPacket& first = run.packets[ladder.parts[i].packets.front()];
        const RunPacket& last = run.packets[ladder.parts[i].packets.back()];
        const std::optional<QpName> to = run.destination(first);
        const bool drawn = shown.contains(first.from) && (!to || shown.contains(*to));
        if (!drawn || first.sent < options.from || first.sent > options.until) {
            continue;
        }
        ladder.rows.push_back(
            {.time = first.sent, .seq = first.sent_seq, .kind = RowKind::kSent, .part = i});
        if (!last.lost.empty() || last.arrived_at) {
            ladder.rows.push_back({.time = last.lost.empty() ? last.arrived : last.lost_time,
                                   .seq = last.end_seq,
                                   .kind = RowKind::kEnd,
                                   .part = i});
        }
    }
}

// The faults that stand beside a cross already: when and whose packet.
std::set<std::pair<std::int64_t, QpName>> losses(const Run& run) {
    std::set<std::pair<std::int64_t, QpName>> found;
    for (const RunPacket& packet : run.packets) {
        if (!packet.lost_fault.empty()) {
            found.emplace(packet.lost_time, packet.from);
        }
    }
    return found;
}

void add_notes(const Trace& trace, const Run& run, const LadderOptions& options,
               LadderRows& ladder) {
    const std::set<QpName> shown(ladder.lines.begin(), ladder.lines.end());
    const auto lost = losses(run);
    for (const Record& record : trace.records) {
        const QpName qp = line_of(record);
        if (!shown.contains(qp) || record.time < options.from || record.time > options.until ||
            (record.name == "fault_fired" && lost.contains({record.time, qp}))) {
            continue;
        }
        std::string_view colour = kInk;
        if (std::string text = note(record, run, colour); !text.empty()) {
            ladder.rows.push_back({.time = record.time,
                                   .seq = record.seq,
                                   .kind = RowKind::kNote,
                                   .qp = qp,
                                   .text = std::move(text),
                                   .colour = colour});
        }
    }
}

// A gap is a break where it is far longer than most gaps are, or than packets travel.
void mark_breaks(std::vector<LadderRow>& rows) {
    constexpr std::int64_t kLonger = 20;
    constexpr std::int64_t kLeast = 1'000'000;  // ps
    constexpr std::int64_t kAlways = 100'000'000;
    std::vector<std::int64_t> gaps;
    for (std::size_t i = 1; i < rows.size(); ++i) {
        if (rows[i].time > rows[i - 1].time) {
            gaps.push_back(rows[i].time - rows[i - 1].time);
        }
    }
    if (gaps.empty()) {
        return;
    }
    const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
    std::nth_element(gaps.begin(), middle, gaps.end());
    const std::int64_t longest = std::clamp(*middle * kLonger, kLeast, kAlways);
    for (std::size_t i = 1; i < rows.size(); ++i) {
        const std::int64_t gap = rows[i].time - rows[i - 1].time;
        rows[i].gap = gap > longest ? gap : 0;
    }
}

}  // namespace

LadderRows ladder_rows(const Trace& trace, const Run& run, const LadderOptions& options,
                       std::size_t most_lines) {
    LadderRows ladder{.lines = options.qps};
    if (ladder.lines.empty()) {
        ladder.lines = all_lines(run);
        ladder.lines_left_out = leave_out(run, most_lines, ladder.lines);
    }
    ladder.parts = options.folds ? message_parts(run) : single_packets(run);
    add_parts(run, options, ladder);
    add_notes(trace, run, options, ladder);
    std::stable_sort(ladder.rows.begin(), ladder.rows.end(),
                     [](const LadderRow& a, const LadderRow& b) { return a.seq < b.seq; });
    if (ladder.rows.size() > options.rows) {
        ladder.rows_left_out = ladder.rows.size() - options.rows;
        ladder.rows.resize(options.rows);
    }
    mark_breaks(ladder.rows);
    return ladder;
}

}  // namespace simverbs::viz
