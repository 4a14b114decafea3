#include "viz/ladder.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "fabric/core/xml_text.hpp"

#include "viz/ladder_marks.hpp"
#include "viz/ladder_rows.hpp"
#include "viz/markup.hpp"
#include "viz/palette.hpp"

namespace simverbs::viz {
namespace {

// Pixels.
constexpr int kWidest = 1990;
constexpr int kFirstLine = 170;  // the times stand left of it
constexpr int kLeastGap = 150;   // between life lines
constexpr int kTitle = 26;       // its line, above the key
constexpr int kRow = 24;
constexpr int kBreak = 26;       // what a break adds
constexpr int kFromSender = 34;  // a packet that its sender's link lost
constexpr int kFromSwitch = 90;
constexpr int kMark = 12;  // marks of discarded packets stand so far before the life line
constexpr std::size_t kUsualLines = 8;

class Ladder {
  public:
    Ladder(const Run& run, LadderRows content) : run_(run), content_(std::move(content)) {
        for (std::size_t i = 0; i < content_.lines.size(); ++i) {
            column_[content_.lines[i]] = content_.places[i];
        }
        for (std::size_t i = 0; i < content_.rows.size(); ++i) {
            if (content_.rows[i].kind == RowKind::kEnd) {
                end_rows_[content_.rows[i].part].push_back(i);
            }
        }
        place_columns();
        place_rows();
    }

    [[nodiscard]] int width() const { return width_; }

    [[nodiscard]] std::string svg() const {
        const int height = bottom_ + 24 * (1 + static_cast<int>(remarks().size()));
        std::string out = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 "
            "{0} {1}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"{2}\" "
            "role=\"img\">\n<title>{3}</title>\n"
            "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            width_, height, kLadderFont, fabric::xml_text(title()));
        out += markers() +
               text(16, 22, "start", kInk, title(), " font-size=\"15\" font-weight=\"bold\"");
        out += key(width_, kTitle + 18);
        out += life_lines();
        for (std::size_t i = 0; i < content_.rows.size(); ++i) {
            out += content_.rows[i].kind == RowKind::kSent ? arrows(i) : std::string();
        }
        std::int64_t shown = INT64_MIN;
        for (std::size_t i = 0; i < content_.rows.size(); ++i) {
            const LadderRow& row = content_.rows[i];
            out += row.gap > 0 ? time_break(i) : std::string();
            if (row.time != shown && row.kind != RowKind::kHeading) {
                const bool is_alike = shown != INT64_MIN && time_text(row.time) == time_text(shown);
                const std::string time =
                    is_alike ? "+" + time_text(row.time - shown) : time_text(row.time);
                shown = row.time;
                out += text(kFirstLine - 76, y_[i] + 4, "end", "#5a5a5a", time);
            }
            out += row.kind == RowKind::kNote      ? note_mark(i)
                   : row.kind == RowKind::kSent    ? label(i)
                   : row.kind == RowKind::kHeading ? headings(row.heads, y_[i] + 5)
                                                   : end_mark(i);
        }
        int y = bottom_ + 24;
        for (const std::string& remark : remarks()) {
            out += text(16, y, "start", kInk, remark);
            y += 24;
        }
        return out + "</svg>\n";
    }

  private:
    [[nodiscard]] const MessagePart& part_of(std::size_t row) const {
        return content_.parts[content_.rows[row].part];
    }
    [[nodiscard]] const RunPacket& first_of(std::size_t row) const {
        return run_.packets[part_of(row).packets.front()];
    }
    [[nodiscard]] std::size_t column(const QpName& qp) const { return column_.at(qp); }
    [[nodiscard]] int x_of(const QpName& qp) const { return x_[column(qp)]; }

