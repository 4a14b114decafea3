#include "tutorials/lab/judge.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <tuple>

#include <fmt/format.h>

#include "tutorials/lab/objects.hpp"
#include "viz/markup.hpp"

namespace simverbs::lab {
namespace {

// Bytes: of a match, shown; of stdout and of stderr, searched. std::regex recurses for each, and a
// program that prints for ever shall not end the judge.
constexpr std::size_t kQuoted = 120;
constexpr std::size_t kSearched = 4096;

// The end of the bracket expression, group or escape that begins there.
std::size_t end_of_token(std::string_view text, std::size_t begin) {
    if (text[begin] == '\\') {
        return std::min(begin + 2, text.size());
    }
    if (text[begin] != '[') {
        return begin + 1;
    }
    std::size_t end = begin + 1;
    while (end < text.size() && text[end] != ']') {
        end += text[end] == '\\' ? 2 : 1;
    }
    // "[^]" is any character.
    return std::min(end + 1, text.size());
}

std::string words_of_token(std::string_view token) {
    if (token == "\\n" || token == ".") {
        return "...";
    }
    if (token == "\\b" || token == "(" || token == ")" || token == "?" || token == "*" ||
        token == "+") {
        return "";
    }
    if (token == "|") {
        return " or ";
    }
    if (token.front() == '\\') {
        return std::string(token.substr(1));
    }
    if (token.front() == '[') {
        return token.find("-9") != std::string_view::npos ? "#" : "...";
    }
    return std::string(token);
}

// The expression of a rule as a person reads it: "line 0...: Posted"; # is a number.
std::string in_words(std::string_view expression) {
    std::string words;
    for (std::size_t at = 0; at < expression.size();) {
        const std::size_t end = end_of_token(expression, at);
        const std::string next = words_of_token(expression.substr(at, end - at));
        const bool repeats = (next == "..." || next == "#") && words.ends_with(next);
        words += repeats ? "" : next;
        at = end;
    }
    return words.ends_with("...") ? words.substr(0, words.size() - 3) : words;
}

// The lines that an expression asks for, in their order: its parts between "\\n" and "[^]*".
std::vector<std::string> lines_asked(std::string_view expression) {
    std::vector<std::string> lines(1);
    int depth = 0;
    for (std::size_t at = 0; at < expression.size();) {
        std::size_t end = end_of_token(expression, at);
        const std::string_view token = expression.substr(at, end - at);
        depth += token == "(" ? 1 : token == ")" ? -1 : 0;
        const bool is_anything = expression.substr(at).starts_with("[^]*");
        if (depth == 0 && (token == "\\n" || is_anything)) {
            end += is_anything ? 1 : 0;
            lines.emplace_back();
        } else {
            lines.back() += token;
        }
        at = end;
    }
    std::erase(lines, "");
    return lines;
}

// Returns the printed line that begins most like `words`, or holds their beginning; "" where there
// is none that shares a third of it.
std::string nearest_line(std::string_view words, const std::string& printed) {
    std::string nearest;
    std::size_t most = words.size() / 3;
    std::istringstream lines(printed);
    for (std::string line; std::getline(lines, line);) {
        std::size_t shared = most;
        while (shared < words.size() && line.find(words.substr(0, shared + 1)) != line.npos) {
            ++shared;
        }
        if (shared > most) {
            most = shared;
            nearest = line;
        }
    }
    return nearest;
}

// Names the first line that is asked for and was printed otherwise, and how.
std::string what_was_not_printed(const std::string& expression, const std::string& printed) {
    for (const std::string& line : lines_asked(expression)) {
        const std::string words = in_words(line);
        const std::string nearest = nearest_line(words, printed);
        if (!nearest.empty() && !std::regex_search(printed, std::regex(line))) {
            return fmt::format("nothing printed reads '{}', but there is '{}'", words,
                               nearest.substr(0, kQuoted));
        }
    }
    return fmt::format("nothing printed reads '{}'", in_words(expression));
}

std::vector<const viz::Record*> find_all(const Pattern& pattern, const Performance& performance) {
    std::vector<const viz::Record*> found;
    for (const viz::Record& record : performance.trace.records) {
        if (pattern.matches(record, performance.run)) {
            found.push_back(&record);
        }
    }
    return found;
}

// Posted work requests are told in batches, by the index of their queue behind the last.
std::uint64_t occurrences(const std::vector<const viz::Record*>& found) {
    if (found.empty() || found.front()->name != "posted") {
        return found.size();
    }
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, std::uint64_t> posted;
    for (const viz::Record* record : found) {
        std::uint64_t& last = posted[{record->node, record->id("qpn"), record->number("send")}];
        last = std::max(last, static_cast<std::uint64_t>(record->number("posted")));
    }
    return std::accumulate(posted.begin(), posted.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const auto& queue) { return sum + queue.second; });
}

// Says why a call was refused, as simverbs told on stderr; "" where it told nothing.
std::string reason_of_refusal(const viz::Record& record, const std::string& errors) {
    constexpr std::string_view kName = "simverbs: ";
    if (record.name != "verb" || record.number("errno") == 0) {
        return "";
    }
    const std::string begin = fmt::format("{}ibv_{} refused", kName, record.text("verb"));
    std::istringstream lines(errors);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(begin)) {
            return "; " + line.substr(kName.size());
        }
    }
    return "";
}

