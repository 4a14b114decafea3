// Exercises as folders: NN_name with README.md, rubric.yaml, exercise.c, solution.c, wrong.yaml,
// and for some exercise.py and solution.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/outcome.hpp"

#include "tutorials/lab/rubric.hpp"

namespace simverbs::lab {

struct Exercise {
    std::string name;    // "03_to_rts"
    std::string folder;  // where it lies
    Rubric rubric;
    std::vector<WrongAnswer> wrong;

    [[nodiscard]] std::string file(std::string_view stem, Language language) const {
        return folder + "/" + std::string(stem) + std::string(ending_of(language));
    }
    [[nodiscard]] bool has(Language language) const;
};

// Names of the exercises in a folder, sorted.
std::vector<std::string> exercise_names(const std::string& tutorials);

// The name that a misspelled `word` may have meant, by its number or by its letters; "" when there
// is none.
std::string nearest_exercise(const std::vector<std::string>& names, std::string_view word);

// The exercise that `word` means: "3", "03", "03_to_rts", "to_rts". Fails where there is none, or
// where something is wrong with a file of it.
fabric::Outcome<Exercise> find_exercise(const std::string& tutorials, std::string_view word);

// Copies what a student works on to `into`/NAME, and the README. Never overwrites: fails when there
// is something already.
fabric::Outcome<void> start(const Exercise& exercise, Language language, const std::string& into);

// The student's files in `folder`, or in its subfolder of the exercise's name: none, or at most one
// of each language, C first.
std::vector<std::string> find_answers(const Exercise& exercise, const std::string& folder);

// The student's file in `folder`, or in its subfolder of the exercise's name; the one that there
// is. Fails when there is none, or one of each language.
fabric::Outcome<std::string> find_answer(const Exercise& exercise, const std::string& folder);

// One more hint each time, counted in a file `.hints` of the exercise's folder in `folder`, or of
// that itself; from the first again after the last.
std::string next_hint(const Exercise& exercise, const std::string& folder, Language language);
// Returns true if all hints were asked for, by the file `.hints` beside an answer.
bool has_every_hint(const Exercise& exercise, const std::string& folder);

// How far a student is with an exercise, by the files in `folder`/NAME.
enum class Progress : std::uint8_t { kNone, kBegun, kSolved };
Progress progress(const std::string& folder, const std::string& name);
// Notes it in a file `.solved` beside the answer. Returns false where that cannot be written.
bool note_solved(const std::string& answer);

// The text of a wrong answer. Fails when what it replaces is not there exactly once.
fabric::Outcome<std::string> text_of(const Exercise& exercise, const WrongAnswer& answer);

// Nothing when the file cannot be read.
std::optional<std::string> read_file(const std::string& path);
bool write_file(const std::string& path, std::string_view text);

}  // namespace simverbs::lab