    // Nothing where no record tells, or where the packet goes back to its queue pair.
    [[nodiscard]] std::optional<std::size_t> other_column(const RunPacket& packet,
                                                          std::size_t end) const {
        const Arrival* const arrival = packet.arrival(end);
        const std::optional<QpName> to =
            arrival != nullptr ? arrival->at : run_.destination(packet);
        return !to || *to == packet.from || !column_.contains(*to) ? std::nullopt
                                                                   : std::optional(column(*to));
    }
    // +1: to the right.
    [[nodiscard]] int direction(const RunPacket& packet, std::size_t end) const {
        const std::optional<std::size_t> to = other_column(packet, end);
        return to && *to < column(packet.from) ? -1 : 1;
    }
    // The gap, counted by the life line at its left, in which a packet's words stand.
    [[nodiscard]] std::size_t gap_of(const RunPacket& packet, std::size_t end) const {
        return column(packet.from) - (direction(packet, end) < 0 ? 1 : 0);
    }
    // The gap before the life line where it arrives.
    [[nodiscard]] std::size_t last_gap_of(const RunPacket& packet, std::size_t end) const {
        const std::optional<std::size_t> to = other_column(packet, end);
        return !to ? gap_of(packet, end) : *to - (direction(packet, end) > 0 ? 1 : 0);
    }
    // The end beside whose arrow a packet's words stand: the first that has a life line.
    [[nodiscard]] std::size_t first_end(std::size_t row) const {
        const RunPacket& packet = first_of(row);
        for (std::size_t end = 0; end < packet.arrivals.size(); ++end) {
            if (column_.contains(packet.arrivals[end].at)) {
                return end;
            }
        }
        return packet.ends() - 1;
    }

    [[nodiscard]] std::string words(std::size_t row) const {
        std::string words = words_of(run_, part_of(row));
        if (end_rows_.contains(content_.rows[row].part)) {
            return words;
        }
        const RunPacket& last = run_.packets[part_of(row).packets.back()];
        return words + (last.lost.empty() && last.arrivals.empty()
                            ? ", under way at the end"
                            : fmt::format(", ends at {}, further down",
                                          time_text(last.end_time(first_end(row)))));
    }

    static int loss_distance(const RunPacket& packet) {
        return packet.lost_at == packet.from.node ? kFromSender : kFromSwitch;
    }

    [[nodiscard]] std::string title() const {
        return fmt::format("Packets between queue pairs, {} to {}", time_text(content_.from),
                           time_text(content_.until));
    }

    void place_columns() {
        std::vector<int> halves(places());  // of the headings
        for (const QpName& line : content_.lines) {
            int& half = halves[column(line)];
            half = std::max(half, width_of(heading(line), 14) / 2);
        }
        std::vector<int> need(places() + 1, kLeastGap);
        const auto widen = [&need](std::size_t gap, int width) {
            need[gap] = std::max(need[gap], width);
        };
        for (std::size_t i = 0; i < content_.rows.size(); ++i) {
            const LadderRow& row = content_.rows[i];
            if (row.kind == RowKind::kHeading) {
                continue;
            }
            if (row.kind == RowKind::kNote) {
                widen(column(row.marks.front()), width_of(row.text) + 30);
                continue;
            }
            const RunPacket& packet = first_of(i);
            if (row.kind == RowKind::kSent) {
                widen(gap_of(packet, first_end(i)), width_of(words(i)) + 24);
            } else if (const Arrival* const arrival = packet.arrival(row.end); arrival == nullptr) {
                widen(gap_of(packet, row.end),
                      loss_distance(packet) + width_of(packet.loss_words()) + 30);
            } else if (!arrival->discarded.empty()) {
                widen(last_gap_of(packet, row.end), kMark + width_of(arrival->discarded) + 40);
            }
        }
        int x = kFirstLine;
        int half_before = 0;
        for (std::size_t i = 0; i < halves.size(); ++i) {
            if (i > 0) {
                x += std::max(need[i - 1], half_before + halves[i] + 16);
            } else {
                x = std::max(x, halves[i] + 8);
            }
            x_.push_back(x);
            half_before = halves[i];
        }
        const int last = std::max(need[x_.empty() ? 0 : x_.size() - 1], half_before);
        width_ = std::max({x + last, 420, width_of(title(), 15) + 16}) + 16;
        for (const std::string& remark : remarks()) {
            width_ = std::max(width_, width_of(remark) + 32);
        }
    }

    void place_rows() {
        top_ = kTitle + 44 + 20 * key_lines(width_);
        int y = top_ + kRow;
        for (const LadderRow& row : content_.rows) {
            y += row.gap > 0 ? kBreak : 0;
            y_.push_back(y);
            y += kRow;
        }
        bottom_ = y;
    }

