// Writes what an exploration has found, as text and as JSON.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "fabric/core/counted.hpp"

#include "scenarios/engine/verdict_json.hpp"
#include "scenarios/explore/explore.hpp"
#include "scenarios/explore/explored.hpp"

namespace scenarios {

namespace {

// Further lines stand below the first one.
std::string indented(const std::string& lines) {
    std::string text;
    for (const char c : lines.substr(0, lines.find_last_not_of('\n') + 1)) {
        text += c == '\n' ? "\n        " : std::string(1, c);
    }
    return text;
}

nlohmann::ordered_json to_json(const ExploreResult& result) {
    nlohmann::ordered_json findings = nlohmann::ordered_json::array();
    for (const Finding& finding : result.findings) {
        nlohmann::ordered_json faults = nlohmann::ordered_json::array();
        for (const Choice& choice : finding.choices) {
            if (choice.order) {
                faults.push_back({{"name", choice.name}, {"order", *choice.order}});
            } else {
                faults.push_back({{"name", choice.name}, {"fault", choice.fault}});
            }
        }
        findings.push_back({{"outcome", to_string(finding.result.outcome)},
                            {"kind", finding.result.kind},
                            {"cause", finding.result.cause},
                            {"expected", finding.result.expected},
                            {"happened", finding.result.happened},
                            {"time_ps", finding.result.time_ps},
                            {"explanation", finding.result.explanation},
                            {"branches", finding.branches},
                            {"faults", std::move(faults)},
                            {"scenario", finding.kept},
                            {"replay", finding.replay}});
    }
    std::vector<std::string> mistakes;
    for (const Mistake& mistake : result.mistakes) {
        mistakes.push_back(mistake.line);
    }
    return {{"packets", result.packets},
            {"calls", result.calls},
            {"choices", result.choices},
            {"branches_of_one", result.singles},
            {"branches_of_two", result.pairs},
            {"branches_of_walks", result.walked},
            {"orders", result.orders},
            {"different_orders", result.different_orders},
            {"forked_branches", result.forked},
            {"same", result.same},
            {"left", result.left},
            {"orders_left", result.orders_left},
            {"pairs_left", result.pairs_left},
            {"walks_left", result.walks_left},
            {"outcomes", result.outcomes},
            {"mistakes_without_fault", mistakes},
            {"marks", result.marks},
            {"findings", std::move(findings)}};
}

}  // namespace

std::string report(const Finding& finding, std::size_t number) {
    const BranchResult& result = finding.result;
    std::string text =
        fmt::format("FINDING {}: {} ({}), {}\n", number, to_string(result.outcome), result.kind,
                    fabric::counted(finding.branches, "branch", "branches"));
    for (const Choice& choice : finding.choices) {
        text += fmt::format("    {}\n", choice.name);
    }
    if (!result.expected.empty()) {
        text += fmt::format("    expected: {}\n", result.expected);
    }
    if (!result.happened.empty()) {
        text += fmt::format("    happened: {}\n", indented(result.happened));
    }
    for (const Mistake& mistake : result.mistakes) {
        if (result.happened.find(mistake.line) == std::string::npos) {
            text += fmt::format("    {}\n", mistake.line);
        }
    }
    text += result.explanation;
    text += finding.error.empty() ? fmt::format("    replay: {}\n", finding.replay)
                                  : fmt::format("    {}\n", finding.error);
    return text;
}

std::string report(const ExploreResult& result, std::size_t before) {
    std::string text;
    for (std::size_t i = 0; i < result.findings.size(); ++i) {
        text += report(result.findings[i], before + i + 1);
    }
    return text + summary(result);
}

std::string summary(const ExploreResult& result) {
    std::vector<std::string> groups;
    for (const auto& [name, count] : result.choices) {
        groups.push_back(fmt::format("{} {}", count, name));
    }
    std::string text = fmt::format(
        "{} of the run, {} of one fault ({})", fabric::counted(result.packets, "packet"),
        fabric::counted(result.singles, "branch", "branches"), fmt::join(groups, ", "));
    if (result.orders > 0) {
        text += fmt::format(", {} of threads ({} different)",
                            fabric::counted(result.orders, "order"), result.different_orders);
    }
    if (result.pairs > 0) {
        text += fmt::format(", {} of two", fabric::counted(result.pairs, "branch", "branches"));
    }
    if (result.walked > 0) {
        text += fmt::format(", {} of random faults",
                            fabric::counted(result.walked, "branch", "branches"));
    }
    std::vector<std::string> outcomes;
    for (const auto& [name, count] : result.outcomes) {
        outcomes.push_back(fmt::format("{} {}", count, name));
    }
    text += fmt::format(": {}; {}\n", fmt::join(outcomes, ", "),
                        fabric::counted(result.findings.size(), "finding"));
    if (!result.mistakes.empty()) {
        std::vector<std::string_view> names;
        for (const Mistake& mistake : result.mistakes) {
            names.push_back(simverbs::to_string(mistake.misuse));
        }
        text += fmt::format("mistakes without any fault, which are no findings: {}\n",
                            fmt::join(names, ", "));
    }
    if (!result.marks.empty()) {
        text += fmt::format("its runs may differ: {}\n", result.marks);
    }
    if (result.same > 0) {
        text += fmt::format("{} of one fault ended like another one: no pairs with them\n",
                            fabric::counted(result.same, "branch", "branches"));
    }
    if (result.left > 0) {
        text += fmt::format("not tried: {} of one fault\n",
                            fabric::counted(result.left, "branch", "branches"));
    }
    if (result.orders_left > 0) {
        text +=
            fmt::format("not tried: {} of threads\n", fabric::counted(result.orders_left, "order"));
    }
    if (result.pairs_left) {
        text += "not tried: some branches of two faults\n";
    }
    if (result.walks_left) {
        text += "not tried: some random walks\n";
    }
    if (result.stopped) {
        text += "interrupted\n";
    }
    return text;
}

std::string report(const ExploredTest& test) {
    const std::string why_not = not_explored(test);
    if (!why_not.empty()) {
        return fmt::format("TEST {}: {}\n", test.name, indented(why_not));
    }
    return fmt::format("TEST {}\n{}", test.name, report(test.result, test.before));
}

std::string summary(const Explored& explored) {
    std::size_t with_findings = 0;
    std::size_t unexplored = 0;
    for (const ExploredTest& test : explored.tests) {
        with_findings += test.result.findings.empty() ? 0 : 1;
        unexplored += not_explored(test).empty() ? 0 : 1;
    }
    return fmt::format("{}: {} with findings, {} without, {} not explored; {}\n",
                       fabric::counted(explored.tests.size(), "test"), with_findings,
                       explored.tests.size() - with_findings - unexplored, unexplored,
                       fabric::counted(explored.findings(), "finding"));
}

std::string json(const ExploreResult& result) {
    return to_line(to_json(result), 2) + "\n";
}

std::string json(const Explored& explored) {
    if (!explored.has_tests) {
        return explored.tests.empty() ? "{}\n" : json(explored.tests.front().result);
    }
    nlohmann::ordered_json tests = nlohmann::ordered_json::array();
    for (const ExploredTest& test : explored.tests) {
        nlohmann::ordered_json entry{{"test", test.name}, {"not_explored", not_explored(test)}};
        entry.update(to_json(test.result));
        tests.push_back(std::move(entry));
    }
    return to_line(
               nlohmann::ordered_json{{"program", explored.subject}, {"tests", std::move(tests)}},
               2) +
           "\n";
}

}  // namespace scenarios
