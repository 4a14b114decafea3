#include "viz/report.hpp"

#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simverbs/model/completion_faults.hpp"

#include "viz/coverage.hpp"
#include "viz/coverage_views.hpp"
#include "viz/graphviz.hpp"
#include "viz/markup.hpp"
#include "viz/report_page.hpp"
#include "viz/run.hpp"
#include "viz/state_diagram.hpp"
#include "viz/state_machine.hpp"
#include "viz/topology_picture.hpp"

namespace simverbs::viz {
namespace {

using nlohmann::ordered_json;

// Text that stands in a <script> of the page.
std::string for_script(const ordered_json& value) {
    std::string text = value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    for (std::size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3) {
        text.insert(at + 1, "\\");
    }
    return text;
}

// What `dot` draws, without what comes before the picture itself.
std::string picture(const std::string& dot) {
    std::string error;
    const std::optional<std::string> svg = draw(dot, "svg", error);
    if (!svg) {
        return fmt::format("<p class=\"missing\">No picture: {}.</p>", escaped(error));
    }
    const std::size_t begin = svg->find("<svg");
    return begin == std::string::npos ? std::string() : svg->substr(begin);
}

const CompletionFault* cause_named(std::string_view name) {
    for (const CompletionFault& row : kCompletionFaults) {
        if (row.name == name) {
            return &row;
        }
    }
    return nullptr;
}

// As the event log shows them.
std::string words_of(const Record& record) {
    std::string text;
    for (const Field& field : record.fields) {
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", field.name,
                            field.is_text ? field.text : fmt::format("{}", field.number));
    }
    return text;
}

ordered_json events_of(const Trace& trace, const Run& run) {
    ordered_json events = ordered_json::array();
    for (const Record& record : trace.records) {
        events.push_back({record.time, record.node == Record::kNoNode ? "" : run.label(record.node),
                          record.category, record.name, words_of(record)});
    }
    return events;
}

// What the numbers of a completion table's "cause" mean is asked once a cause.
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

ordered_json completions_of(const Trace& trace, const Run& run) {
    ordered_json rows = ordered_json::array();
    for (std::size_t i = 0; i < trace.records.size(); ++i) {
        const Record& record = trace.records[i];
        if (record.name == "completion") {
            rows.push_back({record.time, run.label(QpName{record.node, record.id("qpn")}),
                            record.number("index"), record.text("opcode"), record.text("status"),
                            record.text("cause"), record.number("bytes"), i});
        }
    }
    return rows;
}

// Of the ladder: packets, and what stands on the life lines.
ordered_json ladder_of(const Trace& trace, const Run& run) {
    ordered_json lines = ordered_json::array();
    std::map<QpName, std::size_t> number;
    const auto line = [&](const QpName& qp) {
        const auto [place, is_new] = number.try_emplace(qp, number.size());
        if (is_new) {
            const auto service = run.services.find(qp);
            lines.push_back(run.label(qp) +
                            (service == run.services.end() ? "" : ", " + service->second));
        }
        return place->second;
    };
    ordered_json packets = ordered_json::array();
    for (const RunPacket& packet : run.packets) {
        const std::optional<QpName> to = run.destination(packet);
        packets.push_back({packet.sent, line(packet.from),
                           to ? ordered_json(line(*to)) : ordered_json(nullptr), packet.opcode,
                           packet.psn, packet.payload, packet.retransmission ? 1 : 0,
                           packet.answer(), packet.arrived_at ? packet.arrived : packet.lost_time,
                           packet.lost.empty() ? "" : packet.lost + " at " + packet.lost_where,
                           packet.sent_seq, packet.end_seq});
    }
    ordered_json notes = ordered_json::array();
    for (const Record& record : trace.records) {
        const QpName qp{record.node, record.id("qpn")};
        if (record.name == "qp_state") {
            notes.push_back({record.time, line(qp),
                             fmt::format("{} > {}", record.text("from"), record.text("to")),
                             record.text("to") == "ERR" || record.text("to") == "SQE" ? 1 : 0,
                             record.seq});
        } else if (record.name == "completion") {
            const bool good = record.text("status") == "SUCCESS";
            notes.push_back({record.time, line(qp),
                             fmt::format("{}: {}", record.text("opcode"), record.text("status")),
                             good ? 0 : 1, record.seq});
        }
    }
    return {{"lines", lines}, {"packets", packets}, {"notes", notes}};
}

std::string summary_of(const Trace& trace, const Run& run) {
    std::size_t good = 0;
    std::size_t failed = 0;
    std::size_t lost = 0;
    std::size_t again = 0;
    std::size_t faults = 0;
    std::size_t warnings = 0;
    for (const Record& record : trace.records) {
        if (record.name == "completion") {
            ++(record.text("status") == "SUCCESS" ? good : failed);
        }
        faults += record.name == "fault_fired" ? 1 : 0;
        warnings += record.category == "warning" ? 1 : 0;
    }
    for (const RunPacket& packet : run.packets) {
        lost += packet.lost.empty() ? 0 : 1;
        again += packet.retransmission ? 1 : 0;
    }
    std::string out = "<dl class=\"facts\">";
    const auto fact = [&out](std::string_view name, const std::string& value) {
        out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, value);
    };
    fact("virtual time", time_text(run.end - run.begin));
    fact("events", fmt::format("{}", trace.records.size()));
    fact("queue pairs", fmt::format("{}", run.services.size()));
    fact("completions", fmt::format("{}", good + failed));
    fact("of them failed", fmt::format("{}", failed));
    fact("packets", fmt::format("{}", run.packets.size()));
    fact("lost", fmt::format("{}", lost));
    fact("sent again", fmt::format("{}", again));
    fact("faults fired", fmt::format("{}", faults));
    fact("warnings", fmt::format("{}", warnings));
    const std::string verdict =
        warnings > 0 ? "The trace warns: read the warnings before trusting it."
        : failed > 0 ? fmt::format("{} work requests failed; the table says why.", failed)
        : lost > 0   ? "Packets were lost, and everything completed."
                     : "Everything that completed has succeeded.";
    return fmt::format("<p class=\"verdict\">{}</p>{}</dl>", verdict, out);
}

