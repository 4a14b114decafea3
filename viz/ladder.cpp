#include "viz/ladder.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "viz/markup.hpp"
#include "viz/palette.hpp"

namespace simverbs::viz {
namespace {

constexpr std::size_t kUsualLines = 8;
constexpr int kGutter = 110;  // for the times
constexpr int kColumn = 340;
constexpr int kRow = 24;
constexpr int kTop = 84;

enum class Kind : std::uint8_t { kSent, kCame, kLost, kNote };

struct Row {
    std::int64_t time = 0;
    std::uint64_t seq = 0;
    Kind kind = Kind::kNote;
    std::size_t packet = 0;  // of the run; unless it is a note
    QpName qp{};             // a note's
    std::string text{};      // likewise
    std::string_view colour = kInk;
};

// Words of a record that belongs on a life line; "" for others.
std::string note(const Record& record, std::string_view& colour) {
    if (record.name == "qp_state") {
        colour = record.text("to") == "ERR" || record.text("to") == "SQE" ? kVermilion : kGreen;
        return fmt::format("{} > {}", record.text("from"), record.text("to"));
    }
    if (record.name == "completion") {
        const bool good = record.text("status") == "SUCCESS";
        colour = good ? kGreen : kVermilion;
        return good ? fmt::format("done: {}", record.text("opcode"))
                    : fmt::format("failed: {} {}", record.text("opcode"), record.text("status"));
    }
    return {};
}

class Ladder {
  public:
    Ladder(const Trace& trace, const Run& run, const LadderOptions& options)
        : run_(run), options_(options), lines_(options.qps) {
        if (lines_.empty()) {
            choose_lines();
        }
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            column_[lines_[i]] = static_cast<int>(i);
        }
        add_packets();
        add_notes(trace);
        std::stable_sort(rows_.begin(), rows_.end(),
                         [](const Row& a, const Row& b) { return a.seq < b.seq; });
        if (rows_.size() > options.rows) {
            left_out_ = rows_.size() - options.rows;
            rows_.resize(options.rows);
        }
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (rows_[i].kind == Kind::kCame || rows_[i].kind == Kind::kLost) {
                end_row_[rows_[i].packet] = i;
            }
        }
    }

