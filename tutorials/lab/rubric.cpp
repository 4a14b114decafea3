#include "tutorials/lab/rubric.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <span>

#include <fmt/format.h>

#include "fabric/yaml/fields.hpp"

#include "tutorials/lab/objects.hpp"

namespace simverbs::lab {
namespace {

using fabric::yaml::Errors;
using fabric::yaml::Fields;
using fabric::yaml::Value;
using fabric::yaml::Words;

constexpr auto kRubricKeys = std::to_array<std::string_view>(
    {"title", "topology", "environment", "time_limit", "rdma_cm", "pictures", "hints", "rules"});
constexpr auto kPictures =
    std::to_array<std::string_view>({"ladder", "states", "timeline", "topology"});
constexpr auto kDemands = std::to_array<std::string_view>(
    {"count", "never", "order", "between", "balance", "closed", "output", "no_output", "exit"});
constexpr auto kRuleKeys = std::to_array<std::string_view>(
    {"name", "asks", "say", "hint", "points", "once", "count", "never", "order", "between",
     "balance", "closed", "output", "no_output", "exit"});
constexpr auto kEach = std::to_array<std::string_view>({"run", "host", "qp"});
constexpr auto kExit = std::to_array<std::string_view>({"0"});
constexpr auto kNoYes = std::to_array<std::string_view>({"no", "yes"});

std::string text_or(const Fields& fields, std::string_view key) {
    return fields.get(key, fabric::yaml::text_of).value_or("");
}

// A text for both languages, or {c: TEXT, python: TEXT}.
LocalText local_text_of(const Value& value, Errors& errors) {
    static constexpr auto kKeys = std::to_array<std::string_view>({"c", "python"});
    if (value.kind != fabric::yaml::Kind::kMapping) {
        const std::string text = fabric::yaml::text_of(value, errors).value_or("");
        return {text, text};
    }
    const Fields fields(value, kKeys, errors);
    return {text_or(fields, "c"), text_or(fields, "python")};
}

std::optional<std::uint64_t> any_number(const Value& value, Errors& errors) {
    return fabric::yaml::number_of(value, errors);
}

// With an error where it is left out or empty.
std::string required_text(const Fields& fields, const Value& at, std::string_view key,
                          Errors& errors) {
    std::string text = text_or(fields, key);
    if (text.empty()) {
        errors.add(at.position, fmt::format("\"{}\" is missing", key));
    }
    return text;
}

// The same, of both languages.
LocalText required_local_text(const Fields& fields, const Value& at, std::string_view key,
                              Errors& errors) {
    const Value* const value = fields.find(key);
    LocalText text = value == nullptr ? LocalText{} : local_text_of(*value, errors);
    if (text.c.empty() || text.python.empty()) {
        errors.add(at.position,
                   fmt::format("\"{}\" is missing, or a language of it: c, python", key));
    }
    return text;
}

std::optional<Pattern> required_pattern(const Fields& fields, const Value& at, std::string_view key,
                                        Errors& errors) {
    const Value* const value = fields.find(key);
    if (value == nullptr) {
        errors.add(at.position, fmt::format("\"{}\" is missing", key));
        return std::nullopt;
    }
    return read_pattern(*value, errors);
}

std::optional<Demand> read_count(const Value& value, Errors& errors) {
    static constexpr auto kKeys =
        std::to_array<std::string_view>({"of", "least", "most", "exactly"});
    const Fields fields(value, kKeys, errors);
    auto of = required_pattern(fields, value, "of", errors);
    if (!of) {
        return std::nullopt;
    }
    CountRule rule{.of = std::move(*of)};
    rule.least = fields.get("least", any_number).value_or(1);
    rule.most = fields.get("most", any_number).value_or(UINT64_MAX);
    if (const auto exactly = fields.get("exactly", any_number)) {
        rule.least = *exactly;
        rule.most = *exactly;
    }
    if (rule.least > rule.most) {
        errors.add(value.position, "\"least\" is more than \"most\"");
    }
    return rule;
}

std::optional<Demand> read_order(const Value& value, Errors& errors) {
    static constexpr auto kKeys = std::to_array<std::string_view>({"first", "before", "each"});
    const Fields fields(value, kKeys, errors);
    auto first = required_pattern(fields, value, "first", errors);
    auto before = required_pattern(fields, value, "before", errors);
    const auto each = static_cast<OrderRule::Each>(fields.choice("each", kEach).value_or(0));
    if (!first || !before) {
        return std::nullopt;
    }
    return OrderRule{std::move(*first), std::move(*before), each};
}

std::optional<Demand> read_between(const Value& value, Errors& errors) {
    static constexpr auto kKeys = std::to_array<std::string_view>({"from", "to", "least", "most"});
    const Fields fields(value, kKeys, errors);
    auto from = required_pattern(fields, value, "from", errors);
    auto to = required_pattern(fields, value, "to", errors);
    if (!from || !to) {
        return std::nullopt;
    }
    BetweenRule rule{std::move(*from), std::move(*to)};
    rule.least = fields.get("least", fabric::yaml::duration_of).value_or(rule.least);
    rule.most = fields.get("most", fabric::yaml::duration_of).value_or(rule.most);
    return rule;
}

std::optional<Demand> read_balance(const Value& value, Errors& errors) {
    static constexpr auto kKeys = std::to_array<std::string_view>({"of", "as"});
    const Fields fields(value, kKeys, errors);
    auto of = required_pattern(fields, value, "of", errors);
    auto as = required_pattern(fields, value, "as", errors);
    if (!of || !as) {
        return std::nullopt;
    }
    return BalanceRule{std::move(*of), std::move(*as)};
}

std::optional<Demand> read_closed(const Value& value, Errors& errors) {
    std::vector<std::string_view> names;
    names.reserve(kObjectKinds.size());
    for (const ObjectKind& kind : kObjectKinds) {
        names.push_back(kind.name);
    }
    ClosedRule rule;
    for (const Value& item : fabric::yaml::items_of(value, errors)) {
        if (const auto found = fabric::yaml::choice_of(item, names, errors)) {
            rule.kinds.emplace_back(names[*found]);
        }
    }
    return rule;
}

std::optional<Demand> read_output(const Value& value, bool never, Errors& errors) {
    const auto text = fabric::yaml::text_of(value, errors);
    if (!text) {
        return std::nullopt;
    }
    try {
        return OutputRule{*text, std::regex(*text), never};
    } catch (const std::regex_error& error) {
        errors.add(value.position, fmt::format("no regular expression: {}", error.what()));
        return std::nullopt;
    }
}

std::optional<Demand> read_demand(std::string_view kind, const Value& value, Errors& errors) {
    if (kind == "count") {
        return read_count(value, errors);
    }
    if (kind == "never") {
        auto of = read_pattern(value, errors);
        return of ? std::optional<Demand>(CountRule{std::move(*of), 0, 0}) : std::nullopt;
    }
    if (kind == "order") {
        return read_order(value, errors);
    }
    if (kind == "between") {
        return read_between(value, errors);
    }
    if (kind == "balance") {
        return read_balance(value, errors);
    }
    if (kind == "closed") {
        return read_closed(value, errors);
    }
    if (kind == "exit") {
        return fabric::yaml::choice_of(value, kExit, errors) ? std::optional<Demand>(ExitRule{})
                                                             : std::nullopt;
    }
    return read_output(value, kind == "no_output", errors);
}

// A name, or a list of names.
std::span<const Value> names_in(const Value& value) {
    return value.kind == fabric::yaml::Kind::kList ? std::span<const Value>(value.items)
                                                   : std::span<const Value>(&value, 1);
}

std::optional<Rule> read_rule(const Value& value, Errors& errors) {
    const Fields fields(value, kRuleKeys, errors);
    Rule rule;
    rule.name = required_text(fields, value, "name", errors);
    rule.asks = required_text(fields, value, "asks", errors);
    rule.say = required_local_text(fields, value, "say", errors);
    if (const Value* const hint = fields.find("hint")) {
        rule.hint = local_text_of(*hint, errors);
    }
    rule.points = fields.get("points", any_number).value_or(1);
    if (const Value* const once = fields.find("once")) {
        for (const Value& name : names_in(*once)) {
            rule.once.push_back(name.text);
        }
    }
    const auto is_given = [&fields](std::string_view kind) { return fields.find(kind) != nullptr; };
    const auto kind = std::find_if(kDemands.begin(), kDemands.end(), is_given);
    if (std::count_if(kDemands.begin(), kDemands.end(), is_given) != 1) {
        errors.add(value.position, fmt::format("a rule has exactly one of the keys {}",
                                               fabric::yaml::join(kDemands)));
        return std::nullopt;
    }
    auto demand = read_demand(*kind, *fields.find(*kind), errors);
    if (!demand) {
        return std::nullopt;
    }
    rule.demand = std::move(*demand);
    return rule;
}

// `once: RULE` or `once: [RULE, ...]` of each rule, in their order.
void check_once(const Value& rules, const Rubric& rubric, Errors& errors) {
    std::vector<std::string_view> names;
    names.reserve(rubric.rules.size());
    for (const Rule& rule : rubric.rules) {
        names.push_back(rule.name);
    }
    for (const Value& rule : rules.items) {
        for (const fabric::yaml::Entry& entry : rule.entries) {
            if (entry.key.text == "once") {
                for (const Value& name : names_in(entry.value)) {
                    (void)fabric::yaml::choice_of(name, names, errors);
                }
            }
        }
    }
}

void read_rules(const Value& value, Rubric& rubric, Errors& errors) {
    std::set<std::string> names;
    for (const Value& item : fabric::yaml::items_of(value, errors)) {
        if (auto rule = read_rule(item, errors)) {
            if (!names.insert(rule->name).second) {
                errors.add(item.position, fmt::format("a second rule \"{}\"", rule->name));
            }
            rubric.rules.push_back(std::move(*rule));
        }
    }
    check_once(value, rubric, errors);
}

std::chrono::milliseconds milliseconds_of(fabric::SimDuration duration) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

std::vector<std::pair<std::string, std::string>> read_changes(const Value& value, Errors& errors) {
    static constexpr auto kKeys = std::to_array<std::string_view>({"replace", "by"});
    std::vector<std::pair<std::string, std::string>> changes;
    for (const Value& item : fabric::yaml::items_of(value, errors)) {
        const Fields fields(item, kKeys, errors);
        changes.emplace_back(required_text(fields, item, "replace", errors), text_or(fields, "by"));
    }
    return changes;
}

}  // namespace

std::uint64_t Rubric::points() const {
    return std::accumulate(rules.begin(), rules.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Rule& rule) { return sum + rule.points; });
}

