#include "viz/report.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fabric/core/xml_text.hpp"

#include "simverbs/model/misuse.hpp"

#include "viz/coverage.hpp"
#include "viz/coverage_views.hpp"
#include "viz/graphviz.hpp"
#include "viz/markup.hpp"
#include "viz/report_data.hpp"
#include "viz/report_page.hpp"
#include "viz/run.hpp"
#include "viz/state_diagram.hpp"
#include "viz/state_machine.hpp"
#include "viz/timeline_picture.hpp"
#include "viz/topology_picture.hpp"

namespace simverbs::viz {
namespace {

// Returns what `dot` draws, without the lines before the picture itself.
std::string picture(const std::string& dot) {
    const fabric::Outcome<std::string> svg = draw(dot, "svg");
    if (!svg) {
        return fmt::format("<p class=\"missing\">No picture: {}.</p>",
                           fabric::xml_text(svg.error()));
    }
    const std::size_t begin = svg->find("<svg");
    return begin == std::string::npos ? std::string() : svg->substr(begin);
}

// "1 packet was", "3 packets were".
std::string number_of(std::size_t count, std::string_view what) {
    return fmt::format("{} {}{} {}", count, what, count == 1 ? "" : "s",
                       count == 1 ? "was" : "were");
}

struct Totals {
    std::size_t good = 0;
    std::size_t failed = 0;
    std::size_t lost = 0;
    std::size_t again = 0;
    std::size_t faults = 0;
    std::size_t warnings = 0;
};

Totals totals_of(const Trace& trace, const Run& run) {
    Totals totals;
    for (const Record& record : trace.records) {
        if (record.name == "completion") {
            ++(record.text("status") == "SUCCESS" ? totals.good : totals.failed);
        }
        totals.faults += record.name == "fault_fired" ? 1 : 0;
        totals.warnings += record.category == "warning" ? 1 : 0;
    }
    for (const RunPacket& packet : run.packets) {
        totals.lost += packet.lost.empty() ? 0 : 1;
        totals.again += packet.retransmission ? 1 : 0;
    }
    return totals;
}

std::string verdict_of(const Totals& totals) {
    std::string verdict;
    if (totals.failed > 0) {
        verdict =
            fmt::format("{} work request{} failed.", totals.failed, totals.failed == 1 ? "" : "s");
    } else if (totals.good > 0) {
        verdict += "Everything that completed has succeeded.";
    } else {
        verdict += "No work request completed.";
    }
    if (totals.lost > 0) {
        verdict += fmt::format(" {} lost.", number_of(totals.lost, "packet"));
    }
    if (totals.again > 0) {
        verdict += fmt::format(" {} sent again.", number_of(totals.again, "packet"));
    }
    if (totals.warnings > 0) {
        verdict += fmt::format(" The trace has {} warning{}, listed here.", totals.warnings,
                               totals.warnings == 1 ? "" : "s");
    }
    return verdict;
}

// The name of a warning and what it means.
std::pair<std::string, std::string> words_of_warning(const Record& record) {
    if (record.name == "credit_loop") {
        return {"credit_loop", fmt::format("frames wait for each other's buffers, for ever: {}",
                                           record.text("ports"))};
    }
    const std::string_view name =
        record.find("misuse") == nullptr ? std::string_view(record.name) : record.text("misuse");
    const auto* const row =
        std::find_if(kMisuses.begin(), kMisuses.end(),
                     [name](const MisuseRow& each) { return each.name == name; });
    return {std::string(name), row == kMisuses.end() ? std::string() : std::string(row->text)};
}

// One item for each kind of warning: what it means, how often it came, and where first.
std::string warnings_of(const Trace& trace, const Run& run) {
    struct Warning {
        const Record* first = nullptr;
        std::size_t count = 0;
    };
    std::map<std::pair<std::string, std::string>, Warning> warnings;
    for (const Record& record : trace.records) {
        if (record.category == "warning") {
            Warning& warning = warnings[words_of_warning(record)];
            warning.first = warning.first == nullptr ? &record : warning.first;
            ++warning.count;
        }
    }
    std::string out;
    for (const auto& [words, warning] : warnings) {
        const QpName subject{warning.first->node, warning.first->id("subject")};
        out += fmt::format(
            "<li><b>{}</b>{}: {}. {} at {}, {}.</li>", fabric::xml_text(words.first),
            warning.count == 1 ? "" : fmt::format(" ({} times)", warning.count),
            words.second.empty() ? "the event log has its fields" : fabric::xml_text(words.second),
            warning.count == 1 ? "It came" : "The first came", time_text(warning.first->time),
            fabric::xml_text(run.services.contains(subject) ? run.label(subject)
                                                            : run.label(subject.node)));
    }
    return out.empty() ? out : "<ul class=\"warnings\">" + out + "</ul>";
}

// One for each cause of failed completions: the first of them, why, and what was injected before.
std::string causes_of(const Trace& trace, const Run& run) {
    constexpr std::size_t kMost = 6;
    struct Cause {
        const Record* first = nullptr;
        const Record* fault = nullptr;
        std::size_t count = 0;
    };
    std::vector<Cause> causes;
    std::map<std::pair<std::string, std::string>, std::size_t> known;  // status, cause
    const Record* fault = nullptr;
    for (const Record& record : trace.records) {
        fault = record.name == "fault_fired" ? &record : fault;
        if (record.name != "completion" || record.text("status") == "SUCCESS") {
            continue;
        }
        const auto [place, is_new] = known.try_emplace(
            {std::string(record.text("status")), std::string(record.text("cause"))}, causes.size());
        if (is_new) {
            causes.push_back({&record, fault});
        }
        ++causes[place->second].count;
    }
    std::string out;
    for (std::size_t i = 0; i < std::min(kMost, causes.size()); ++i) {
        const Record& first = *causes[i].first;
        const CompletionFault* const row = cause_named(first.text("cause"));
        out += fmt::format(
            "<li><b>{}</b>{}: {}, {}, request {}, at {}. Why: {}.",
            fabric::xml_text(first.text("status")),
            causes[i].count == 1 ? "" : fmt::format(" ({} work requests)", causes[i].count),
            fabric::xml_text(run.label(QpName{first.node, first.id("qpn")})),
            fabric::xml_text(first.text("opcode")), first.number("index"), time_text(first.time),
            row == nullptr ? "the trace names no cause" : fabric::xml_text(row->description));
        if (causes[i].fault != nullptr) {
            out += fmt::format(" The last injected fault before it: {}, at {} on {}.",
                               fabric::xml_text(run.fault_text(*causes[i].fault)),
                               time_text(causes[i].fault->time),
                               fabric::xml_text(run.label(causes[i].fault->node)));
        }
        out += "</li>";
    }
    if (causes.size() > kMost) {
        out += fmt::format("<li>Other causes: {}, in the table of completions.</li>",
                           causes.size() - kMost);
    }
    return out.empty() ? out : "<ul class=\"causes\">" + out + "</ul>";
}

// "" where the page has all rows.
std::string cut_notice(const Shown& shown, std::string_view what, std::string_view kept) {
    return shown.rows == shown.all
               ? std::string()
               : fmt::format(
                     "<p class=\"cut\">The trace is large: this page has {} of {} {}, {}. "
                     "Sums and pictures are of the whole trace.</p>",
                     shown.rows, shown.all, what, kept);
}

std::string summary_of(const Trace& trace, const Run& run) {
    const Totals totals = totals_of(trace, run);
    std::string out = "<dl class=\"facts\">";
    const auto fact = [&out](std::string_view name, const std::string& value) {
        out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, value);
    };
    fact("virtual time", time_text(run.end - run.begin));
    fact("events", fmt::format("{}", trace.records.size()));
    fact("queue pairs", fmt::format("{}", run.services.size()));
    fact("completions", fmt::format("{}", totals.good + totals.failed));
    fact("of them failed", fmt::format("{}", totals.failed));
    fact("packets", fmt::format("{}", run.packets.size()));
    fact("lost", fmt::format("{}", totals.lost));
    fact("sent again", fmt::format("{}", totals.again));
    fact("faults fired", fmt::format("{}", totals.faults));
    fact("warnings", fmt::format("{}", totals.warnings));
    return fmt::format("<p class=\"verdict\">{}</p>{}{}{}</dl>", verdict_of(totals),
                       causes_of(trace, run), warnings_of(trace, run), out);
}

std::string counters_of(const Run& run) {
    constexpr std::size_t kMost = 1000;
    if (run.ports.empty()) {
        return "<p>No port has sent a frame.</p>";
    }
    std::string rows;
    std::size_t count = 0;
    for (const auto& [port, use] : run.ports) {
        if (++count > kMost) {
            break;
        }
        rows += fmt::format(
            "<tr><th scope=\"row\">{} port {}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            fabric::xml_text(run.label(port.first)), port.second, use.frames, use.bytes, use.lost);
    }
    return cut_notice({run.ports.size(), std::min(kMost, run.ports.size())}, "ports",
                      "from the beginning") +
           "<table><thead><tr><th scope=\"col\">port</th><th scope=\"col\">frames sent</th><th "
           "scope=\"col\">bytes sent</th><th scope=\"col\">lost there</th></tr></thead><tbody>" +
           rows + "</tbody></table>";
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
            fabric::xml_text(machine.title), machine.moves_made(), machine.moves.size(),
            fabric::xml_text(machine.title), picture(state_diagram(machine)));
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
    fill_in(page, "@TITLE@", fabric::xml_text(name));
    fill_in(page, "@NAME@", fabric::xml_text(name));
    fill_in(page, "@SUMMARY@", summary_of(trace, run));
    fill_in(page, "@TOPOLOGY@", picture(topology_picture(run, {})));
    fill_in(page, "@DIAGRAMS@", diagrams_of(trace));
    fill_in(page, "@COUNTERS@", counters_of(run));
    fill_in(page, "@COVERAGE@", coverage_of(trace));
    fill_in(page, "@TIMELINE@", timeline_picture(trace, run));
    const ReportData data = report_data(trace, run);
    fill_in(page, "@CUT_MESSAGES@",
            cut_notice(data.messages, "messages",
                       "first those in trouble, then others from the beginning"));
    fill_in(page, "@CUT_COMPLETIONS@",
            cut_notice(data.completions, "completions",
                       "first failed ones, then others from the beginning"));
    fill_in(page, "@CUT_EVENTS@",
            cut_notice(data.events, "events",
                       "first faults, warnings and failures, then others from the beginning"));
    fill_in(page, "@DATA@", data.json);
    return page;
}

}  // namespace simverbs::viz
