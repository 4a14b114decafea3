// The lessons that come with simverbs, as a whole: `simverbs lab prove` tries each.
#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <variant>

#include <gmock/gmock.h>

#include "tutorials/lab/exercise.hpp"

namespace simverbs::lab {
namespace {

constexpr std::ptrdiff_t kLikeliestMistakes = 5;

class Lessons : public testing::Test {
  protected:
    void SetUp() override {
        for (const std::string& name : exercise_names(TUTORIALS_FOLDER)) {
            auto exercise = find_exercise(TUTORIALS_FOLDER, name);
            ASSERT_TRUE(exercise.has_value()) << exercise.error();
            lessons.push_back(std::move(*exercise));
        }
        ASSERT_EQ(lessons.size(), 17U);
    }

    std::vector<Exercise> lessons;
};

// In each of its languages a lesson knows a crash, an endless loop, and what students are likelier
// to do.
TEST_F(Lessons, KnowTheLikeliestMistakes) {
    for (const Exercise& lesson : lessons) {
        for (const Language language : {Language::kC, Language::kPython}) {
            if (!lesson.has(language)) {
                continue;
            }
            const auto count = [&](auto is_meant) {
                return std::count_if(lesson.wrong.begin(), lesson.wrong.end(),
                                     [&](const WrongAnswer& answer) {
                                         return answer.language == language && is_meant(answer);
                                     });
            };
            const std::string what = lesson.name + std::string(ending_of(language));
            EXPECT_GE(count([](const WrongAnswer& /*any*/) { return true; }), kLikeliestMistakes)
                << what;
            for (const std::string_view ending : {kCrashes, kTimesOut}) {
                EXPECT_GE(count([ending](const WrongAnswer& answer) {
                              return answer.fails == ending && !answer.says.empty();
                          }),
                          1)
                    << what << ": none that " << ending << ", with the line that the report says";
            }
        }
    }
}

// Both ends of a lesson live in one process, so the own number, key or address is at hand where the
// peer's is meant.
TEST_F(Lessons, KnowTheOwnNumberThatIsTakenForThePeers) {
    const std::set<std::string> lessons_that_exchange = {"02_memory_regions", "03_to_rts",
                                                         "05_write_read",     "07_atomics_lock",
                                                         "08_ud_multicast",   "13_kv_store"};
    for (const Exercise& lesson : lessons) {
        for (const Language language : {Language::kC, Language::kPython}) {
            if (!lesson.has(language) || !lessons_that_exchange.contains(lesson.name)) {
                continue;
            }
            const auto count = std::count_if(
                lesson.wrong.begin(), lesson.wrong.end(), [&](const WrongAnswer& answer) {
                    return answer.language == language && !answer.says.empty() &&
                           (answer.name.starts_with("own_") ||
                            answer.name.ends_with("_of_the_speaker"));
                });
            EXPECT_GE(count, 2) << lesson.name << std::string(ending_of(language));
        }
    }
}

// In each of its languages a lesson knows the answer that prints what is expected and does nothing.
TEST_F(Lessons, KnowTheAnswerThatOnlyPrints) {
    for (const Exercise& lesson : lessons) {
        for (const Language language : {Language::kC, Language::kPython}) {
            const bool is_known = std::any_of(
                lesson.wrong.begin(), lesson.wrong.end(), [&](const WrongAnswer& answer) {
                    return answer.language == language && answer.name.starts_with("only_prints");
                });
            EXPECT_EQ(is_known, lesson.has(language))
                << lesson.name << std::string(ending_of(language));
        }
    }
}

// Most rules of a lesson ask the trace; anybody can print the expected lines.
TEST_F(Lessons, AreJudgedByTheTrace) {
    for (const Exercise& lesson : lessons) {
        const auto printed = std::count_if(
            lesson.rubric.rules.begin(), lesson.rubric.rules.end(),
            [](const Rule& rule) { return std::holds_alternative<OutputRule>(rule.demand); });
        EXPECT_LT(2 * printed, std::ssize(lesson.rubric.rules)) << lesson.name;
    }
}

// Somebody who writes Python is not told to write C.
TEST_F(Lessons, AdviseInTheLanguageOfTheAnswer) {
    for (const Exercise& lesson : lessons) {
        if (!lesson.has(Language::kPython)) {
            continue;
        }
        std::vector<LocalText> texts = lesson.rubric.hints;
        for (const Rule& rule : lesson.rubric.rules) {
            texts.push_back(rule.hint);
            texts.push_back(rule.say);
            texts.push_back({rule.asks, rule.asks});
        }
        for (const LocalText& text : texts) {
            for (const char* words : {"ibv_", "->", "struct ", "&h", "NULL", "printf", " = {"}) {
                EXPECT_THAT(text.in(Language::kPython), testing::Not(testing::HasSubstr(words)))
                    << lesson.name;
            }
        }
    }
}

}  // namespace
}  // namespace simverbs::lab