std::optional<Rubric> read_rubric(std::string_view text, Errors& errors) {
    const auto document = fabric::yaml::parse(text, errors);
    if (!document) {
        return std::nullopt;
    }
    const Fields fields(*document, kRubricKeys, errors);
    Rubric rubric;
    rubric.title = required_text(fields, *document, "title", errors);
    rubric.topology = fields.get("topology", fabric::yaml::text_of).value_or(rubric.topology);
    if (const auto limit = fields.get("time_limit", fabric::yaml::duration_of)) {
        rubric.time_limit = milliseconds_of(*limit);
    }
    rubric.uses_rdma_cm = fields.choice("rdma_cm", kNoYes).value_or(0) == 1;
    if (const Value* const environment = fields.find("environment")) {
        for (const fabric::yaml::Entry& entry : fabric::yaml::entries_of(*environment, errors)) {
            rubric.environment.emplace_back(
                entry.key.text, fabric::yaml::text_of(entry.value, errors).value_or(""));
        }
    }
    if (const Value* const pictures = fields.find("pictures")) {
        for (const Value& item : fabric::yaml::items_of(*pictures, errors)) {
            if (const auto picture = fabric::yaml::choice_of(item, kPictures, errors)) {
                rubric.pictures.push_back(static_cast<Picture>(*picture));
            }
        }
    }
    if (const Value* const hints = fields.find("hints")) {
        for (const Value& item : fabric::yaml::items_of(*hints, errors)) {
            rubric.hints.push_back(local_text_of(item, errors));
        }
    }
    if (const Value* const rules = fields.find("rules")) {
        read_rules(*rules, rubric, errors);
    }
    if (rubric.rules.empty()) {
        errors.add(document->position, "\"rules\" is missing or empty");
    }
    return errors.empty() ? std::optional(std::move(rubric)) : std::nullopt;
}

