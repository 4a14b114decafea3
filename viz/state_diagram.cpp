#include "viz/state_diagram.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "viz/markup.hpp"
#include "viz/palette.hpp"

namespace simverbs::viz {
namespace {

// Moves to one state that say the same, drawn as one edge out of a box that lists where from.
struct Bundle {
    std::vector<const Move*> moves;
    [[nodiscard]] const Move& first() const { return *moves.front(); }
};

// From so many states on, single edges are harder to read than the box.
constexpr std::size_t kBundled = 4;

// Where lives end: drawn below all others, wherever its edges come from.
constexpr std::string_view kLast = "ERR";

bool says_the_same(const Move& a, const Move& b) {
    return a.to == b.to && a.trigger == b.trigger && a.required == b.required &&
           a.optional == b.optional && a.effect == b.effect;
}

std::vector<Bundle> bundles_of(const StateMachine& machine) {
    std::vector<Bundle> bundles;
    for (const Move& move : machine.moves) {
        const auto same = std::find_if(bundles.begin(), bundles.end(), [&move](const Bundle& one) {
            return says_the_same(one.first(), move);
        });
        if (same == bundles.end()) {
            bundles.push_back({{&move}});
        } else {
            same->moves.push_back(&move);
        }
    }
    std::vector<Bundle> drawn;
    for (const Bundle& bundle : bundles) {
        if (bundle.moves.size() >= kBundled) {
            drawn.push_back(bundle);
            continue;
        }
        for (const Move* move : bundle.moves) {
            drawn.push_back({{move}});
        }
    }
    return drawn;
}

// "PKEY_INDEX, PORT,<br/>ACCESS_FLAGS": two a line.
std::string wrapped(const std::vector<std::string_view>& words) {
    constexpr std::size_t kWidth = 34;
    std::string text;
    std::size_t line = 0;
    for (const std::string_view word : words) {
        if (line > 0 && line + word.size() > kWidth) {
            text += ",<br align=\"left\"/>";
            line = 0;
        } else if (line > 0) {
            text += ", ";
            line += 2;
        }
        text += escaped(word);
        line += word.size();
    }
    return text;
}

std::string row(std::string_view content) {
    return fmt::format("<tr><td align=\"left\" balign=\"left\">{}</td></tr>", content);
}

std::string rows_of(const Bundle& bundle, bool counted) {
    const Move& move = bundle.first();
    const bool is_bundle = bundle.moves.size() > 1;
    std::uint64_t count = 0;
    for (const Move* one : bundle.moves) {
        count += one->count;
    }
    const bool never = counted && count == 0;
    std::string rows = row(fmt::format("<b>{}</b>{}", escaped(move.trigger),
                                       !counted    ? std::string()
                                       : never     ? std::string(" <i>never</i>")
                                       : is_bundle ? fmt::format(" <b>{} times</b>", count)
                                                   : fmt::format(" <b>&#215; {}</b>", count)));
    if (!move.required.empty()) {
        rows += row("needs " + wrapped(move.required));
    }
    if (!move.optional.empty()) {
        rows += row("<i>may have</i> " + wrapped(move.optional));
    }
    if (!move.effect.empty()) {
        rows += row("event " + escaped(move.effect));
    }
    return rows;
}

// Away from its edge, which Graphviz lets touch the words.
std::string words_of(const Bundle& bundle, bool counted) {
    return fmt::format(
        "<<table border=\"0\" cellspacing=\"0\" cellpadding=\"0\"><tr><td width=\"10\"></td><td>"
        "<table border=\"0\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"1\">{}</table></td>"
        "</tr></table>>",
        rows_of(bundle, counted));
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
    std::string rows =
        fmt::format("<tr><td><font point-size=\"14\"><b>{}</b></font></td></tr>", escaped(state));
    for (const Bundle& bundle : bundles) {
        const Move& move = bundle.first();
        if (bundle.moves.size() != 1 || move.from != state || move.to != state) {
            continue;
        }
        const bool never = machine.counted && move.count == 0;
        rows += fmt::format(
            "<hr/><tr><td align=\"left\"><table border=\"0\" cellspacing=\"0\" cellpadding=\"1\">"
            "<tr><td align=\"left\"><font color=\"{}\"><b>&#8635;</b> stays</font></td></tr>{}"
            "</table></td></tr>",
            never        ? kFaint
            : move.asked ? kBlue
                         : kVermilion,
            rows_of(bundle, machine.counted));
    }
    return fmt::format(
        "  {} [penwidth={}, fontsize=11, label=<<table border=\"0\" cellspacing=\"0\" "
        "cellpadding=\"2\">{}</table>>];\n",
        dot_quoted(state), machine.counted && was_in(machine, state) ? "3" : "1.2", rows);
}

std::string box(const std::string& name, const Bundle& bundle, bool counted) {
    std::string rows = row("from");
    for (const Move* move : bundle.moves) {
        rows += row(!counted ? escaped(move->from)
                    : move->count == 0
                        ? fmt::format("<font color=\"{}\">{} <i>never</i></font>", kFaint,
                                      escaped(move->from))
                        : fmt::format("<b>{} &#215; {}</b>", escaped(move->from), move->count));
    }
    return fmt::format(
        "  {} [shape=box, style=\"rounded,dashed\", color=\"{}\", fontsize=11, margin=\"0.04\", "
        "label=<<table border=\"0\" cellspacing=\"0\" cellpadding=\"1\">{}</table>>];\n",
        dot_quoted(name), kFaint, rows);
}

std::string legend(const StateMachine& machine) {
    std::string rows = fmt::format(
        "<tr><td align=\"left\"><font color=\"{}\"><b>&#9472;&#9472;&#9472;</b></font></td><td "
        "align=\"left\">asked for</td></tr><tr><td align=\"left\"><font color=\"{}\"><b>&#9476;"
        "&#9476;&#9476;</b></font></td><td align=\"left\">happens by itself</td></tr>",
        kBlue, kVermilion);
    if (machine.counted) {
        rows += fmt::format(
            "<tr><td align=\"left\"><b>&#215; 3</b></td><td align=\"left\">heavy: made, three "
            "times</td></tr><tr><td align=\"left\"><font color=\"{}\">&#183;&#183;&#183;</font>"
            "</td><td align=\"left\">dotted: never made</td></tr>",
            kFaint);
        rows += fmt::format("<tr><td></td><td align=\"left\"><b>{} of {} moves</b></td></tr>",
                            machine.moves_made(), machine.moves.size());
    }
    return fmt::format(
        "  legend [shape=box, style=rounded, color=\"{}\", fontsize=11, label=<<table border=\"0\" "
        "cellspacing=\"0\" cellpadding=\"2\">{}</table>>];\n",
        kFaint, rows);
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
    std::size_t boxes = 0;
    for (const Bundle& bundle : bundles) {
        const Move& move = bundle.first();
        if (bundle.moves.size() == 1) {
            if (move.from == move.to) {
                continue;
            }
            text += edge(move.from, move.to, bundle, machine.counted);
            continue;
        }
        const std::string name = fmt::format("from {}", ++boxes);
        text += box(name, bundle, machine.counted);
        text += edge(name, move.to, bundle, machine.counted);
    }
    if (std::find(machine.states.begin(), machine.states.end(), kLast) != machine.states.end()) {
        text += fmt::format("  {{ rank=max; {} }}\n", dot_quoted(kLast));
    }
    return text + legend(machine) + "}\n";
}

}  // namespace simverbs::viz