    [[nodiscard]] std::string heading(const QpName& line) const {
        if (line.qpn == kHostLine) {
            return run_.label(line.node);
        }
        const auto service = run_.services.find(line);
        return run_.label(line) +
               (service == run_.services.end() ? std::string() : ", " + service->second);
    }

    [[nodiscard]] std::size_t places() const {
        const auto last = std::max_element(content_.places.begin(), content_.places.end());
        return last == content_.places.end() ? 0 : *last + 1;
    }

    [[nodiscard]] std::string headings(const std::vector<QpName>& lines, int y) const {
        std::string out;
        for (const QpName& line : lines) {
            out += text(x_of(line), y, "middle", kInk, heading(line),
                        " font-weight=\"bold\" font-size=\"13\" paint-order=\"stroke\" "
                        "stroke=\"#ffffff\" stroke-width=\"5\"");
        }
        return out;
    }

    // A line from each heading to the next at its place, and the first headings.
    [[nodiscard]] std::string life_lines() const {
        std::map<int, int> open;  // by place: where its line began
        std::string out;
        const auto draw = [&out](int x, int from, int to) {
            out += fmt::format(
                "<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\" stroke=\"#777777\"/>", x, from,
                to);
        };
        for (const QpName& line : content_.heads) {
            open[x_of(line)] = top_;
        }
        for (std::size_t i = 0; i < content_.rows.size(); ++i) {
            for (const QpName& line : content_.rows[i].heads) {
                const int x = x_of(line);
                if (const auto before = open.find(x); before != open.end()) {
                    const int gap = content_.rows[i].gap > 0 ? kBreak : 0;
                    draw(x, before->second, y_[i] - kRow / 2 - gap);
                }
                open[x] = y_[i] + kRow / 2;
            }
        }
        for (const auto& [x, from] : open) {
            draw(x, from, bottom_);
        }
        return out + headings(content_.heads, top_ - 10);
    }

    [[nodiscard]] std::string time_break(std::size_t at) const {
        const int y = y_[at] - kRow / 2 - kBreak / 2 - 2;
        return fmt::format(
                   "<rect x=\"0\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#f4f6f8\"/>"
                   "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#777777\" "
                   "stroke-dasharray=\"2 3\"/>\n",
                   y - 9, width_, 18, kFirstLine - 30, y, width_ - 16, y) +
               text(16, y + 4, "start", kInk,
                    fmt::format("{} pass", time_text(content_.rows[at].gap)));
    }

    [[nodiscard]] std::string note_mark(std::size_t at) const {
        const LadderRow& row = content_.rows[at];
        std::string out;
        for (const QpName& mark : row.marks) {
            out += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\"/>", x_of(mark),
                               y_[at], row.colour);
        }
        return out + with_edge(x_of(row.marks.front()) + 10, y_[at] + 4, 1, row.text,
                               " font-weight=\"bold\"");
    }

    [[nodiscard]] std::string label(std::size_t at) const {
        const RunPacket& packet = first_of(at);
        const int way = direction(packet, first_end(at));
        return with_edge(x_of(packet.from) + 10 * way, y_[at] - 5, way, words(at));
    }

    // One to each end that has a row; else one that is cut after a short way.
    [[nodiscard]] std::string arrows(std::size_t at) const {
        const RunPacket& packet = first_of(at);
        const int x = x_of(packet.from);
        const auto ends = end_rows_.find(content_.rows[at].part);
        if (ends == end_rows_.end()) {
            const int way = direction(packet, first_end(at));
            return arrow(at, x + way * 70, y_[at] + kRow / 3, false);
        }
        std::string out;
        for (const std::size_t row : ends->second) {
            const std::size_t end = content_.rows[row].end;
            const Arrival* const arrival = packet.arrival(end);
            const bool is_taken = arrival != nullptr && arrival->discarded.empty();
            const int stop = arrival == nullptr ? x + direction(packet, end) * loss_distance(packet)
                             : is_taken         ? x_of_end(packet, end)
                                                : mark_of_discard(packet, end);
            out += arrow(at, stop, y_[row], is_taken);
        }
        return out;
    }
    [[nodiscard]] int x_of_end(const RunPacket& packet, std::size_t end) const {
        const std::optional<std::size_t> to = other_column(packet, end);
        return to ? x_[*to] : x_of(packet.from) + 60;
    }
    [[nodiscard]] int mark_of_discard(const RunPacket& packet, std::size_t end) const {
        return x_of_end(packet, end) - direction(packet, end) * kMark;
    }