std::optional<std::vector<WrongAnswer>> read_wrong_answers(std::string_view text,
                                                           const Rubric& rubric, Errors& errors) {
    static constexpr auto kKeys =
        std::to_array<std::string_view>({"name", "story", "fails", "says", "language", "changes"});
    static constexpr auto kLanguages = std::to_array<std::string_view>({"c", "python"});
    std::vector<std::string_view> rules{kCompiles};
    rules.insert(rules.end(), kDiagnosisNames.begin(), kDiagnosisNames.end());
    for (const Rule& rule : rubric.rules) {
        rules.push_back(rule.name);
    }
    const auto document = fabric::yaml::parse(text, errors);
    if (!document) {
        return std::nullopt;
    }
    std::vector<WrongAnswer> answers;
    for (const Value& item : fabric::yaml::items_of(*document, errors)) {
        const Fields fields(item, kKeys, errors);
        WrongAnswer answer;
        answer.name = required_text(fields, item, "name", errors);
        answer.story = required_text(fields, item, "story", errors);
        if (const auto rule = fields.choice("fails", rules)) {
            answer.fails = rules[*rule];
        } else if (fields.find("fails") == nullptr) {
            errors.add(item.position, "\"fails\" is missing");
        }
        answer.says = text_or(fields, "says");
        answer.language = static_cast<Language>(fields.choice("language", kLanguages).value_or(0));
        if (const Value* const changes = fields.find("changes")) {
            answer.changes = read_changes(*changes, errors);
        }
        if (answer.changes.empty()) {
            errors.add(item.position, "\"changes\" is missing or empty");
        }
        answers.push_back(std::move(answer));
    }
    return errors.empty() ? std::optional(std::move(answers)) : std::nullopt;
}

