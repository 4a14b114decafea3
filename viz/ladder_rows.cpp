#include "viz/ladder_rows.hpp"

#include <algorithm>
#include <map>
#include <optional>
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

// All queue pairs that exchange packets, in the order of the first ones, then those whose requests
// complete without any; else all there are.
std::vector<QpName> all_lines(const Trace& trace, const Run& run) {
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
    for (const Record& record : trace.records) {
        const QpName qp{record.node, record.id("qpn")};
        if (record.name == "completion" && run.services.contains(qp) && known.insert(qp).second) {
            lines.push_back(qp);
        }
    }
    if (lines.empty()) {
        for (const auto& [qp, service] : run.services) {
            lines.push_back(qp);
        }
    }
    return lines;
}

// The first and the last event of a queue pair, by their numbers.
struct Life {
    std::uint64_t first = UINT64_MAX;
    std::uint64_t last = 0;

    void extend(std::uint64_t seq) {
        first = std::min(first, seq);
        last = std::max(last, seq);
    }
    [[nodiscard]] bool meets(const Life& other) const {
        return first <= other.last && other.first <= last;
    }
};
using Lives = std::map<QpName, Life>;

Lives lives_of(const Trace& trace, const Run& run) {
    Lives lives;
    for (const Record& record : trace.records) {
        if (record.name != "queue_pair") {  // told anew when a trace begins
            lives[line_of(record)].extend(record.seq);
        }
    }
    for (const RunPacket& packet : run.packets) {
        for (const QpName& qp : {packet.from, run.destination(packet).value_or(packet.from)}) {
            lives[qp].extend(packet.sent_seq);
            lives[qp].extend(std::max(packet.sent_seq, packet.end_seq));
        }
    }
    return lives;
}

// Gives each line the first place of its node at which no other lives at the same time.
std::vector<std::size_t> places_of(const std::vector<QpName>& lines, const Lives& lives) {
    std::vector<std::vector<QpName>> taken;
    std::vector<std::size_t> places;
    for (const QpName& line : lines) {
        const auto free =
            std::find_if(taken.begin(), taken.end(), [&](const std::vector<QpName>& others) {
                return std::all_of(others.begin(), others.end(), [&](const QpName& other) {
                    return other.node == line.node && !lives.at(other).meets(lives.at(line));
                });
            });
        places.push_back(static_cast<std::size_t>(free - taken.begin()));
        if (free == taken.end()) {
            taken.push_back({line});
        } else {
            free->push_back(line);
        }
    }
    return places;
}

// Keeps the lines at the first `most` places, without those whose packets all go to lines that do
// not fit. Returns how many are left out.
std::size_t leave_out(const Run& run, const Lives& lives, std::size_t most,
                      std::vector<QpName>& lines) {
    const std::vector<std::size_t> places = places_of(lines, lives);
    std::set<QpName> fitting;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (places[i] < most) {
            fitting.insert(lines[i]);
        }
    }
    if (fitting.size() == lines.size()) {
        return 0;
    }
    std::set<QpName> paired;
    for (const RunPacket& packet : run.packets) {
        const std::optional<QpName> to = run.destination(packet);
        if (to && fitting.contains(packet.from) && fitting.contains(*to)) {
            paired.insert(packet.from);
            paired.insert(*to);
        }
    }
    const std::set<QpName>& kept = paired.empty() ? fitting : paired;
    return std::erase_if(lines, [&kept](const QpName& line) { return !kept.contains(line); });
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

// Lines by their places, those that share one from the first life to the last.
std::map<std::size_t, std::vector<QpName>> lines_by_place(const Lives& lives,
                                                          const LadderRows& ladder) {
    std::map<std::size_t, std::vector<QpName>> of_place;
    for (std::size_t i = 0; i < ladder.lines.size(); ++i) {
        of_place[ladder.places[i]].push_back(ladder.lines[i]);
    }
    for (auto& [place, lines] : of_place) {
        std::sort(lines.begin(), lines.end(), [&lives](const QpName& a, const QpName& b) {
            return lives.at(a).first < lives.at(b).first;
        });
    }
    return of_place;
}

// Puts headings before the first event of each line: at the top, or in a row where the place had
// another line before. Lines that live at the same time begin together where their places are free.
void add_headings(const Lives& lives, LadderRows& ladder) {
    const auto of_place = lines_by_place(lives, ladder);
    std::map<std::size_t, std::size_t> shown;  // by place: how many of its lines
    for (bool is_top = true;; is_top = false) {
        Life first;
        for (const auto& [place, lines] : of_place) {
            const bool has_more = shown[place] < lines.size();
            const Life next = has_more ? lives.at(lines[shown[place]]) : Life{};
            first = next.first < first.first ? next : first;
        }
        const auto row =
            std::find_if(ladder.rows.begin(), ladder.rows.end(),
                         [&first](const LadderRow& each) { return each.seq >= first.first; });
        if (!is_top && (first.first == UINT64_MAX || row == ladder.rows.end())) {
            return;
        }
        std::vector<QpName> heads;
        for (const auto& [place, lines] : of_place) {
            const std::size_t count = shown[place];
            const bool is_free = count == 0 || lives.at(lines[count - 1]).last < first.first;
            if (count < lines.size() && is_free &&
                (lives.at(lines[count]).meets(first) || lines.size() == 1)) {
                heads.push_back(lines[count]);
                ++shown[place];
            }
        }
        if (is_top) {
            ladder.heads = std::move(heads);
        } else {
            LadderRow heading{.time = row->time, .seq = first.first, .kind = RowKind::kHeading};
            heading.heads = std::move(heads);
            ladder.rows.insert(row, std::move(heading));
        }
    }
}

}  // namespace

LadderRows ladder_rows(const Trace& trace, const Run& run, const LadderOptions& options,
                       std::size_t most_places) {
    LadderRows ladder{.lines = options.qps};
    Lives lives = lives_of(trace, run);
    if (ladder.lines.empty()) {
        ladder.lines = all_lines(trace, run);
    }
    for (const QpName& line : ladder.lines) {
        lives.try_emplace(line, Life{0, UINT64_MAX});
    }
    if (options.qps.empty()) {
        ladder.lines_left_out = leave_out(run, lives, most_places, ladder.lines);
    }
    ladder.places = places_of(ladder.lines, lives);
    ladder.parts = options.folds ? message_parts(run) : single_packets(run);
    add_parts(run, options, ladder);
    add_notes(trace, run, options, ladder);
    std::stable_sort(ladder.rows.begin(), ladder.rows.end(),
                     [](const LadderRow& a, const LadderRow& b) { return a.seq < b.seq; });
    if (ladder.rows.size() > options.rows) {
        ladder.rows_left_out = ladder.rows.size() - options.rows;
        ladder.rows.resize(options.rows);
    }
    ladder.rows_drawn = ladder.rows.size();
    add_headings(lives, ladder);
    mark_breaks(ladder.rows);
    return ladder;
}

}  // namespace simverbs::viz
