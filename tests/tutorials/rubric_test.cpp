#include "tutorials/lab/rubric.hpp"

#include <algorithm>

#include <gmock/gmock.h>

#include "simverbs/hca/command_code.hpp"

namespace simverbs::lab {
namespace {

using testing::HasSubstr;

constexpr std::string_view kHead = "title: t\nrules:\n";

std::string rule(std::string_view demand) {
    return std::string(kHead) + "  - name: r\n    asks: a\n    say: s\n    " + std::string(demand) +
           "\n";
}

std::string errors_of(const std::string& text) {
    fabric::yaml::Errors errors("rubric.yaml");
    EXPECT_FALSE(read_rubric(text, errors).has_value());
    return errors.text();
}

Rubric rubric_of(const std::string& text) {
    fabric::yaml::Errors errors("rubric.yaml");
    const auto rubric = read_rubric(text, errors);
    EXPECT_TRUE(rubric.has_value()) << errors.text();
    return rubric.value_or(Rubric{});
}

TEST(Rubric, ReadsEveryKindOfDemand) {
    for (const std::string_view demand :
         {"count: {of: {state: RTS, host: h0}, least: 1, most: 2}",
          "never: {completion: \"!SUCCESS\"}",
          "order: {first: {posted: receive}, before: {state: RTR}, each: qp}",
          "between: {from: {fault: \"*\"}, to: {event: PATH_MIG}, least: 1us, most: 5ms}",
          "balance: {of: {call: alloc_pd}, as: {call: dealloc_pd}}", "closed: [qp, cq]",
          "output: \"a+b\"", "no_output: x", "exit: 0"}) {
        const Rubric rubric = rubric_of(rule(demand));
        ASSERT_EQ(rubric.rules.size(), 1U) << demand;
        EXPECT_EQ(rubric.rules[0].name, "r");
        EXPECT_EQ(rubric.points(), 1U);
    }
}

TEST(Rubric, AnUnknownKeyIsNamedWithItsPlaceAndTheNearest) {
    const std::string errors = errors_of(rule("coutn: {of: {state: RTS}}"));
    EXPECT_THAT(errors, HasSubstr("rubric.yaml:6:5: unknown key \"coutn\""));
    EXPECT_THAT(errors, HasSubstr("\"count\""));
}

TEST(Rubric, WordsOfTheModelAreChecked) {
    EXPECT_THAT(errors_of(rule("never: {completion: SUCESS}")), HasSubstr("\"SUCCESS\""));
    EXPECT_THAT(errors_of(rule("never: {completion: \"!SUCESS\"}")), HasSubstr("\"SUCCESS\""));
    EXPECT_THAT(errors_of(rule("never: {state: RTZ}")), HasSubstr("RESET, INIT"));
    EXPECT_THAT(errors_of(rule("never: {call: modfy_qp}")), HasSubstr("\"modify_qp\""));
    EXPECT_THAT(errors_of(rule("never: {event: PATH_MIGG}")), HasSubstr("\"PATH_MIG\""));
    EXPECT_THAT(errors_of(rule("never: {posted: send, status: SUCCESS}")),
                HasSubstr("unknown key \"status\""));
    EXPECT_THAT(errors_of(rule("never: {hots: h0}")), HasSubstr("no event is named here"));
}

TEST(Rubric, SaysWhetherAnswersUseRdmaCm) {
    const std::string rules = "rules: [{name: r, asks: a, say: s, exit: 0}]\n";
    const auto uses = [&rules](const std::string& line) {
        fabric::yaml::Errors errors("rubric.yaml");
        const auto rubric = read_rubric("title: t\n" + line + rules, errors);
        return rubric ? std::optional(rubric->uses_rdma_cm) : std::nullopt;
    };
    EXPECT_EQ(uses(""), false);
    EXPECT_EQ(uses("rdma_cm: no\n"), false);
    EXPECT_EQ(uses("rdma_cm: yes\n"), true);
    EXPECT_EQ(uses("rdma_cm: perhaps\n"), std::nullopt);
}

TEST(Rubric, RulesSayWhatTheyLack) {
    EXPECT_THAT(errors_of("title: t\n"), HasSubstr("\"rules\" is missing"));
    EXPECT_THAT(errors_of(std::string(kHead) + "  - {name: r, asks: a, exit: 0}\n"),
                HasSubstr("rubric.yaml:3:5: \"say\" is missing"));
    EXPECT_THAT(errors_of(std::string(kHead) + "  - {name: r, asks: a, say: s}\n"),
                HasSubstr("exactly one of the keys count, never"));
    EXPECT_THAT(errors_of(rule("exit: 0\n    closed: [qp]")), HasSubstr("exactly one"));
    EXPECT_THAT(errors_of(rule("count: {of: {state: RTS}, least: 3, most: 2}")),
                HasSubstr("\"least\" is more than \"most\""));
    EXPECT_THAT(errors_of(rule("output: \"(\"")), HasSubstr("no regular expression"));
}

TEST(Rubric, TwoRulesOfOneNameAreAMistake) {
    EXPECT_THAT(errors_of(std::string(kHead) + "  - {name: r, asks: a, say: s, exit: 0}\n"
                                               "  - {name: r, asks: b, say: s, exit: 0}\n"),
                HasSubstr("a second rule \"r\""));
}

TEST(Rubric, OnceNamesRulesThatThereAre) {
    EXPECT_THAT(rubric_of(rule("once: r\n    exit: 0")).rules[0].once, testing::ElementsAre("r"));
    EXPECT_THAT(errors_of(rule("once: [r, rr]\n    exit: 0")),
                HasSubstr("rubric.yaml:6:15: \"rr\""));
}

TEST(Rubric, CallsAreThoseOfTheDevice) {
    for (const std::string_view call : known_calls()) {
        EXPECT_TRUE(std::any_of(kCommandNames.begin(), kCommandNames.end(),
                                [call](const CommandName& row) { return row.verb == call; }))
            << call;
    }
}

TEST(Rubric, AdviceIsInTheLanguageOfTheAnswer) {
    const Rubric rubric = rubric_of(
        "title: t\nhints: [both, {c: h->qp, python: h.qp}]\nrules:\n"
        "  - {name: r, asks: a, say: s, exit: 0, hint: {c: in C, python: in Python}}\n");
    ASSERT_EQ(rubric.hints.size(), 2U);
    EXPECT_EQ(rubric.hints[0].in(Language::kPython), "both");
    EXPECT_EQ(rubric.hints[1].in(Language::kC), "h->qp");
    EXPECT_EQ(rubric.hints[1].in(Language::kPython), "h.qp");
    EXPECT_EQ(rubric.rules[0].hint.in(Language::kPython), "in Python");
    const Rule explained = rubric_of(std::string(kHead) +
                                     "  - {name: r, asks: a, exit: 0, say: "
                                     "{c: as C, python: as Python}}\n")
                               .rules[0];
    EXPECT_EQ(explained.say.in(Language::kC), "as C");
    EXPECT_EQ(explained.say.in(Language::kPython), "as Python");
    EXPECT_THAT(errors_of(std::string(kHead) + "  - {name: r, asks: a, exit: 0, say: {c: as C}}\n"),
                HasSubstr("rubric.yaml:3:5: \"say\" is missing, or a language of it"));
    EXPECT_THAT(errors_of(rule("exit: 0\n    hint: {pyhton: x}")), HasSubstr("\"python\""));
}

TEST(WrongAnswers, NameARuleThatThereIs) {
    const Rubric rubric = rubric_of(rule("exit: 0"));
    const auto errors_for = [&rubric](std::string_view fails) {
        fabric::yaml::Errors errors("wrong.yaml");
        const std::string text = "- name: n\n  story: s\n  fails: " + std::string(fails) +
                                 "\n  changes: [{replace: a, by: b}]\n";
        return read_wrong_answers(text, rubric, errors) ? std::string() : errors.text();
    };
    EXPECT_EQ(errors_for("r"), "");
    EXPECT_EQ(errors_for("compiles"), "");
    EXPECT_EQ(errors_for("crashes"), "");
    EXPECT_THAT(errors_for("q"), HasSubstr("wrong.yaml:3:10"));
}

}  // namespace
}  // namespace simverbs::lab