    [[nodiscard]] std::string svg() const {
        const int width =
            kGutter + kColumn * static_cast<int>(std::max<std::size_t>(lines_.size(), 1)) + 40;
        const int height = y_of(rows_.size()) + 40;
        std::string out = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 "
            "{0} {1}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" "
            "role=\"img\">\n"
            "<title>Packets between queue pairs</title>\n"
            "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            width, height);
        out += markers() + key();
        for (const QpName& line : lines_) {
            out += life_line(line);
        }
        std::int64_t shown = INT64_MIN;
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (rows_[i].time != shown) {
                shown = rows_[i].time;
                out += fmt::format(
                    "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#5a5a5a\">{}</text>\n",
                    kGutter - 16, y_of(i) + 4, time_text(shown));
            }
            out += rows_[i].kind == Kind::kNote   ? note_mark(i)
                   : rows_[i].kind == Kind::kSent ? arrow(i)
                                                  : std::string();
        }
        if (left_out_ > 0) {
            out += fmt::format(
                "<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{} more rows are not "
                "drawn (--rows)</text>\n",
                kGutter, y_of(rows_.size()) + 20, left_out_);
        }
        return out + "</svg>\n";
    }

  private:
    void choose_lines() {
        const auto add = [this](const QpName& qp) {
            if (lines_.size() < kUsualLines &&
                std::find(lines_.begin(), lines_.end(), qp) == lines_.end()) {
                lines_.push_back(qp);
            }
        };
        for (const RunPacket& packet : run_.packets) {
            if (const std::optional<QpName> to = run_.destination(packet)) {
                add(packet.from);
                add(*to);
            }
        }
        if (lines_.empty()) {
            for (const auto& [qp, service] : run_.services) {
                add(qp);
            }
        }
    }

    void add_packets() {
        for (std::size_t i = 0; i < run_.packets.size(); ++i) {
            const RunPacket& packet = run_.packets[i];
            const std::optional<QpName> to = run_.destination(packet);
            const bool drawn = column_.contains(packet.from) && (!to || column_.contains(*to));
            if (!drawn || !within(packet.sent)) {
                continue;
            }
            rows_.push_back(
                {.time = packet.sent, .seq = packet.sent_seq, .kind = Kind::kSent, .packet = i});
            if (!packet.lost.empty()) {
                rows_.push_back({.time = packet.lost_time,
                                 .seq = packet.end_seq,
                                 .kind = Kind::kLost,
                                 .packet = i});
            } else if (packet.arrived_at) {
                rows_.push_back({.time = packet.arrived,
                                 .seq = packet.end_seq,
                                 .kind = Kind::kCame,
                                 .packet = i});
            }
        }
    }

    void add_notes(const Trace& trace) {
        for (const Record& record : trace.records) {
            const QpName qp{record.node, record.id("qpn")};
            if (!column_.contains(qp) || !within(record.time)) {
                continue;
            }
            std::string_view colour = kInk;
            if (std::string text = note(record, colour); !text.empty()) {
                rows_.push_back({.time = record.time,
                                 .seq = record.seq,
                                 .kind = Kind::kNote,
                                 .qp = qp,
                                 .text = std::move(text),
                                 .colour = colour});
            }
        }
    }

    [[nodiscard]] bool within(std::int64_t time) const {
        return time >= options_.from && time <= options_.until;
    }
    static int y_of(std::size_t row) { return kTop + kRow * static_cast<int>(row); }
    [[nodiscard]] int x_of(const QpName& qp) const {
        return kGutter + 60 + kColumn * column_.at(qp);
    }

    static std::string markers() {
        std::string out = "<defs>";
        for (const auto& [name, colour] :
             {std::pair<std::string_view, std::string_view>{"sent", kBlue},
              {"again", kOrange},
              {"nak", kVermilion}}) {
            out += fmt::format(
                "<marker id=\"{}\" markerWidth=\"9\" markerHeight=\"8\" refX=\"8\" refY=\"4\" "
                "orient=\"auto\"><path d=\"M0,0 L9,4 L0,8 z\" fill=\"{}\"/></marker>",
                name, colour);
        }
        return out + "</defs>\n";
    }

    static std::string key() {
        return fmt::format(
            "<g font-size=\"11\"><line x1=\"{0}\" y1=\"16\" x2=\"{1}\" y2=\"16\" stroke=\"{2}\" "
            "stroke-width=\"1.6\" marker-end=\"url(#sent)\"/><text x=\"{3}\" y=\"20\">packet</text>"
            "<line x1=\"{4}\" y1=\"16\" x2=\"{5}\" y2=\"16\" stroke=\"{6}\" stroke-width=\"1.6\" "
            "stroke-dasharray=\"7 3\" marker-end=\"url(#again)\"/><text x=\"{7}\" y=\"20\">sent "
            "again</text><line x1=\"{8}\" y1=\"16\" x2=\"{9}\" y2=\"16\" stroke=\"{10}\" "
            "stroke-width=\"2.4\" marker-end=\"url(#nak)\"/><text x=\"{11}\" y=\"20\">NAK, RNR NAK"
            "</text><text x=\"{12}\" y=\"21\" fill=\"{10}\" font-size=\"16\" font-weight=\"bold\">"
            "&#10005;</text><text x=\"{13}\" y=\"20\">lost</text></g>\n",
            kGutter, kGutter + 34, kBlue, kGutter + 40, kGutter + 100, kGutter + 134, kOrange,
            kGutter + 140, kGutter + 220, kGutter + 254, kVermilion, kGutter + 260, kGutter + 350,
            kGutter + 370);
    }

    [[nodiscard]] std::string life_line(const QpName& line) const {
        const int x = x_of(line);
        const auto service = run_.services.find(line);
        return fmt::format(
            "<line x1=\"{0}\" y1=\"60\" x2=\"{0}\" y2=\"{1}\" stroke=\"#777777\"/><text x=\"{0}\" "
            "y=\"50\" text-anchor=\"middle\" font-weight=\"bold\" font-size=\"13\">{2}{3}</text>\n",
            x, y_of(rows_.size()), escaped(run_.label(line)),
            service == run_.services.end() ? std::string() : ", " + escaped(service->second));
    }

    [[nodiscard]] std::string note_mark(std::size_t at) const {
        const Row& row = rows_[at];
        const int x = x_of(row.qp);
        return fmt::format(
            "<circle cx=\"{0}\" cy=\"{1}\" r=\"4\" fill=\"{2}\"/><text x=\"{3}\" y=\"{4}\" "
            "fill=\"{5}\" font-weight=\"bold\" stroke=\"#ffffff\" stroke-width=\"3\" "
            "paint-order=\"stroke\">{6}</text>\n",
            x, y_of(at), row.colour, x + 9, y_of(at) + 4, kInk, escaped(row.text));
    }

    [[nodiscard]] std::string arrow(std::size_t at) const {
        const RunPacket& packet = run_.packets[rows_[at].packet];
        const std::optional<QpName> to = run_.destination(packet);
        const auto end = end_row_.find(rows_[at].packet);
        const int x1 = x_of(packet.from);
        int x2 = to ? x_of(*to) : x1 + kColumn / 2;
        const int y1 = y_of(at);
        const int y2 = end != end_row_.end() ? y_of(end->second)
                       : left_out_ > 0       ? y_of(rows_.size())  // it ends further down
                                             : y1 + kRow / 2;
        const bool is_lost = !packet.lost.empty();
        if (is_lost) {
            x2 = x1 + (x2 - x1) * 6 / 10;
        }
        const std::string answer = packet.answer();
        const bool refuses = answer.find("NAK") != std::string::npos;
        const std::string_view colour = refuses                 ? kVermilion
                                        : packet.retransmission ? kOrange
                                                                : kBlue;
        std::string out = fmt::format(
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" "
            "stroke-width=\"{}\"{}{}/>\n",
            x1, y1, x2, y2, colour, refuses ? "2.4" : "1.6",
            packet.retransmission ? " stroke-dasharray=\"7 3\"" : "",
            is_lost   ? std::string()
            : refuses ? std::string(" marker-end=\"url(#nak)\"")
                      : fmt::format(" marker-end=\"url(#{})\"",
                                    packet.retransmission ? "again" : "sent"));
        if (is_lost) {
            out += fmt::format(
                "<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\" font-size=\"18\" "
                "font-weight=\"bold\" fill=\"{2}\">&#10005;</text><text x=\"{3}\" y=\"{4}\" "
                "text-anchor=\"{5}\" fill=\"{2}\" stroke=\"#ffffff\" stroke-width=\"3\" "
                "paint-order=\"stroke\">lost at {6}: {7}</text>\n",
                x2, y2 + 6, kVermilion, x2 + (x2 > x1 ? 12 : -12), y2 + 4,
                x2 > x1 ? "start" : "end", escaped(packet.lost_where), escaped(packet.lost));
        }
        const bool rightwards = x2 > x1;
        out += fmt::format(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" fill=\"{}\" stroke=\"#ffffff\" "
            "stroke-width=\"3\" paint-order=\"stroke\">{}</text>\n",
            x1 + (rightwards ? 10 : -10), y1 - 4, rightwards ? "start" : "end", kInk,
            escaped(words(packet, answer)));
        return out;
    }

    static std::string words(const RunPacket& packet, const std::string& answer) {
        std::string text = packet.opcode == "ACKNOWLEDGE" ? answer : packet.opcode;
        text += fmt::format(", PSN {}", packet.psn);
        if (packet.payload > 0) {
            text += fmt::format(", {} B", packet.payload);
        }
        if (!answer.empty() && packet.opcode != "ACKNOWLEDGE") {
            text += ", " + answer;
        }
        return packet.retransmission ? text + " (again)" : text;
    }

    const Run& run_;
    const LadderOptions& options_;
    std::vector<QpName> lines_;
    std::map<QpName, int> column_;
    std::vector<Row> rows_;
    std::map<std::size_t, std::size_t> end_row_;
    std::size_t left_out_ = 0;
};

}  // namespace

std::string ladder(const Trace& trace, const Run& run, const LadderOptions& options) {
    return Ladder(trace, run, options).svg();
}

}  // namespace simverbs::viz