    [[nodiscard]] std::string arrow(std::size_t at, int x, int y, bool is_taken) const {
        const RunPacket& packet = first_of(at);
        const bool refuses = packet.answer().find("NAK") != std::string::npos;
        const std::string_view marker = refuses ? "nak" : packet.retransmission ? "again" : "sent";
        return fmt::format(
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" "
            "stroke-width=\"{}\"{}{}/>\n",
            x_of(packet.from), y_[at], x, y,
            refuses                 ? kVermilion
            : packet.retransmission ? kOrange
                                    : kBlue,
            part_of(at).packets.size() > 1 ? kThick
            : refuses                      ? kMedium
                                           : kThin,
            packet.retransmission ? " stroke-dasharray=\"7 3\"" : "",
            is_taken ? fmt::format(" marker-end=\"url(#{})\"", marker) : std::string());
    }

    // Returns what stopped a packet, with the reason; nothing where it was taken.
    [[nodiscard]] std::string end_mark(std::size_t at) const {
        const RunPacket& packet = first_of(at);
        const std::size_t end = content_.rows[at].end;
        const int way = direction(packet, end);
        const Arrival* const arrival = packet.arrival(end);
        if (arrival == nullptr) {
            const int x = x_of(packet.from) + way * loss_distance(packet);
            return cross(x, y_[at]) + with_edge(x + 12 * way, y_[at] + 4, way, packet.loss_words());
        }
        if (arrival->discarded.empty()) {
            return {};
        }
        const int x = mark_of_discard(packet, end);
        return bar(x, y_[at]) + with_edge(x - 10 * way, y_[at] + 4, -way, arrival->discarded);
    }

    [[nodiscard]] std::vector<std::string> remarks() const {
        std::vector<std::string> all;
        if (content_.lines.empty()) {
            all.emplace_back("The trace has no queue pair.");
        }
        if (content_.rows_left_out > 0) {
            all.push_back(
                fmt::format("The end is left out: {} more row{}. To draw all: simverbs viz ladder "
                            "TRACE --rows {}",
                            content_.rows_left_out, content_.rows_left_out == 1 ? "" : "s",
                            content_.rows_left_out + content_.rows_drawn));
        }
        if (!content_.peers_not_drawn.empty()) {
            all.push_back(peers_not_drawn());
        }
        if (content_.lines_left_out > 0) {
            all.push_back(
                fmt::format("Left out for want of room: {} more queue pair{}. To choose: "
                            "simverbs viz ladder TRACE --qp HOST:NUMBER",
                            content_.lines_left_out, content_.lines_left_out == 1 ? "" : "s"));
        }
        return all;
    }

    // Names a few.
    [[nodiscard]] std::string peers_not_drawn() const {
        constexpr std::size_t kMost = 3;
        std::string names;
        std::size_t packets = 0;
        std::size_t count = 0;
        for (const auto& [peer, number] : content_.peers_not_drawn) {
            packets += number;
            if (++count <= kMost) {
                names += fmt::format(" --qp {}:0x{:x}", run_.label(peer.node), peer.qpn);
            }
        }
        return fmt::format(
            "Not drawn: {} packet{} to or from queue pairs without a life line. To "
            "draw {}: add{}",
            packets, packets == 1 ? "" : "s", count > kMost ? "some" : "them", names);
    }

    const Run& run_;
    LadderRows content_;
    std::map<QpName, std::size_t> column_;
    std::map<std::size_t, std::vector<std::size_t>> end_rows_;  // by part
    std::vector<int> x_;
    std::vector<int> y_;
    int width_ = 0;
    int top_ = 0;
    int bottom_ = 0;
};

}  // namespace

std::string ladder(const Trace& trace, const Run& run, const LadderOptions& options) {
    for (std::size_t lines = kUsualLines;; --lines) {
        const Ladder ladder(run, ladder_rows(trace, run, options, lines));
        if (ladder.width() <= kWidest || lines == 1 || !options.qps.empty()) {
            return ladder.svg();
        }
    }
}

}  // namespace simverbs::viz