std::string times(std::uint64_t count) {
    return fmt::format("{} {}", count, count == 1 ? "time" : "times");
}

class Judge {
  public:
    explicit Judge(const Performance& performance) : performance_(performance) {}

    Finding operator()(const CountRule& rule) const {
        const auto found = find_all(rule.of, performance_);
        const std::uint64_t count = occurrences(found);
        if (count > rule.most && rule.most == 0) {
            return {false, describe(*found.front(), performance_.run) +
                               reason_of_refusal(*found.front(), performance_.errors)};
        }
        if (count < rule.least || count > rule.most) {
            return {false,
                    fmt::format("{} instead of {} {}: {}", times(count),
                                rule.least == rule.most ? "exactly"
                                : count < rule.least    ? "at least"
                                                        : "at most",
                                count < rule.least ? rule.least : rule.most, rule.of.text),
                    false, count < rule.least};
        }
        return {true, {}};
    }

    Finding operator()(const OrderRule& rule) const {
        const auto place = [&rule](const viz::Record& record) {
            return viz::QpName{rule.each == OrderRule::Each::kRun ? 0 : record.node,
                               rule.each == OrderRule::Each::kQp ? record.id("qpn") : 0};
        };
        std::set<viz::QpName> prepared;
        bool happened = false;
        for (const viz::Record& record : performance_.trace.records) {
            if (rule.first.matches(record, performance_.run)) {
                prepared.insert(place(record));
            }
            if (rule.before.matches(record, performance_.run)) {
                happened = true;
                if (!prepared.contains(place(record))) {
                    return {false,
                            fmt::format("{}; not before it: {}", describe(record, performance_.run),
                                        rule.first.text)};
                }
            }
        }
        // The rule is open where `first` came and `before` has not come yet.
        return {happened, happened ? "" : "it never came to: " + rule.before.text,
                !happened && !prepared.empty(), true};
    }

    Finding operator()(const BetweenRule& rule) const {
        const viz::Record* begin = nullptr;
        for (const viz::Record& record : performance_.trace.records) {
            if (begin == nullptr && rule.from.matches(record, performance_.run)) {
                begin = &record;
            } else if (begin != nullptr && rule.to.matches(record, performance_.run)) {
                const fabric::SimDuration passed(record.time - begin->time);
                return {passed >= rule.least && passed <= rule.most,
                        fmt::format("{} passed from {} to {}", viz::time_text(passed.count()),
                                    rule.from.text, rule.to.text)};
            }
        }
        return {
            false,
            fmt::format("it never came to: {}", begin == nullptr ? rule.from.text : rule.to.text),
            false, true};
    }

    Finding operator()(const BalanceRule& rule) const {
        const std::uint64_t of = occurrences(find_all(rule.of, performance_));
        const std::uint64_t as = occurrences(find_all(rule.as, performance_));
        return {of == as && of > 0,
                fmt::format("{}: {}; {}: {}", times(of), rule.of.text, times(as), rule.as.text),
                false, true};
    }

    Finding operator()(const ClosedRule& rule) const {
        std::map<std::string_view, std::uint64_t> calls;
        for (const viz::Record& record : performance_.trace.records) {
            if (record.name == "context") {
                ++calls[record.number("open") != 0 ? "open_device" : "close_device"];
            }
            if (record.name == "verb" && record.number("errno") == 0) {
                ++calls[record.text("verb")];
            }
        }
        std::string seen;
        bool made_any = false;
        for (const ObjectKind& kind : kObjectKinds) {
            if (std::find(rule.kinds.begin(), rule.kinds.end(), kind.name) == rule.kinds.end()) {
                continue;
            }
            made_any = made_any || calls[kind.made_by] > 0;
            if (calls[kind.made_by] != calls[kind.ended_by]) {
                seen += fmt::format("{}ibv_{} {}, ibv_{} {}", seen.empty() ? "" : "; ",
                                    kind.made_by, times(calls[kind.made_by]), kind.ended_by,
                                    times(calls[kind.ended_by]));
            }
        }
        return {made_any && seen.empty(), made_any ? seen : "nothing was made", false, true};
    }

    Finding operator()(const OutputRule& rule) const {
        std::smatch match;
        const std::string searched =
            performance_.output.substr(0, kSearched) + performance_.errors.substr(0, kSearched);
        const bool found = std::regex_search(searched, match, rule.expression);
        if (found != rule.never) {
            return {true, {}};
        }
        return {false,
                found ? fmt::format("printed: {}", match.str().substr(0, kQuoted))
                      : what_was_not_printed(rule.text, searched),
                false, !found};
    }

