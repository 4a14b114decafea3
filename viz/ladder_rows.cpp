#include "viz/ladder_rows.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "viz/ladder_notes.hpp"

namespace simverbs::viz {
namespace {

// The queue pairs where a packet arrives, or was to.
std::vector<QpName> targets_of(const Run& run, const RunPacket& packet) {
    std::vector<QpName> targets;
    for (const Arrival& arrival : packet.arrivals) {
        targets.push_back(arrival.at);
    }
    if (const std::optional<QpName> to = run.destination(packet); to && targets.empty()) {
        targets.push_back(*to);
    }
    return targets;
}

// Hosts that have events and no queue pair among the lines.
void add_hosts(const Trace& trace, const Run& run, std::vector<QpName>& lines) {
    std::set<std::uint32_t> known;
    for (const QpName& line : lines) {
        known.insert(line.node);
    }
    for (const Record& record : trace.records) {
        const auto node = run.nodes.find(record.node);
        if ((record.name == "async_event" || record.name == "fault_fired") &&
            line_of(record).qpn == kHostLine && node != run.nodes.end() &&
            !node->second.is_switch && known.insert(record.node).second) {
            lines.push_back({record.node, kHostLine});
        }
    }
}

// All queue pairs that exchange packets, in the order of the first ones, then those whose requests
// complete without any; else all there are.
std::vector<QpName> all_lines(const Trace& trace, const Run& run) {
    std::vector<QpName> lines;
    std::set<QpName> known;
    for (const RunPacket& packet : run.packets) {
        const std::vector<QpName> targets = targets_of(run, packet);
        if (!targets.empty() && known.insert(packet.from).second) {
            lines.push_back(packet.from);
        }
        for (const QpName& qp : targets) {
            if (known.insert(qp).second) {
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
    add_hosts(trace, run, lines);
    return lines;
}

Lives lives_of(const Trace& trace, const Run& run) {
    Lives lives;
    for (const Record& record : trace.records) {
        if (record.name != "queue_pair") {  // told anew when a trace begins
            lives[line_of(record)].extend(record.seq);
        }
    }
    for (const RunPacket& packet : run.packets) {
        std::vector<QpName> ends = targets_of(run, packet);
        ends.push_back(packet.from);
        for (const QpName& qp : ends) {
            lives[qp].extend(packet.sent_seq);
            for (std::size_t end = 0; end < packet.ends(); ++end) {
                lives[qp].extend(std::max(packet.sent_seq, packet.end_seq(end)));
            }
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
        for (const QpName& to : targets_of(run, packet)) {
            if (fitting.contains(packet.from) && fitting.contains(to)) {
                paired.insert(packet.from);
                paired.insert(to);
            }
        }
    }
    const std::set<QpName>& kept = paired.empty() ? fitting : paired;
    return std::erase_if(lines, [&kept](const QpName& line) { return !kept.contains(line); });
}

// Counts packets between a life line and a queue pair that has none.
void count_hidden(LadderRows& ladder, const std::set<QpName>& shown, const QpName& from,
                  const std::vector<QpName>& targets, std::size_t packets) {
    if (shown.contains(from)) {
        for (const QpName& to : targets) {
            ladder.peers_not_drawn[to] += packets;
        }
    } else if (std::ranges::any_of(targets,
                                   [&shown](const QpName& to) { return shown.contains(to); })) {
        ladder.peers_not_drawn[from] += packets;
    }
}

void add_parts(const Run& run, const LadderOptions& options, LadderRows& ladder) {
    const std::set<QpName> shown(ladder.lines.begin(), ladder.lines.end());
    for (std::size_t i = 0; i < ladder.parts.size(); ++i) {
        const RunPacket& first = run.packets[ladder.parts[i].packets.front()];
        const RunPacket& last = run.packets[ladder.parts[i].packets.back()];
        const std::vector<QpName> targets = targets_of(run, first);
        const bool is_drawn =
            shown.contains(first.from) &&
            (targets.empty() || std::ranges::any_of(targets, [&shown](const QpName& to) {
                 return shown.contains(to);
             }));
        if (!is_drawn && !options.qps.empty()) {
            count_hidden(ladder, shown, first.from, targets, ladder.parts[i].packets.size());
        }
        if (!is_drawn || first.sent < options.from || first.sent > options.until) {
            continue;
        }
        ladder.rows.push_back(
            {.time = first.sent, .seq = first.sent_seq, .kind = RowKind::kSent, .part = i});
        for (std::size_t end = 0; end < last.ends(); ++end) {
            const Arrival* const arrival = last.arrival(end);
            if (arrival == nullptr ? !last.lost.empty() : shown.contains(arrival->at)) {
                ladder.rows.push_back({.time = last.end_time(end),
                                       .seq = last.end_seq(end),
                                       .kind = RowKind::kEnd,
                                       .part = i,
                                       .end = end});
            }
        }
    }
}

std::int64_t median(std::vector<std::int64_t> values) {
    if (values.empty()) {
        return 0;
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// A gap between two rows is a break where it is longer than a few flights of the packets drawn; in
// a picture without packets, than many of its gaps.
void mark_breaks(std::vector<LadderRow>& rows) {
    constexpr std::int64_t kFlights = 4;
    constexpr std::int64_t kGaps = 20;
    std::map<std::size_t, std::int64_t> sent;  // by part
    std::vector<std::int64_t> flights;
    std::vector<std::int64_t> gaps;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].kind == RowKind::kSent) {
            sent[rows[i].part] = rows[i].time;
        } else if (rows[i].kind == RowKind::kEnd && sent.contains(rows[i].part)) {
            flights.push_back(rows[i].time - sent.at(rows[i].part));
        }
        if (i > 0 && rows[i].time > rows[i - 1].time) {
            gaps.push_back(rows[i].time - rows[i - 1].time);
        }
    }
    const std::int64_t longest =
        flights.empty() ? median(gaps) * kGaps : median(flights) * kFlights;
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
    add_notes(trace, run, options, lives, ladder);
    std::stable_sort(ladder.rows.begin(), ladder.rows.end(),
                     [](const LadderRow& a, const LadderRow& b) { return a.seq < b.seq; });
    if (ladder.rows.size() > options.rows) {
        ladder.rows_left_out = ladder.rows.size() - options.rows;
        ladder.rows.resize(options.rows);
    }
    ladder.rows_drawn = ladder.rows.size();
    if (!ladder.rows.empty()) {
        ladder.from = ladder.rows.front().time;
        ladder.until = ladder.rows.back().time;
    }
    add_headings(lives, ladder);
    mark_breaks(ladder.rows);
    return ladder;
}

}  // namespace simverbs::viz
