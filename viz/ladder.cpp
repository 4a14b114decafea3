#include "viz/ladder.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "viz/ladder_rows.hpp"
#include "viz/markup.hpp"
#include "viz/palette.hpp"

namespace simverbs::viz {
namespace {

// Pixels.
constexpr int kWidest = 1990;
constexpr int kFirstLine = 170;  // the times stand left of it
constexpr int kLeastGap = 150;   // between life lines
constexpr int kRow = 24;
constexpr int kBreak = 26;  // what a break adds
constexpr int kFont = 12;
constexpr int kFromSender = 34;  // a packet that its sender's link lost
constexpr int kFromSwitch = 90;
constexpr int kMark = 12;  // marks of discarded packets stand so far before the life line
constexpr std::size_t kUsualLines = 8;
constexpr std::string_view kThin = "1.6";
constexpr std::string_view kMedium = "2.4";
constexpr std::string_view kThick = "3.4";  // of several packets

// As wide as a wide font makes it.
int width_of(std::string_view text, int size = kFont) {
    return static_cast<int>(text.size()) * size * 68 / 100;
}

// A line of that style, or a mark.
struct KeyItem {
    std::string_view words;
    std::string_view colour;
    std::string_view width;
    std::string_view more{};  // attributes
    char mark = ' ';
};
constexpr std::array<KeyItem, 7> kKey = {{
    {"packet", kBlue, kThin, "marker-end=\"url(#sent)\""},
    {"several packets of a message", kBlue, kThick, "marker-end=\"url(#sent)\""},
    {"sent again", kOrange, kThin, "stroke-dasharray=\"7 3\" marker-end=\"url(#again)\""},
    {"NAK, RNR NAK", kVermilion, kMedium, "marker-end=\"url(#nak)\""},
    {"lost", kVermilion, "", "", 'x'},
    {"discarded on arrival", kVermilion, "", "", '|'},
    {"time passes", kFaint, "1", "stroke-dasharray=\"2 3\""},
}};
constexpr int kSample = 44;

class Ladder {
  public:
    Ladder(const Run& run, LadderRows content) : run_(run), content_(std::move(content)) {
        for (std::size_t i = 0; i < content_.lines.size(); ++i) {
            column_[content_.lines[i]] = content_.places[i];
        }
        for (std::size_t i = 0; i < content_.rows.size(); ++i) {
            if (content_.rows[i].kind == RowKind::kEnd) {
                end_row_[content_.rows[i].part] = i;
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
            "role=\"img\">\n<title>Packets between queue pairs</title>\n"
            "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            width_, height, kFont);
        out += markers() + key();
        out += life_lines();
        for (std::size_t i = 0; i < content_.rows.size(); ++i) {
            out += content_.rows[i].kind == RowKind::kSent ? arrow(i) : std::string();
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
    [[nodiscard]] std::optional<std::size_t> other_column(const RunPacket& packet) const {
        const std::optional<QpName> to = run_.destination(packet);
        return !to || *to == packet.from ? std::nullopt : std::optional(column(*to));
    }
    // +1: to the right.
    [[nodiscard]] int direction(const RunPacket& packet) const {
        const std::optional<std::size_t> to = other_column(packet);
        return to && *to < column(packet.from) ? -1 : 1;
    }
    // The gap, counted by the life line at its left, in which a packet's words stand.
    [[nodiscard]] std::size_t gap_of(const RunPacket& packet) const {
        return column(packet.from) - (direction(packet) < 0 ? 1 : 0);
    }
    // The gap before the life line where it arrives.
    [[nodiscard]] std::size_t last_gap_of(const RunPacket& packet) const {
        const std::optional<std::size_t> to = other_column(packet);
        return !to ? gap_of(packet) : *to - (direction(packet) > 0 ? 1 : 0);
    }

    [[nodiscard]] std::string words(std::size_t row) const {
        std::string words = words_of(run_, part_of(row));
        if (end_row_.contains(content_.rows[row].part)) {
            return words;
        }
        const RunPacket& last = run_.packets[part_of(row).packets.back()];
        return words +
               (last.lost.empty() && !last.arrived_at
                    ? ", under way at the end"
                    : fmt::format(", ends at {}, further down",
                                  time_text(last.lost.empty() ? last.arrived : last.lost_time)));
    }

    static std::string loss_words(const RunPacket& packet) {
        return fmt::format("{}, lost at {}",
                           packet.lost_fault.empty() ? packet.lost : packet.lost_fault,
                           packet.lost_where);
    }
    static int loss_distance(const RunPacket& packet) {
        return packet.lost_at == packet.from.node ? kFromSender : kFromSwitch;
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
                widen(column(row.qp), width_of(row.text) + 30);
                continue;
            }
            const RunPacket& packet = first_of(i);
            if (row.kind == RowKind::kSent) {
                widen(gap_of(packet), width_of(words(i)) + 24);
            } else if (!packet.lost.empty()) {
                widen(gap_of(packet), loss_distance(packet) + width_of(loss_words(packet)) + 30);
            } else if (!packet.discarded.empty()) {
                widen(last_gap_of(packet), kMark + width_of(packet.discarded) + 40);
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
        width_ = std::max(x + last, 420) + 16;
    }

    void place_rows() {
        top_ = 64 + 20 * key_lines();
        int y = top_ + kRow;
        for (const LadderRow& row : content_.rows) {
            y += row.gap > 0 ? kBreak : 0;
            y_.push_back(y);
            y += kRow;
        }
        bottom_ = y;
    }

    static std::string text(int x, int y, std::string_view anchor, std::string_view colour,
                            std::string_view content, std::string_view more = "") {
        return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>\n",
                           x, y, anchor, colour, more, escaped(content));
    }

    // Text with a white edge that parts it from the arrows below it.
    static std::string with_edge(int x, int y, int direction, std::string_view content,
                                 std::string_view more = "") {
        return text(x, y, direction > 0 ? "start" : "end", kInk, content,
                    fmt::format(" paint-order=\"stroke\" stroke=\"#ffffff\" stroke-width=\"5\" "
                                "stroke-linejoin=\"round\"{}",
                                more));
    }

    static std::string markers() {
        std::string out = "<defs>";
        for (const auto& [name, colour] :
             {std::pair<std::string_view, std::string_view>{"sent", kBlue},
              {"again", kOrange},
              {"nak", kVermilion}}) {
            out += fmt::format(
                "<marker id=\"{}\" markerWidth=\"11\" markerHeight=\"8\" refX=\"10\" refY=\"4\" "
                "markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0,0 L11,4 L0,8 z\" "
                "fill=\"{}\"/></marker>",
                name, colour);
        }
        return out + "</defs>\n";
    }

    static std::string cross(int x, int y) {
        return fmt::format(
            "<path d=\"M{},{} L{},{} M{},{} L{},{}\" fill=\"none\" stroke=\"{}\" "
            "stroke-width=\"2.6\"/>\n",
            x - 5, y - 5, x + 5, y + 5, x - 5, y + 5, x + 5, y - 5, kVermilion);
    }
    static std::string bar(int x, int y) {
        return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"4\" height=\"16\" fill=\"{}\"/>\n",
                           x - 2, y - 8, kVermilion);
    }

    // Where each item of the key stands.
    [[nodiscard]] std::vector<std::pair<int, int>> key_places() const {
        std::vector<std::pair<int, int>> places;
        int x = 16;
        int y = 18;
        for (const KeyItem& item : kKey) {
            const int width = kSample + width_of(item.words) + 16;
            if (x + width > width_ && x > 16) {
                x = 16;
                y += 20;
            }
            places.emplace_back(x, y);
            x += width;
        }
        return places;
    }
    [[nodiscard]] int key_lines() const { return (key_places().back().second - 18) / 20; }

    [[nodiscard]] std::string key() const {
        std::string out;
        const std::vector<std::pair<int, int>> places = key_places();
        for (std::size_t i = 0; i < kKey.size(); ++i) {
            const auto& [x, y] = places[i];
            const KeyItem& item = kKey[i];
            if (item.mark != ' ') {
                out += item.mark == 'x' ? cross(x + 20, y - 4) : bar(x + 20, y - 4);
            } else {
                out += fmt::format(
                    "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" "
                    "stroke-width=\"{}\" {}/>\n",
                    x, y - 4, x + 36, y - 4, item.colour, item.width, item.more);
            }
            out += text(x + kSample, y, "start", kInk, item.words);
        }
        return out;
    }

    [[nodiscard]] std::string heading(const QpName& line) const {
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
        const int x = x_of(row.qp);
        return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\"/>", x, y_[at],
                           row.colour) +
               with_edge(x + 10, y_[at] + 4, 1, row.text, " font-weight=\"bold\"");
    }

    [[nodiscard]] std::string label(std::size_t at) const {
        const RunPacket& packet = first_of(at);
        const int way = direction(packet);
        return with_edge(x_of(packet.from) + 10 * way, y_[at] - 5, way, words(at));
    }

    // Where the arrow ends: at its life line, at what stopped it, or cut after a short way.
    [[nodiscard]] std::pair<int, int> end_of(std::size_t at) const {
        const RunPacket& packet = first_of(at);
        const int way = direction(packet);
        const int x1 = x_of(packet.from);
        const auto end = end_row_.find(content_.rows[at].part);
        if (end == end_row_.end()) {
            return {x1 + way * 70, y_[at] + kRow / 3};
        }
        const std::optional<std::size_t> to = other_column(packet);
        const int x2 = to ? x_[*to] : x1 + 60;
        return {!packet.lost.empty()        ? x1 + way * loss_distance(packet)
                : !packet.discarded.empty() ? x2 - way * kMark
                                            : x2,
                y_[end->second]};
    }

    [[nodiscard]] std::string arrow(std::size_t at) const {
        const RunPacket& packet = first_of(at);
        const auto [x2, y2] = end_of(at);
        const bool refuses = packet.answer().find("NAK") != std::string::npos;
        const bool arrives = end_row_.contains(content_.rows[at].part) && packet.lost.empty() &&
                             packet.discarded.empty();
        const std::string_view marker = refuses ? "nak" : packet.retransmission ? "again" : "sent";
        return fmt::format(
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" "
            "stroke-width=\"{}\"{}{}/>\n",
            x_of(packet.from), y_[at], x2, y2,
            refuses                 ? kVermilion
            : packet.retransmission ? kOrange
                                    : kBlue,
            part_of(at).packets.size() > 1 ? kThick
            : refuses                      ? kMedium
                                           : kThin,
            packet.retransmission ? " stroke-dasharray=\"7 3\"" : "",
            arrives ? fmt::format(" marker-end=\"url(#{})\"", marker) : std::string());
    }

    // Returns what stopped a packet, with the reason; nothing where it was taken.
    [[nodiscard]] std::string end_mark(std::size_t at) const {
        const RunPacket& packet = first_of(at);
        const int way = direction(packet);
        if (!packet.lost.empty()) {
            const int x = x_of(packet.from) + way * loss_distance(packet);
            return cross(x, y_[at]) + with_edge(x + 12 * way, y_[at] + 4, way, loss_words(packet));
        }
        if (packet.discarded.empty()) {
            return {};
        }
        const std::optional<std::size_t> to = other_column(packet);
        const int x = (to ? x_[*to] : x_of(packet.from) + 60) - way * kMark;
        return bar(x, y_[at]) + with_edge(x - 10 * way, y_[at] + 4, -way, packet.discarded);
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
        if (content_.lines_left_out > 0) {
            all.push_back(
                fmt::format("Left out for want of room: {} more queue pair{}. To choose: "
                            "simverbs viz ladder TRACE --qp HOST:NUMBER",
                            content_.lines_left_out, content_.lines_left_out == 1 ? "" : "s"));
        }
        return all;
    }

    const Run& run_;
    LadderRows content_;
    std::map<QpName, std::size_t> column_;
    std::map<std::size_t, std::size_t> end_row_;  // of a part
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