    Finding operator()(const ExitRule& /*rule*/) const {
        const Ending& ending = performance_.ending;
        switch (ending.kind) {
            case Ending::Kind::kTimedOut:
            case Ending::Kind::kStuck:
            case Ending::Kind::kAsleep:
            case Ending::Kind::kInterrupted:
                return {false, "it did not end by itself and was stopped"};
            case Ending::Kind::kKilledBySignal:
                return {false, fmt::format("it crashed: {}", strsignal(ending.number))};
            case Ending::Kind::kException:
                return {false, "it crashed: " + exception_of(performance_.errors)};
            case Ending::Kind::kKilledSupervisor:
                return {false, "it killed the process that runs it"};
            case Ending::Kind::kNotStarted:
                return {false, "it was not started"};
            case Ending::Kind::kExited:
                break;
        }
        if (!line_of_second_end(performance_.errors).empty()) {
            return {false, "it destroyed an object twice, which elsewhere is a crash"};
        }
        return {ending.number == 0, fmt::format("it ended with status {}", ending.number)};
    }

  private:
    const Performance& performance_;
};

// Returns true if the program has made nothing.
bool lacks_object(const Performance& performance) {
    const std::vector<viz::Record>& records = performance.trace.records;
    return std::none_of(records.begin(), records.end(), [](const viz::Record& each) {
        return each.name == "context" && each.number("open") != 0;
    });
}

bool forbids(const Demand& demand) {
    const auto* const count = std::get_if<CountRule>(&demand);
    const auto* const output = std::get_if<OutputRule>(&demand);
    return (count != nullptr && count->least == 0) || (output != nullptr && output->never);
}

// Returns true if the rule holds only when the program did something.
bool asks_for_something(const Demand& demand) {
    return !forbids(demand) && !std::holds_alternative<ClosedRule>(demand) &&
           !std::holds_alternative<ExitRule>(demand);
}

bool holds_any(const Rubric& rubric, const std::vector<Finding>& findings,
               const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < findings.size(); ++i) {
        const bool is_named =
            std::find(names.begin(), names.end(), rubric.rules[i].name) != names.end();
        if (is_named && findings[i].holds) {
            return true;
        }
    }
    return false;
}

void leave_open(Finding& finding) {
    finding.open = finding.open || finding.holds;
    finding.holds = false;
}

void leave_open_until_once(const Rubric& rubric, std::vector<Finding>& findings) {
    const std::vector<Finding> judged = findings;
    for (std::size_t i = 0; i < findings.size(); ++i) {
        const std::vector<std::string>& once = rubric.rules[i].once;
        if (!once.empty() && !holds_any(rubric, judged, once)) {
            findings[i].open = true;
            findings[i].holds = false;
        }
    }
}

void leave_open_where_nothing_was_done(const Rubric& rubric, std::vector<Finding>& findings) {
    bool asks = false;
    for (std::size_t i = 0; i < findings.size(); ++i) {
        if (asks_for_something(rubric.rules[i].demand)) {
            asks = true;
            if (findings[i].holds) {
                return;
            }
        }
    }
    for (std::size_t i = 0; asks && i < findings.size(); ++i) {
        if (rubric.rules[i].once.empty()) {
            leave_open(findings[i]);
        }
    }
}

// By a crash or an endless loop. A program that waits in vain, or gives up, does so because
// something has not happened.
bool was_cut_short(const Ending& ending) {
    return ending.kind == Ending::Kind::kKilledBySignal ||
           ending.kind == Ending::Kind::kException || ending.kind == Ending::Kind::kTimedOut ||
           ending.kind == Ending::Kind::kKilledSupervisor;
}

}  // namespace

Finding judge(const Demand& demand, const Performance& performance) {
    Finding finding = std::visit(Judge(performance), demand);
    if (finding.holds) {
        finding.seen.clear();
        finding.open = forbids(demand) && !performance.ending.is_good();
        finding.holds = !finding.open;
    } else {
        finding.open = finding.open || (finding.is_absence && was_cut_short(performance.ending));
    }
    return finding;
}

std::string left_behind(const Performance& performance) {
    ClosedRule rule;
    for (const ObjectKind& kind : kObjectKinds) {
        rule.kinds.emplace_back(kind.name);
    }
    const Finding finding = Judge(performance)(rule);
    return finding.holds || lacks_object(performance) ? "" : finding.seen;
}

std::vector<Finding> judge(const Rubric& rubric, const Performance& performance) {
    const bool is_empty = lacks_device(rubric, performance);
    std::vector<Finding> findings;
    for (const Rule& rule : rubric.rules) {
        Finding finding = judge(rule.demand, performance);
        if (is_empty) {
            leave_open(finding);
        }
        findings.push_back(std::move(finding));
    }
    leave_open_until_once(rubric, findings);
    leave_open_where_nothing_was_done(rubric, findings);
    return findings;
}

bool lacks_device(const Rubric& rubric, const Performance& performance) {
    const bool asks_devices =
        std::any_of(rubric.rules.begin(), rubric.rules.end(), [](const Rule& rule) {
            return !std::holds_alternative<OutputRule>(rule.demand) &&
                   !std::holds_alternative<ExitRule>(rule.demand);
        });
    return asks_devices && lacks_object(performance);
}

}  // namespace simverbs::lab
