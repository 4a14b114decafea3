#include "simverbs/cli/watch_screen.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simverbs/server/text_table.hpp"

namespace simverbs::cli {
namespace {

using nlohmann::json;

constexpr std::uint64_t kPsPerSecond = 1'000'000'000'000;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::string_view kNone = "-";

// A row of a table, and whether it is worth seeing before others.
struct Row {
    TableRow cells;
    bool first = false;
};

// `count` in `elapsed` units of which `a_second` are a second.
std::string rate(std::uint64_t count, std::int64_t elapsed, std::uint64_t a_second) {
    if (elapsed <= 0) {
        return std::string(count == 0 ? "0" : kNone);
    }
    __extension__ using Wide = unsigned __int128;
    return short_number(
        static_cast<std::uint64_t>(Wide{count} * a_second / static_cast<std::uint64_t>(elapsed)));
}

class Screen {
  public:
    Screen(const Watched& now, const Watched* before) : now_(now), before_(before) {
        if (before == nullptr) {
            return;
        }
        virtual_ps_ = now.time_ps - before->time_ps;
        wall_ns_ = now.wall_ns - before->wall_ns;
        for (const WatchedQueuePair& qp : before->queue_pairs) {
            queue_pairs_[{qp.device, qp.qpn}] = &qp;
        }
        for (const WatchedPort& port : before->ports) {
            ports_[port.name] = &port;
        }
    }

    [[nodiscard]] std::string heading(std::string_view keys) const {
        std::string text = fmt::format("{}  virtual time {}{}{}\n", now_.topology,
                                       seconds(now_.time_ps), keys.empty() ? "" : "  ", keys);
        if (before_ != nullptr) {
            text += fmt::format("{} more in {} of wall time, {} events a second\n",
                                seconds(virtual_ps_), seconds(wall_ns_ * 1000),
                                rate(now_.events - before_->events, wall_ns_, kNsPerSecond));
        }
        return text + (now_.users.empty() ? "" : fmt::format("users: {}\n", now_.users));
    }

    [[nodiscard]] std::vector<Row> queue_pair_rows() const {
        std::vector<Row> rows{{{"queue pair", "service", "state", "peer", "sent", "/s virtual",
                                "/s wall", "received", "/s virtual", "/s wall", "open", "waits"}}};
        for (const WatchedQueuePair& qp : now_.queue_pairs) {
            const auto found = queue_pairs_.find({qp.device, qp.qpn});
            const WatchedQueuePair* const was =
                found == queue_pairs_.end() ? nullptr : found->second;
            Row row{{fmt::format("{} {:#08x}", qp.device, qp.qpn), qp.service, qp.state,
                     qp.peer == 0 ? std::string(kNone) : fmt::format("{:#08x}", qp.peer)},
                    qp.state == "ERR" || qp.state == "SQE"};
            add_messages(row, qp.sends_done, was == nullptr ? nullptr : &was->sends_done);
            add_messages(row, qp.received, was == nullptr ? nullptr : &was->received);
            row.cells.push_back(std::to_string(qp.sends_outstanding));
            row.cells.push_back(qp.waits);
            rows.push_back(std::move(row));
        }
        return rows;
    }

    [[nodiscard]] std::vector<Row> port_rows() const {
        std::vector<Row> rows{{{"port", "state", "rate", "sent", "bit/s virtual", "received",
                                "bit/s virtual", "lost", "failed", "retried", "not ready"}}};
        for (const WatchedPort& port : now_.ports) {
            const auto found = ports_.find(port.name);
            const WatchedPort* const was = found == ports_.end() ? nullptr : found->second;
            Row row{{port.name, port.state, port.rate},
                    port.state != "ACTIVE" || port.lost + port.failed != 0};
            add_traffic(row, port.sent_packets, port.sent_bytes,
                        was == nullptr ? nullptr : &was->sent_bytes);
            add_traffic(row, port.received_packets, port.received_bytes,
                        was == nullptr ? nullptr : &was->received_bytes);
            for (const std::uint64_t count :
                 {port.lost, port.failed, port.retried, port.not_ready}) {
                row.cells.push_back(std::to_string(count));
            }
            rows.push_back(std::move(row));
        }
        return rows;
    }