std::string rubric_reference() {
    return
        R"(title:        of the exercise
topology:     as SIMVERBS_TOPOLOGY; default star:2
environment:  {NAME: VALUE}, for the program
time_limit:   of wall time; default 10 s
rdma_cm:      yes: answers in C are linked to librdmacm
pictures:     [ladder, states, timeline, topology], drawn beside the student's file
hints:        [text, ...], one more at each `simverbs lab hint`; {c: text, python: text}
              where the languages differ
rules:        in the order in which a teacher would look; the first that fails is named
  - name:     a word, for grades and wrong answers
    asks:     what must hold, a line
    say:      what is wrong when it does not, in your words; as one of the hints
    hint:     what to try, told once all hints were asked for; as one of the hints; may be left out
    points:   default 1
    once:     RULE or [RULE, ...]: open, without points, until one of these holds. Without it a
              rule that only forbids something (never, no_output, closed, exit, or a count from 0)
              is open until some rule holds that asks for something to happen
    ...       and one of these demands:
    count:    {of: EVENT, least: 1, most: N, exactly: N}
    never:    EVENT
    order:    {first: EVENT, before: EVENT, each: run|host|qp}
    between:  {from: EVENT, to: EVENT, least: TIME, most: TIME}, of virtual time
    balance:  {of: EVENT, as: EVENT}, as many of one as of the other
    closed:   [device, pd, mr, channel, cq, qp, ah, srq], destroyed as often as made
    output:   a regular expression that what was printed holds, the first 4 KiB of stdout and of
              stderr; no_output: does not hold
    exit:     0: the program ends by itself, and well

EVENT is {KIND: WHAT, ...}; WHAT is a word, "!WORD" (anything but it), [WORD, WORD] or "*".
`qp: 2` is the second queue pair that its host made. The kinds:
)" + pattern_reference() +
        R"(
A rule about output holds for whoever prints the line: let the trace say that it is true.

wrong.yaml, a list of wrong answers, for `simverbs lab prove`:
  - name:     a word
    story:    what the student thought
    language: c or python; default c
    fails:    the rule that names it, or compiles, crashes, times_out, skips_a_state, polls_once,
              destroys_twice, overflows_a_queue, opens_no_device
    says:     what the report has to say, however its lines are wrapped; may be left out
    changes:  [{replace: TEXT, by: TEXT}, ...] of solution.c or solution.py; TEXT to replace stands
              there exactly once; without `by` it goes
)";
}

}  // namespace simverbs::lab
