#include "viz/state_diagram.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "fabric/core/xml_text.hpp"

#include "viz/markup.hpp"
#include "viz/palette.hpp"

namespace simverbs::viz {
namespace {

// Moves to one state that need the same: a single move, or so many that they leave one box that
// lists the states.
struct Bundle {
    std::vector<const Move*> moves;
    [[nodiscard]] const Move& first() const { return *moves.front(); }
    [[nodiscard]] bool is_single() const { return moves.size() == 1; }
    [[nodiscard]] const Move* from(std::string_view state) const {
        const auto found = std::find_if(moves.begin(), moves.end(),
                                        [state](const Move* one) { return one->from == state; });
        return found == moves.end() ? nullptr : *found;
    }
    // The effect of all its moves; "" where they differ.
    [[nodiscard]] std::string_view effect() const {
        const bool same = std::all_of(moves.begin(), moves.end(), [this](const Move* one) {
            return one->effect == first().effect;
        });
        return same ? first().effect : std::string_view();
    }
};

// A state has a box where at least kBoxed moves lead to it that share their trigger and attributes
// with two others, or with one other where it is an end: single edges would be harder to read.
constexpr std::size_t kBundled = 3;
constexpr std::size_t kBoxed = 4;

bool is_bundle(const StateMachine& machine, const Bundle& bundle) {
    const bool is_end = std::find(machine.ends.begin(), machine.ends.end(), bundle.first().to) !=
                        machine.ends.end();
    return bundle.moves.size() >= (is_end ? kBundled - 1 : kBundled);
}

// Keeps cells apart whose text is drawn wider than Graphviz measures it.
constexpr std::string_view kGap = "&#160;&#160;";

// Where lives end: drawn below all others, wherever its edges come from.
constexpr std::string_view kLast = "ERR";

bool needs_the_same(const Move& a, const Move& b) {
    return a.to == b.to && a.trigger == b.trigger && a.required == b.required &&
           a.optional == b.optional;
}

std::vector<Bundle> bundles_of(const StateMachine& machine) {
    std::vector<Bundle> bundles;
    for (const Move& move : machine.moves) {
        const auto same = std::find_if(bundles.begin(), bundles.end(), [&move](const Bundle& one) {
            return needs_the_same(one.first(), move);
        });
        if (same == bundles.end()) {
            bundles.push_back({{&move}});
        } else {
            same->moves.push_back(&move);
        }
    }
    std::map<std::string_view, std::size_t> boxed;
    for (const Bundle& bundle : bundles) {
        boxed[bundle.first().to] += is_bundle(machine, bundle) ? bundle.moves.size() : 0;
    }
    std::vector<Bundle> drawn;
    for (const Bundle& bundle : bundles) {
        if (is_bundle(machine, bundle) && boxed[bundle.first().to] >= kBoxed) {
            drawn.push_back(bundle);
            continue;
        }
        for (const Move* move : bundle.moves) {
            drawn.push_back({{move}});
        }
    }
    return drawn;
}

// "needs PKEY_INDEX, PORT," and "ACCESS_FLAGS": the words in lines of limited length. Each line is
// one run of text: Graphviz measures bold and italic ones otherwise than they are drawn, and lines
// within one cell lie too close together.
std::vector<std::string> lines_of(std::string_view begin,
                                  const std::vector<std::string_view>& words) {
    constexpr std::size_t kWidth = 42;
    std::vector<std::string> lines{std::string(begin)};
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (lines.back().size() + words[i].size() > kWidth) {
            lines.emplace_back();
        }
        lines.back() += (lines.back().empty() ? "" : " ") + fabric::xml_text(words[i]) +
                        (i + 1 < words.size() ? "," : "");
    }
    return lines;
}

std::string row(std::string_view content) {
    return fmt::format("<tr><td align=\"left\">{}</td></tr>", content);
}

std::string times(std::uint64_t count) {
    return count == 0 ? "never" : fmt::format("&#215; {}", count);
}

// "modify", "modify &#215; 14", "modify: never".
std::string trigger_text(std::string_view trigger, std::uint64_t count, bool counted) {
    return fabric::xml_text(trigger) + (!counted ? "" : (count == 0 ? ": " : " ") + times(count));
}

std::string rows_of(const Bundle& bundle, bool counted) {
    const Move& move = bundle.first();
    std::uint64_t count = 0;
    for (const Move* one : bundle.moves) {
        count += one->count;
    }
    std::string rows = row(fmt::format("<b>{}</b>", trigger_text(move.trigger, count, counted)));
    for (const auto& [begin, words] :
         {std::pair("needs", &move.required), std::pair("may have", &move.optional)}) {
        for (const std::string& line :
             words->empty() ? std::vector<std::string>{} : lines_of(begin, *words)) {
            rows += row(line);
        }
    }
    if (!bundle.effect().empty()) {
        rows += row("event " + fabric::xml_text(bundle.effect()));
    }
    return rows;
}

// Away from its edge, which Graphviz lets touch the words.
std::string words_of(const Bundle& bundle, bool counted) {
    return html_label(fmt::format(
        "<table border=\"0\" cellspacing=\"0\" cellpadding=\"0\"><tr><td width=\"14\"></td><td>"
        "<table border=\"0\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"1\">{}</table></td>"
        "<td width=\"14\"></td></tr></table>",
        rows_of(bundle, counted)));
}

std::string edge(std::string_view from, std::string_view to, const Bundle& bundle, bool counted) {
    const Move& move = bundle.first();
    const bool made = std::any_of(bundle.moves.begin(), bundle.moves.end(),
                                  [](const Move* one) { return one->count > 0; });
    const std::string_view colour = counted && !made ? kFaint : move.asked ? kBlue : kVermilion;
    const std::string_view style = counted && !made ? "dotted" : move.asked ? "solid" : "dashed";
    return fmt::format(
        "  {} -> {} [color=\"{}\", fontcolor=\"{}\", style={}, penwidth={}, label={}];\n",
        dot_quoted(from), dot_quoted(to), colour, counted && !made ? kFaint : kInk, style,
        counted && made ? "2.6" : "1.3", words_of(bundle, counted));
}

// A state that a trace has been in is drawn with a heavy line.
bool was_in(const StateMachine& machine, std::string_view state) {
    return std::any_of(machine.moves.begin(), machine.moves.end(), [state](const Move& move) {
        return move.count > 0 && (move.from == state || move.to == state);
    });
}

// A move that stays stands in the state's own box: as a loop its words would lie across others.
std::string state_box(const StateMachine& machine, std::string_view state,
                      const std::vector<Bundle>& bundles) {
    std::string rows = fmt::format("<tr><td><font point-size=\"14\"><b>{}</b></font></td></tr>",
                                   fabric::xml_text(state));
    for (const Bundle& bundle : bundles) {
        const Move& move = bundle.first();
        if (!bundle.is_single() || move.from != state || move.to != state) {
            continue;
        }
        const bool never = machine.counted && move.count == 0;
        rows += fmt::format(
            "<hr/><tr><td align=\"left\"><table border=\"0\" cellspacing=\"0\" cellpadding=\"1\">"
            "<tr><td align=\"left\"><font color=\"{}\"><b>&#8635;</b> the state stays {}</font>"
            "</td></tr>{}</table></td></tr>",
            never        ? kFaint
            : move.asked ? kBlue
                         : kVermilion,
            fabric::xml_text(state), rows_of(bundle, machine.counted));
    }
    return fmt::format(
        "  {} [penwidth={}, fontsize=11, label={}];\n", dot_quoted(state),
        machine.counted && was_in(machine, state) ? "3" : "1.2",
        html_label(fmt::format("<table border=\"0\" cellspacing=\"0\" cellpadding=\"2\">{}</table>",
                               rows)));
}

// How often a bundle's move from a state was made, and its event where the others have another.
std::string cell_of(const Bundle& bundle, std::string_view state, bool counted) {
    const Move* const move = bundle.from(state);
    if (move == nullptr) {
        return "<td></td>";
    }
    std::string text = counted ? times(move->count) : "&#8226;";
    if (bundle.effect().empty() && !move->effect.empty()) {
        text += (counted ? ", event " : " event ") + fabric::xml_text(move->effect);
    }
    return fmt::format("<td align=\"left\"><font color=\"{}\">{}</font></td>",
                       counted && move->count == 0 ? kFaint : kInk, text);
}

// The bundles that lead to one state leave one box: a row a state, a column a trigger.
std::string sources_box(const StateMachine& machine, const std::string& name,
                        const std::vector<const Bundle*>& bundles) {
    const bool lists_states_only = bundles.size() == 1 && !machine.counted;
    std::string rows = "<tr><td align=\"left\">from</td>";
    for (const Bundle* bundle : bundles) {
        rows += lists_states_only ? std::string()
                                  : fmt::format("<td align=\"left\"><b>{}</b></td>",
                                                fabric::xml_text(bundle->first().trigger));
    }
    rows += "</tr>";
    for (const std::string_view state : machine.states) {
        std::string cells;
        for (const Bundle* bundle : bundles) {
            cells += lists_states_only ? std::string() : cell_of(*bundle, state, machine.counted);
        }
        if (std::any_of(bundles.begin(), bundles.end(),
                        [state](const Bundle* one) { return one->from(state) != nullptr; })) {
            rows += fmt::format("<tr><td align=\"left\">{}{}</td>{}</tr>", fabric::xml_text(state),
                                kGap, cells);
        }
    }
    return fmt::format(
        "  {} [shape=box, style=\"rounded,dashed\", color=\"{}\", fontsize=11, margin=\"0.06\", "
        "label={}];\n",
        dot_quoted(name), kFaint,
        html_label(fmt::format("<table border=\"0\" cellspacing=\"3\" cellpadding=\"1\">{}</table>",
                               rows)));
}

// Draws the bundles to `state`. An invisible edge keeps the box of the last state beside the chain.
std::string sources_of(const StateMachine& machine, std::string_view state,
                       const std::vector<Bundle>& bundles) {
    std::vector<const Bundle*> to_state;
    for (const Bundle& bundle : bundles) {
        if (!bundle.is_single() && bundle.first().to == state) {
            to_state.push_back(&bundle);
        }
    }
    if (to_state.empty()) {
        return {};
    }
    const std::string name = fmt::format("to {}", state);
    std::string text = sources_box(machine, name, to_state);
    for (const Bundle* bundle : to_state) {
        text += edge(name, state, *bundle, machine.counted);
    }
    if (state == kLast) {
        text +=
            fmt::format("  {} -> {} [style=invis];\n",
                        dot_quoted(machine.states[machine.states.size() / 2]), dot_quoted(name));
    }
    return text;
}

std::string legend(const StateMachine& machine) {
    std::string rows;
    const auto add = [&rows](std::string_view colour, std::string_view sample,
                             std::string_view words) {
        rows += fmt::format(
            "<tr><td align=\"left\"><font color=\"{}\">{}{}</font></td><td "
            "align=\"left\">{}</td></tr>",
            colour, sample, kGap, words);
    };
    add(kBlue, "<b>&#9472;&#9472;&#9472;</b>", "asked for");
    add(kVermilion, "<b>&#9476;&#9476;&#9476;</b>", "happens by itself");
    if (machine.counted) {
        add(kInk, "<b>&#215; 3</b>", "heavy: made, three times");
        add(kFaint, "&#183;&#183;&#183;", "dotted: never made");
        add(kInk, "",
            fmt::format("<b>{} of {} moves</b>", machine.moves_made(), machine.moves.size()));
    }
    return fmt::format(
        "  legend [shape=box, style=rounded, color=\"{}\", fontsize=11, label={}];\n", kFaint,
        html_label(fmt::format("<table border=\"0\" cellspacing=\"0\" cellpadding=\"2\">{}</table>",
                               rows)));
}

}  // namespace