  private:
    static std::string seconds(std::int64_t ps) {
        return fmt::format("{}.{:09d} s", ps / static_cast<std::int64_t>(kPsPerSecond),
                           ps % static_cast<std::int64_t>(kPsPerSecond) / 1000);
    }

    // Numbers that begin again, after RESET, have no rate.
    void add_messages(Row& row, std::uint64_t count, const std::uint64_t* before) const {
        row.cells.push_back(std::to_string(count));
        if (before == nullptr || count < *before) {
            row.cells.insert(row.cells.end(), 2, std::string(kNone));
            return;
        }
        row.cells.push_back(rate(count - *before, virtual_ps_, kPsPerSecond));
        row.cells.push_back(rate(count - *before, wall_ns_, kNsPerSecond));
        row.first = row.first || count > *before;
    }

    void add_traffic(Row& row, std::uint64_t packets, std::uint64_t bytes,
                     const std::uint64_t* before) const {
        row.cells.push_back(std::to_string(packets));
        row.cells.push_back(before == nullptr
                                ? std::string(kNone)
                                : rate((bytes - *before) * 8, virtual_ps_, kPsPerSecond));
        row.first = row.first || (before != nullptr && bytes > *before);
    }

    const Watched& now_;
    const Watched* before_;
    std::int64_t virtual_ps_ = 0;
    std::int64_t wall_ns_ = 0;
    std::map<std::pair<std::string, std::uint64_t>, const WatchedQueuePair*> queue_pairs_;
    std::map<std::string, const WatchedPort*> ports_;
};

constexpr std::size_t kBetween = 2;  // columns of text_table

// Where a row does not fit into the columns of a terminal, leaves out columns of the table by their
// headings: those of `first` in that order, and the one at the right of two alike first.
void leave_out(std::vector<Row>& rows, std::size_t columns,
               std::span<const std::string_view> first) {
    const auto width = [&rows] {
        std::size_t sum = 0;
        // The last one may be cut.
        for (std::size_t column = 0; column + 1 < rows[0].cells.size(); ++column) {
            std::size_t widest = 0;
            for (const Row& row : rows) {
                widest = std::max(widest, row.cells[column].size());
            }
            sum += widest + kBetween;
        }
        return sum + rows[0].cells.back().size();
    };
    for (std::size_t next = 0; next < first.size() && width() > columns;) {
        const TableRow& heading = rows[0].cells;
        const auto found = std::find(heading.rbegin(), heading.rend(), first[next]);
        if (found == heading.rend()) {
            ++next;
            continue;
        }
        const auto column = heading.rend() - found - 1;
        for (Row& row : rows) {
            row.cells.erase(row.cells.begin() + column);
        }
    }
}

constexpr auto kLessOfQueuePairs =
    std::to_array<std::string_view>({"/s wall", "service", "/s virtual", "peer", "open"});
constexpr auto kLessOfPorts =
    std::to_array<std::string_view>({"rate", "bit/s virtual", "not ready", "retried"});

// The heading and `most` lines at most: fewer rows, and how many are missing, where not all fit.
std::string table(std::vector<Row> rows, std::size_t most, std::string_view what) {
    std::size_t missing = 0;
    if (rows.size() > most) {
        std::stable_partition(rows.begin() + 1, rows.end(),
                              [](const Row& row) { return row.first; });
        const std::size_t kept = std::max<std::size_t>(most, 3) - 1;
        missing = rows.size() - std::min(rows.size(), kept);
        rows.resize(rows.size() - missing);
    }
    std::vector<TableRow> cells;
    cells.reserve(rows.size());
    for (Row& row : rows) {
        cells.push_back(std::move(row.cells));
    }
    return text_table(cells) +
           (missing == 0 ? "" : fmt::format("... and {} more {}\n", missing, what));
}

std::string cut(const std::string& text, std::size_t columns) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        out.append(text, at, std::min(end - at, columns));
        out += '\n';
        at = end + 1;
    }
    return out;
}

