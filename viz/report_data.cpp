#include "viz/report_data.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "viz/messages.hpp"

namespace simverbs::viz {
namespace {

using nlohmann::ordered_json;

std::string dumped(const ordered_json& value) {
    return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// Bytes of JSON. With its pictures and tables a page stays below 5 MB.
constexpr std::size_t kAll = 4'200'000;  // events have what the others leave
constexpr std::size_t kCompletions = 600'000;
constexpr std::size_t kMessages = 900'000;
constexpr std::size_t kPackets = 700'000;
constexpr std::size_t kNotes = 400'000;

class Budget {
  public:
    explicit Budget(std::size_t bytes) : left_(bytes) {}
    // Once a row did not fit, no other does: what is shown has no holes.
    bool takes(const ordered_json& row) {
        const std::size_t size = left_ == 0 ? 0 : dumped(row).size() + 1;
        left_ = size == 0 || size > left_ ? 0 : left_ - size;
        return left_ > 0;
    }

  private:
    std::size_t left_;
};

bool is_important(const Record& record) {
    return record.category == "fault" || record.category == "warning" ||
           record.category == "async_event" || record.name == "link_state" ||
           (record.name == "qp_state" && record.text("to") == "ERR") ||
           (record.name == "completion" && record.text("status") != "SUCCESS");
}

ordered_json event_row(const Record& record, const Run& run) {
    return {record.time, record.node == Record::kNoNode ? "" : run.label(record.node),
            record.category, record.name, fields_of(record)};
}

ordered_json events_of(const Trace& trace, const Run& run, std::size_t bytes, Shown& shown) {
    Budget important(bytes / 3);
    Budget others(bytes - bytes / 3);
    ordered_json events = ordered_json::array();
    for (const Record& record : trace.records) {
        ordered_json row = event_row(record, run);
        if ((is_important(record) ? important : others).takes(row)) {
            events.push_back(std::move(row));
        }
    }
    shown = {trace.records.size(), events.size()};
    return events;
}

ordered_json causes_of(const Trace& trace) {
    ordered_json causes = ordered_json::object();
    for (const Record& record : trace.records) {
        const std::string cause(record.text("cause"));
        const CompletionFault* const row = cause.empty() ? nullptr : cause_named(cause);
        if (row == nullptr || causes.contains(cause)) {
            continue;
        }
        causes[cause] = {{"why", row->description},
                         {"seen", to_string(row->detector)},
                         {"wire", to_string(row->wire)},
                         {"source", row->source}};
    }
    return causes;
}

// Failed ones first go into the budget; the rows are in order of time. The last member of a row is
// the place in `faults` of the last fault before it, or -1.
ordered_json completions_of(const Trace& trace, const Run& run, ordered_json& faults,
                            Shown& shown) {
    Budget failed(kCompletions / 2);
    Budget good(kCompletions / 2);
    ordered_json rows = ordered_json::array();
    const Record* fault = nullptr;
    const Record* listed = nullptr;
    for (const Record& record : trace.records) {
        fault = record.name == "fault_fired" ? &record : fault;
        if (record.name != "completion") {
            continue;
        }
        ++shown.all;
        const bool is_good = record.text("status") == "SUCCESS";
        ordered_json row = {record.time,
                            run.label(QpName{record.node, record.id("qpn")}),
                            record.number("index"),
                            record.text("opcode"),
                            record.text("status"),
                            record.text("cause"),
                            record.number("bytes"),
                            -1};
        if (!(is_good ? good : failed).takes(row)) {
            continue;
        }
        if (!is_good && fault != nullptr) {
            if (fault != listed) {
                faults.push_back({fault->time, run.label(fault->node),
                                  run.fault_text(*fault) + "; " + fields_of(*fault)});
                listed = fault;
            }
            row.back() = faults.size() - 1;
        }
        rows.push_back(std::move(row));
    }
    shown.rows = rows.size();
    return rows;
}

class LadderData {
  public:
    LadderData(const Trace& trace, const Run& run, ReportData& data) : run_(run) {
        const std::vector<MessagePart> parts = message_parts(run);
        Budget troubled(kMessages / 2);
        Budget others(kMessages / 2);
        Budget packets(kPackets);
        std::size_t all = 0;
        for (const MessagePart& part : parts) {
            const RunPacket& first = run.packets[part.packets.front()];
            for (std::size_t end = 0; end < first.ends(); ++end) {
                ++all;
                ordered_json row = message(part, end);
                if (!(is_trouble(first) ? troubled : others).takes(row)) {
                    continue;
                }
                row.push_back(singles(part, end, packets, data));
                messages_.push_back(std::move(row));
            }
        }
        data.messages = {all, messages_.size()};
        add_notes(trace);
    }

    [[nodiscard]] ordered_json json() && {
        return {{"lines", std::move(lines_)},
                {"messages", std::move(messages_)},
                {"notes", std::move(notes_)}};
    }

  private:
    static bool refuses(const RunPacket& packet) {
        return packet.answer().find("NAK") != std::string::npos;
    }

    std::size_t line(const QpName& qp) {
        const auto [place, is_new] = number_.try_emplace(qp, number_.size());
        if (is_new) {
            const auto service = run_.services.find(qp);
            lines_.push_back(run_.label(qp) +
                             (service == run_.services.end() ? "" : ", " + service->second));
        }
        return place->second;
    }

    static bool is_trouble(const RunPacket& packet) {
        return !packet.lost.empty() || packet.retransmission || refuses(packet) ||
               std::ranges::any_of(packet.arrivals, [](const Arrival& arrival) {
                   return !arrival.discarded.empty();
               });
    }

    // How it ended: 0 arrived, 1 lost on the sender's link, 2 lost further on, 3 discarded,
    // 4 under way.
    static int end_of(const RunPacket& packet, std::size_t end) {
        const Arrival* const arrival = packet.arrival(end);
        return arrival != nullptr     ? (arrival->discarded.empty() ? 0 : 3)
               : !packet.lost.empty() ? (packet.lost_at == packet.from.node ? 1 : 2)
                                      : 4;
    }
    static std::string why(const RunPacket& packet, std::size_t end) {
        const Arrival* const arrival = packet.arrival(end);
        return arrival != nullptr    ? arrival->discarded
               : packet.lost.empty() ? std::string()
                                     : packet.loss_words();
    }

    ordered_json message(const MessagePart& part, std::size_t end) {
        const RunPacket& first = run_.packets[part.packets.front()];
        const RunPacket& last = run_.packets[part.packets.back()];
        const Arrival* const arrival = first.arrival(end);
        const std::optional<QpName> to = arrival != nullptr ? arrival->at : run_.destination(first);
        return {first.sent,
                line(first.from),
                to ? ordered_json(line(*to)) : ordered_json(nullptr),
                words_of(run_, part),
                first.retransmission ? 1 : 0,
                refuses(first) ? 1 : 0,
                last.end_time(end),
                end_of(first, end),
                why(first, end),
                first.sent_seq,
                last.end_seq(end)};
    }

    // The packets of a message of several, as far as there is room.
    ordered_json singles(const MessagePart& part, std::size_t end, Budget& budget,
                         ReportData& data) {
        ordered_json rows = ordered_json::array();
        if (part.packets.size() == 1) {
            return rows;
        }
        for (const std::size_t packet : part.packets) {
            rows.push_back(message({{packet}}, end));
        }
        if (!budget.takes(rows)) {
            ++data.folded_only;
            return ordered_json::array();
        }
        return rows;
    }

    void add_notes(const Trace& trace) {
        Budget budget(kNotes);
        for (const Record& record : trace.records) {
            const bool is_state = record.name == "qp_state";
            if (!is_state && record.name != "completion") {
                continue;
            }
            const bool is_bad = is_state ? record.text("to") == "ERR" || record.text("to") == "SQE"
                                         : record.text("status") != "SUCCESS";
            ordered_json row = {record.time, line({record.node, record.id("qpn")}),
                                is_state
                                    ? fmt::format("{} > {}", record.text("from"), record.text("to"))
                                    : fmt::format("{}, request {}: {}", record.text("opcode"),
                                                  record.number("index"), record.text("status")),
                                is_bad ? 1 : 0, record.seq};
            if (budget.takes(row)) {
                notes_.push_back(std::move(row));
            }
        }
    }

    const Run& run_;
    std::map<QpName, std::size_t> number_;
    ordered_json lines_ = ordered_json::array();
    ordered_json messages_ = ordered_json::array();
    ordered_json notes_ = ordered_json::array();
};

// Text that stands in a <script> of the page.
std::string for_script(const ordered_json& value) {
    std::string text = dumped(value);
    for (std::size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3) {
        text.insert(at + 1, "\\");
    }
    return text;
}

}  // namespace

std::string fields_of(const Record& record) {
    std::string text;
    for (const Field& field : record.fields) {
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", field.name,
                            field.is_text ? field.text : fmt::format("{}", field.number));
    }
    return text;
}

ReportData report_data(const Trace& trace, const Run& run) {
    ReportData data;
    ordered_json faults = ordered_json::array();
    ordered_json completions = completions_of(trace, run, faults, data.completions);
    ordered_json ladder = LadderData(trace, run, data).json();
    const std::size_t used =
        dumped(completions).size() + dumped(faults).size() + dumped(ladder).size();
    ordered_json events = events_of(trace, run, kAll - std::min(kAll, used), data.events);
    data.json = for_script({{"events", std::move(events)},
                            {"completions", std::move(completions)},
                            {"faults", std::move(faults)},
                            {"causes", causes_of(trace)},
                            {"ladder", std::move(ladder)},
                            {"all",
                             {{"events", data.events.all},
                              {"completions", data.completions.all},
                              {"messages", data.messages.all}}}});
    return data;
}

}  // namespace simverbs::viz
