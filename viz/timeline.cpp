#include "viz/timeline.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "fabric/trace/json_lines_sink.hpp"

#include "viz/work_requests.hpp"

namespace simverbs::viz {
namespace {

enum class Track : std::uint8_t { kSends, kReceives, kSent, kCame };
constexpr std::uint32_t kTracks = 4;
constexpr std::array<std::string_view, kTracks> kTrackNames = {"send queue", "receive queue",
                                                               "packets out", "packets in"};

std::string quoted(std::string_view text) {
    std::string out;
    fabric::trace::append_json_string(out, text);
    return out;
}

std::string microseconds(std::int64_t picoseconds) {
    constexpr std::int64_t kMicro = 1'000'000;
    return fmt::format("{}.{:06}", picoseconds / kMicro, picoseconds % kMicro);
}

class Timeline {
  public:
    Timeline(const Trace& trace, const Run& run) : run_(run) {
        for (const WorkRequest& request : work_requests(trace, run)) {
            add(request, trace.records[request.completion]);
        }
        for (const Record& record : trace.records) {
            if (record.name == "qp_state" || record.name == "async_event" ||
                record.name == "fault_fired") {
                mark(record);
            }
        }
        add_packets();
        name_tracks();
    }

    [[nodiscard]] std::string text() const {
        std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
        for (const std::string& event : events_) {
            out += event;
            out += &event == &events_.back() ? "\n" : ",\n";
        }
        return out + "]}\n";
    }

  private:
    // Tracks of one node have numbers of their own; 1 is the node's.
    std::uint32_t track(const QpName& qp, Track which) {
        const auto place = numbers_.try_emplace(qp, static_cast<std::uint32_t>(numbers_.size()));
        used_.insert({qp, which});
        return 2 + place.first->second * kTracks + static_cast<std::uint32_t>(which);
    }
    static std::uint32_t process(std::uint32_t node) { return node + 1; }

    // Requests of a queue are drawn one after the other: each from when the one before was done.
    void add(const WorkRequest& request, const Record& record) {
        const QpName& qp = request.qp;
        const bool send = request.is_send;
        const std::int64_t since = request.posted;
        std::int64_t& free_since = free_since_[{qp, send}];
        const std::int64_t begin = std::min(record.time, std::max(since, free_since));
        const std::string name =
            record.text("status") == "SUCCESS"
                ? std::string(record.text("opcode"))
                : fmt::format("{} {}", record.text("opcode"), record.text("status"));
        slice(
            qp, send ? Track::kSends : Track::kReceives, name, begin, record.time,
            fmt::format("{{\"index\":{},\"status\":{},\"cause\":{},\"bytes\":{},\"posted_us\":{}}}",
                        record.id("index"), quoted(record.text("status")),
                        quoted(record.text("cause")), record.number("bytes"), microseconds(since)));
        free_since = record.time;
    }

    void mark(const Record& record) {
        const bool is_qp = record.name == "qp_state";
        const QpName qp{record.node, record.id("qpn")};
        const std::string name =
            is_qp ? fmt::format("{} > {}", record.text("from"), record.text("to"))
            : record.name == "async_event" ? std::string(record.text("event"))
                                           : run_.fault_text(record);
        events_.push_back(
            fmt::format(R"({{"ph":"i","s":"{}","cat":"{}","name":{},"ts":{},"pid":{},"tid":{}}})",
                        is_qp ? "t" : "p", record.category, quoted(name), microseconds(record.time),
                        process(record.node), is_qp ? track(qp, Track::kSends) : 1));
    }

    void slice(const QpName& qp, Track which, std::string_view name, std::int64_t begin,
               std::int64_t end, std::string_view arguments) {
        events_.push_back(fmt::format(
            R"({{"ph":"X","cat":"{}","name":{},"ts":{},"dur":{},"pid":{},"tid":{},"args":{}}})",
            which == Track::kSends || which == Track::kReceives ? "work" : "packet", quoted(name),
            microseconds(begin), microseconds(end - begin), process(qp.node), track(qp, which),
            arguments));
    }

    // Picoseconds for which the wire of a hop was busy with the packet.
    [[nodiscard]] std::int64_t busy_time(const Hop& hop) const {
        const auto link = std::ranges::find_if(run_.links, [&hop](const RunLink& each) {
            return (each.node == hop.node && each.port == hop.port) ||
                   (each.peer == hop.node && each.peer_port == hop.port);
        });
        return link == run_.links.end() ? 0 : link->wire_time(hop.wire_bytes);
    }

    // A packet is as long as the wire at that end is busy with it.
    void add_packets() {
        std::size_t flows = 0;
        for (const RunPacket& packet : run_.packets) {
            if (packet.hops.empty()) {
                continue;
            }
            const Hop& first = packet.hops.front();
            const std::string lost = quoted(packet.lost.empty() ? "" : packet.loss_words());
            const std::string arguments =
                packet.is_management
                    ? fmt::format(R"({{"lost":{}}})", lost)
                    : fmt::format(R"({{"psn":{},"payload":{},"again":{},"answer":{},"lost":{}}})",
                                  packet.psn, packet.payload, packet.retransmission,
                                  quoted(packet.answer()), lost);
            slice(packet.from, Track::kSent, packet.opcode, first.start,
                  first.start + busy_time(first), arguments);
            for (const Arrival& arrival : packet.arrivals) {
                const auto last = std::ranges::find(packet.hops, arrival.time, &Hop::arrival);
                const std::int64_t begin =
                    last == packet.hops.end() ? arrival.time : arrival.time - busy_time(*last);
                slice(arrival.at, Track::kCame, packet.opcode, begin, arrival.time, arguments);
                flow("s", flows, packet.from, Track::kSent, first.start);
                flow("f", flows, arrival.at, Track::kCame, arrival.time);
                ++flows;
            }
        }
    }

    void flow(std::string_view phase, std::size_t id, const QpName& qp, Track which,
              std::int64_t time) {
        events_.push_back(fmt::format(
            R"({{"ph":"{}","cat":"packet","name":"packet","id":{},"ts":{},"pid":{},"tid":{}{}}})",
            phase, id, microseconds(time), process(qp.node), track(qp, which),
            phase == "f" ? R"(,"bp":"e")" : ""));
    }

    void name_tracks() {
        for (const auto& [number, node] : run_.nodes) {
            if (!node.is_switch) {
                meta("process_name", process(number), 0, node.label);
            }
        }
        for (const auto& [qp, which] : used_) {
            meta("thread_name", process(qp.node), track(qp, which),
                 fmt::format("QP 0x{:x} {}", qp.qpn, kTrackNames[static_cast<std::size_t>(which)]));
        }
    }

    void meta(std::string_view what, std::uint32_t pid, std::uint32_t tid, std::string_view name) {
        events_.push_back(
            fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"ts":0,"args":{{"name":{}}}}})",
                        what, pid, tid, quoted(name)));
    }

    const Run& run_;
    std::map<std::pair<QpName, bool>, std::int64_t> free_since_;  // of a send or receive queue
    std::map<QpName, std::uint32_t> numbers_;
    std::set<std::pair<QpName, Track>> used_;
    std::vector<std::string> events_;
};

}  // namespace

std::string timeline(const Trace& trace, const Run& run) {
    return Timeline(trace, run).text();
}

}  // namespace simverbs::viz