WatchedQueuePair queue_pair_of(const json& qp) {
    return {qp.at("device"),     qp.at("qpn"),      qp.at("peer"),
            qp.at("service"),    qp.at("state"),    qp.at("sends_outstanding"),
            qp.at("sends_done"), qp.at("received"), qp.at("waits")};
}

WatchedPort port_of(const json& port) {
    return {port.at("port"),
            port.at("state"),
            port.at("rate"),
            port.at("sent_packets"),
            port.at("sent_bytes"),
            port.at("received_packets"),
            port.at("received_bytes"),
            port.at("lost"),
            port.value("failed", std::uint64_t{0}),
            port.value("retried", std::uint64_t{0}),
            port.value("not_ready", std::uint64_t{0})};
}

}  // namespace

std::optional<Watched> read_watched(const std::string& text, std::int64_t wall_ns) {
    try {
        const json said = json::parse(text);
        Watched watched{said.at("topology"), said.at("time_ps"), wall_ns, said.at("events"), {}, {},
                        said.at("users")};
        for (const json& qp : said.at("queue_pairs")) {
            watched.queue_pairs.push_back(queue_pair_of(qp));
        }
        for (const json& port : said.at("ports")) {
            watched.ports.push_back(port_of(port));
        }
        return watched;
    } catch (const json::exception&) {  // its only way to say that something is missing
        return std::nullopt;
    }
}

std::string short_number(std::uint64_t number) {
    constexpr std::array<std::string_view, 7> kUnits = {"", "k", "M", "G", "T", "P", "E"};
    std::uint64_t hundredths = 0;  // of the unit
    std::size_t unit = 0;
    std::uint64_t whole = number;
    while (whole >= 1000) {
        hundredths = whole % 1000 / 10;
        whole /= 1000;
        ++unit;
    }
    if (unit == 0 || whole >= 100) {
        return fmt::format("{}{}", whole, kUnits[unit]);
    }
    return whole >= 10 ? fmt::format("{}.{}{}", whole, hundredths / 10, kUnits[unit])
                       : fmt::format("{}.{:02d}{}", whole, hundredths, kUnits[unit]);
}

std::string watch_screen(const Watched& now, const Watched* before, const ScreenSize& size,
                         std::string_view keys) {
    const Screen screen(now, before);
    std::vector<Row> queue_pairs = screen.queue_pair_rows();
    std::vector<Row> ports = screen.port_rows();
    leave_out(queue_pairs, size.columns, kLessOfQueuePairs);
    leave_out(ports, size.columns, kLessOfPorts);
    std::size_t for_queue_pairs = queue_pairs.size();
    std::size_t for_ports = ports.size();
    // The heading, and two empty lines.
    const std::size_t other = (before == nullptr ? 3 : 4) + (now.users.empty() ? 0 : 1);
    if (const std::size_t all = for_queue_pairs + for_ports + other; all > size.lines) {
        const std::size_t room = size.lines - std::min(size.lines, other);
        for_ports = std::min(for_ports, std::max(room / 2, room - std::min(room, for_queue_pairs)));
        for_queue_pairs = room - std::min(room, for_ports);
    }
    const std::string nothing = "no queue pair\n";
    return cut(screen.heading(keys) + "\n" +
                   (now.queue_pairs.empty() ? nothing
                                            : table(queue_pairs, for_queue_pairs, "queue pairs")) +
                   "\n" + table(ports, for_ports, "ports"),
               size.columns);
}

}  // namespace simverbs::cli