std::string state_diagram(const StateMachine& machine) {
    std::string text = fmt::format(
        "digraph {} {{\n"
        "  graph [label={}, labelloc=t, fontname=\"Helvetica\", fontsize=18, rankdir=TB, "
        "ranksep=0.55, nodesep=0.45];\n"
        "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", color=\"{}\", "
        "fontname=\"Helvetica\", fontsize=14, margin=\"0.2,0.1\"];\n"
        "  edge [fontname=\"Helvetica\", fontsize=11, arrowsize=0.8];\n",
        machine.id, dot_quoted(machine.title), kInk);
    const std::vector<Bundle> bundles = bundles_of(machine);
    for (const std::string_view state : machine.states) {
        text += state_box(machine, state, bundles);
    }
    for (const Bundle& bundle : bundles) {
        const Move& move = bundle.first();
        if (bundle.is_single() && move.from != move.to) {
            text += edge(move.from, move.to, bundle, machine.counted);
        }
    }
    for (const std::string_view state : machine.states) {
        text += sources_of(machine, state, bundles);
    }
    if (std::find(machine.states.begin(), machine.states.end(), kLast) != machine.states.end()) {
        text += fmt::format("  {{ rank=max; {} }}\n", dot_quoted(kLast));
    }
    return text + legend(machine) + "}\n";
}

}  // namespace simverbs::viz