std::string counters_of(const Run& run) {
    std::string rows;
    for (const auto& [port, use] : run.ports) {
        rows += fmt::format(
            "<tr><th scope=\"row\">{} port {}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(run.label(port.first)), port.second, use.frames, use.bytes, use.lost);
    }
    return rows;
}

std::string coverage_of(const Trace& trace) {
    Coverage coverage;
    coverage.add(trace);
    return coverage_lists(coverage.groups());
}

// The machines that moved.
std::string diagrams_of(const Trace& trace) {
    std::string out;
    for (StateMachine& machine : all_machines()) {
        count_moves(machine, trace);
        if (machine.moves_made() == 0) {
            continue;
        }
        out += fmt::format(
            "<details><summary>{}: {} of {} moves</summary><div class=\"picture\" tabindex=\"0\" "
            "role=\"img\" aria-label=\"{}\">{}</div></details>",
            escaped(machine.title), machine.moves_made(), machine.moves.size(),
            escaped(machine.title), picture(state_diagram(machine)));
    }
    return out;
}

void fill_in(std::string& page, std::string_view mark, std::string_view text) {
    const std::size_t at = page.find(mark);
    page.replace(at, mark.size(), text);
}

}  // namespace

std::string report(const Trace& trace, std::string_view name) {
    const Run run = read_run(trace);
    std::string page(kReportPage);
    fill_in(page, "@TITLE@", escaped(name));
    fill_in(page, "@NAME@", escaped(name));
    fill_in(page, "@SUMMARY@", summary_of(trace, run));
    fill_in(page, "@TOPOLOGY@", picture(topology_picture(run, std::nullopt)));
    fill_in(page, "@DIAGRAMS@", diagrams_of(trace));
    fill_in(page, "@COUNTERS@", counters_of(run));
    fill_in(page, "@COVERAGE@", coverage_of(trace));
    const ordered_json data = {{"events", events_of(trace, run)},
                               {"completions", completions_of(trace, run)},
                               {"causes", causes_of(trace)},
                               {"ladder", ladder_of(trace, run)}};
    fill_in(page, "@DATA@", for_script(data));
    return page;
}

}  // namespace simverbs::viz
