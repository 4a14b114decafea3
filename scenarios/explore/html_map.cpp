#include "scenarios/explore/html_map.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "fabric/core/counted.hpp"
#include "fabric/core/xml_text.hpp"

#include "scenarios/engine/verdict_json.hpp"
#include "scenarios/explore/map_data.hpp"
#include "scenarios/explore/map_page.hpp"

namespace scenarios {

namespace {

// The page has room for so many bytes of reproducers and explanations, and of one text.
constexpr std::size_t kTexts = 2'000'000;
constexpr std::size_t kText = 100'000;

std::string verdict_of(const Explored& explored) {
    std::string verdict =
        explored.findings() == 0 ? "No finding" : fabric::counted(explored.findings(), "finding");
    if (explored.has_tests) {
        verdict += fmt::format(" in {}", fabric::counted(explored.tests.size(), "test"));
    }
    return verdict + (explored.stopped ? ". The exploration was interrupted." : ".");
}

std::string table_of(const Explored& explored) {
    std::string rows;
    for (const ExploredTest& test : explored.tests) {
        const ExploreResult& result = test.result;
        std::string what = not_explored(test);
        if (what.empty() && !result.findings.empty()) {
            what = fmt::format("<a href=\"#finding-{}\">first finding</a>", test.before + 1);
        } else {
            what = fabric::xml_text(what);
        }
        rows += fmt::format(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            fabric::xml_text(test.name), result.packets, result.calls,
            result.singles + result.pairs, result.findings.size(), what);
    }
    return fmt::format(
        "<p>{}</p>\n<div class=\"scroll\"><table><thead><tr><th>test</th><th>packets</th>"
        "<th>calls</th><th>branches</th><th>findings</th><th></th></tr></thead>\n"
        "<tbody>{}</tbody></table></div>\n",
        fabric::xml_text(summary(explored)), rows);
}

std::string summary_of(const Explored& explored) {
    if (explored.has_tests) {
        return table_of(explored);
    }
    std::string text;
    for (const ExploredTest& test : explored.tests) {
        text +=
            fmt::format("<pre class=\"wrapped\">{}</pre>", fabric::xml_text(summary(test.result)));
        if (test.result.pairs > 0) {
            text +=
                "<p>The map shows branches of one fault. Findings of two faults stand in the list "
                "only.</p>";
        }
    }
    return text;
}

class Findings {
  public:
    std::string html(const Explored& explored) {
        std::string all;
        for (const ExploredTest& test : explored.tests) {
            for (std::size_t i = 0; i < test.result.findings.size(); ++i) {
                all += finding(test.result.findings[i], test.before + i + 1,
                               explored.has_tests ? test.name : "");
            }
        }
        return all.empty() ? "<p class=\"none\">none</p>" : all;
    }

  private:
    // Cuts what is longer than there is room for, and says so.
    std::string text(std::string_view title, std::string_view content, bool is_wrapped) {
        if (content.empty()) {
            return "";
        }
        const std::size_t room = std::min(kText, room_);
        std::string shown = fabric::xml_text(content.substr(0, room));
        room_ -= std::min(content.size(), room_);
        if (content.size() > room) {
            shown += fmt::format("\n... ({} more bytes, for which this page has no room)",
                                 content.size() - room);
        }
        return fmt::format("<h3>{}</h3><pre{}>{}</pre>\n", title,
                           is_wrapped ? " class=\"wrapped\"" : "", shown);
    }

    std::string finding(const Finding& finding, std::size_t number, const std::string& test) {
        const BranchResult& result = finding.result;
        std::vector<std::string> names;
        for (const Choice& choice : finding.choices) {
            names.push_back(fabric::xml_text(choice.name));
        }
        std::string inside =
            text("expected", result.expected, true) + text("happened", result.happened, true) +
            text("explanation", result.explanation, true) +
            text("replay", finding.error.empty() ? finding.replay : finding.error, true) +
            text(fabric::xml_text(finding.kept.empty() ? "scenario" : finding.kept),
                 finding.scenario, false);
        return fmt::format(
            "<details id=\"finding-{}\"><summary><b>{}. {} ({})</b>, {}{}{}{}</summary>"
            "<div class=\"inside\">{}</div></details>\n",
            number, number, to_string(result.outcome), fabric::xml_text(result.kind),
            fabric::counted(finding.branches, "branch", "branches"),
            test.empty() ? "" : " of " + fabric::xml_text(test), names.empty() ? "" : ": ",
            fmt::join(names, ", then "), inside);
    }

    std::size_t room_ = kTexts;
};

// The data of the maps, as text inside a <script>.
std::string data_of(const Explored& explored) {
    nlohmann::ordered_json tests = nlohmann::ordered_json::array();
    MapRoom room;
    for (const ExploredTest& test : explored.tests) {
        if (not_explored(test).empty() && !test.result.places.empty()) {
            tests.push_back(map_of(test, room));
            tests.back()["findings"] = test.result.findings.size();
        }
    }
    nlohmann::ordered_json outcomes = nlohmann::ordered_json::object();
    using enum Outcome;
    for (const Outcome outcome : {kPassed, kMissed, kFailed, kWrongData, kHangs, kCrashed, kTooLong,
                                  kMisuse, kLeaks, kTooSlow}) {
        outcomes[std::string(1, letter_of(outcome))] = to_string(outcome);
    }
    const std::string text = to_line(
        nlohmann::ordered_json{{"tests", std::move(tests)}, {"outcomes", std::move(outcomes)}});
    std::string out;
    for (const char c : text) {
        out += c == '<' ? "\\u003c" : std::string(1, c);
    }
    return out;
}

}  // namespace

std::string html(const Explored& explored) {
    std::string page;
    std::string_view rest = kMapPage;
    const auto fill = [&page, &rest](std::string_view mark, const std::string& text) {
        const std::size_t at = rest.find(mark);
        page.append(rest.substr(0, at)).append(text);
        rest.remove_prefix(at + mark.size());
    };
    const std::string name = fabric::xml_text(explored.subject);
    fill("@NAME@", name);
    fill("@NAME@", name);
    fill("@VERDICT@", verdict_of(explored));
    fill("@SUMMARY@", summary_of(explored));
    fill("@FINDINGS@", Findings().html(explored));
    fill("@DATA@", data_of(explored));
    return page.append(rest);
}

}  // namespace scenarios
