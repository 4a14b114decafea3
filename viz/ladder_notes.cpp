#include "viz/ladder_notes.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "simverbs/model/statuses.hpp"

#include "viz/palette.hpp"

namespace simverbs::viz {
namespace {

// nullptr: an event that the model does not have.
const AsyncEventProperties* event_named(std::string_view name) {
    const auto* const found = std::ranges::find(kAsyncEvents, name, &AsyncEventProperties::name);
    return found == kAsyncEvents.end() ? nullptr : &*found;
}

bool is_of_queue_pair(const Record& record) {
    const AsyncEventProperties* const event = event_named(record.text("event"));
    return event != nullptr && event->subject == EventSubject::kQp;
}

// "event: COMM_EST", "event: PORT_ERR of port 1".
std::string event_text(const Record& record) {
    std::string text = fmt::format("event: {}", record.text("event"));
    const AsyncEventProperties* const event = event_named(record.text("event"));
    if (event == nullptr) {
        return text;
    }
    switch (event->subject) {
        case EventSubject::kQp:
        case EventSubject::kDevice:
            return text;
        case EventSubject::kCq:
        case EventSubject::kPort:
            return fmt::format("{} of {} {}", text, to_string(event->subject),
                               record.id("subject"));
        case EventSubject::kSrq:
        case EventSubject::kWq:
            break;
    }
    return fmt::format("{} of {} 0x{:x}", text, to_string(event->subject), record.id("subject"));
}

// Words of a record that belongs on a life line; "" for others.
std::string note(const Record& record, const Run& run, std::string_view& colour) {
    if (record.name == "async_event") {
        colour = kPurple;
        return event_text(record);
    }
    if (record.name == "link_state") {
        colour = record.text("to") == "DOWN" ? kVermilion : kGreen;
        return fmt::format("link {} {}", record.text("link"), record.text("to"));
    }
    if (record.name == "fault_fired") {
        colour = kVermilion;
        const auto node = run.nodes.find(record.node);
        const bool is_at_switch =
            record.id("flow") == 0 && node != run.nodes.end() && node->second.is_switch;
        return is_at_switch ? fmt::format("{}: {}", node->second.label, run.fault_text(record))
                            : run.fault_text(record);
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

// Requests of a queue pair that were flushed at one instant: when, whose, what kind. Many of them
// are one note, at the first.
using FlushedName = std::tuple<std::int64_t, QpName, std::string_view>;
struct Flushed {
    const Record* first = nullptr;
    std::int64_t last_index = 0;
    std::size_t count = 0;
};
constexpr std::size_t kManyFlushed = 4;

bool is_flushed(const Record& record) {
    return record.name == "completion" && record.text("status") == "WR_FLUSH_ERR";
}

FlushedName flushed_name(const Record& record) {
    return {record.time, {record.node, record.id("qpn")}, record.text("opcode")};
}

std::map<FlushedName, Flushed> flushed_of(const Trace& trace) {
    std::map<FlushedName, Flushed> all;
    for (const Record& record : trace.records) {
        if (is_flushed(record)) {
            Flushed& flushed = all[flushed_name(record)];
            flushed.first = flushed.first == nullptr ? &record : flushed.first;
            flushed.last_index = record.number("index");
            ++flushed.count;
        }
    }
    return all;
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

// Which queue pairs use an object of their device: node, what it is, its number.
using Users = std::map<std::tuple<std::uint32_t, EventSubject, std::uint32_t>, std::set<QpName>>;

Users users_of(const Trace& trace) {
    Users users;
    for (const Record& record : trace.records) {
        if (record.name == "queue_pair") {
            const QpName qp{record.node, record.id("qpn")};
            for (const std::string_view queue : {"send_cq", "receive_cq"}) {
                users[{record.node, EventSubject::kCq, record.id(queue)}].insert(qp);
            }
            users[{record.node, EventSubject::kSrq, record.id("srq")}].insert(qp);
        }
    }
    return users;
}

// Puts the records that are no packets on the life lines that they concern.
class Notes {
  public:
    Notes(const Trace& trace, const Run& run, const Lives& lives, LadderRows& ladder)
        : run_(run),
          lives_(lives),
          users_(users_of(trace)),
          lost_(losses(run)),
          flushed_(flushed_of(trace)),
          ladder_(ladder) {}

    void add(const Record& record) {
        if (record.name == "link_state" && !is_news(record)) {
            return;
        }
        const QpName line = line_of(record);
        if (record.name == "fault_fired" && lost_.contains({record.time, line})) {
            return;
        }
        std::string_view colour = kInk;
        std::string text = note(record, run_, colour);
        if (is_flushed(record)) {
            const Flushed& flushed = flushed_.at(flushed_name(record));
            if (flushed.count >= kManyFlushed) {
                text = &record != flushed.first
                           ? ""
                           : fmt::format("failed: {}, requests {} to {}: WR_FLUSH_ERR",
                                         record.text("opcode"), record.number("index"),
                                         flushed.last_index);
            }
        }
        if (text.empty()) {
            return;
        }
        std::vector<QpName> marks = marks_of(record, line);
        if (!marks.empty()) {
            ladder_.rows.push_back({.time = record.time,
                                    .seq = record.seq,
                                    .kind = RowKind::kNote,
                                    .marks = std::move(marks),
                                    .text = std::move(text),
                                    .colour = colour});
        }
    }

  private:
    // Links that come up when the world begins are none.
    bool is_news(const Record& record) {
        const bool is_down = record.text("to") == "DOWN";
        const bool was_down = down_.contains(record.text("link"));
        if (is_down) {
            down_.emplace(record.text("link"));
        }
        return is_down || was_down;
    }

    // The queue pair's line; of an event of another object, those that use it, else all of the
    // host; of a fault at a switch all there are. One a place, which lives then if any does.
    [[nodiscard]] std::vector<QpName> marks_of(const Record& record, const QpName& line) const {
        const auto node = run_.nodes.find(record.node);
        const bool is_of_all = node != run_.nodes.end() && node->second.is_switch;
        const AsyncEventProperties* const event = event_named(record.text("event"));
        const auto users = event == nullptr
                               ? users_.end()
                               : users_.find({record.node, event->subject, record.id("subject")});
        std::map<std::size_t, QpName> marks;  // by place
        for (std::size_t i = 0; i < ladder_.lines.size(); ++i) {
            const QpName& shown = ladder_.lines[i];
            const bool is_concerned = line.qpn != kHostLine ? shown == line
                                      : is_of_all           ? true
                                      : shown.node != line.node
                                          ? false
                                          : users == users_.end() || users->second.contains(shown);
            if (is_concerned) {
                QpName& mark = marks.try_emplace(ladder_.places[i], shown).first->second;
                mark = lives_.at(shown).meets({record.seq, record.seq}) ? shown : mark;
            }
        }
        std::vector<QpName> found;
        found.reserve(marks.size());
        for (const auto& [place, qp] : marks) {
            found.push_back(qp);
        }
        return found;
    }

    const Run& run_;
    const Lives& lives_;
    Users users_;
    std::set<std::pair<std::int64_t, QpName>> lost_;
    std::map<FlushedName, Flushed> flushed_;
    std::set<std::string, std::less<>> down_;  // links
    LadderRows& ladder_;
};

}  // namespace

QpName line_of(const Record& record) {
    if (record.name == "fault_fired") {
        const bool is_of_packet = record.id("flow") != 0;
        return is_of_packet
                   ? QpName{static_cast<std::uint32_t>(record.number("source")), record.id("flow")}
                   : QpName{record.node, kHostLine};
    }
    if (record.name == "async_event") {
        return {record.node, is_of_queue_pair(record) ? record.id("subject") : kHostLine};
    }
    if (record.name == "link_state") {
        return {record.node, kHostLine};
    }
    return {record.node, record.id("qpn")};
}

void add_notes(const Trace& trace, const Run& run, const LadderOptions& options, const Lives& lives,
               LadderRows& ladder) {
    Notes notes(trace, run, lives, ladder);
    for (const Record& record : trace.records) {
        if (record.time >= options.from && record.time <= options.until) {
            notes.add(record);
        }
    }
}

}  // namespace simverbs::viz
