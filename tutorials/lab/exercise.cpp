#include "tutorials/lab/exercise.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric/core/nearest.hpp"

#include "tutorials/lab/text.hpp"

namespace simverbs::lab {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRubricFile = "/rubric.yaml";
constexpr std::string_view kWrongFile = "/wrong.yaml";
constexpr std::string_view kHintsFile = "/.hints";
constexpr std::string_view kSolvedFile = "/.solved";

bool is_number(std::string_view word) {
    return !word.empty() &&
           std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

unsigned number_of(std::string_view digits) {
    unsigned number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
}

// "03" and "to_rts".
bool is_meant(std::string_view name, std::string_view word) {
    const std::size_t end = name.find('_');
    if (name == word || end == std::string_view::npos) {
        return name == word;
    }
    return is_number(word) ? number_of(name.substr(0, end)) == number_of(word)
                           : name.substr(end + 1) == word;
}

fabric::Outcome<Exercise> read_exercise(const std::string& folder) {
    Exercise exercise{.name = fs::path(folder).filename().string(), .folder = folder};
    const std::string file = folder + std::string(kRubricFile);
    fabric::yaml::Errors errors(file);
    auto rubric = read_rubric(read_file(file).value_or(""), errors);
    if (!rubric) {
        return fabric::Failure(errors.text());
    }
    exercise.rubric = std::move(*rubric);
    // A topology in a file lies beside the rubric.
    if (fs::exists(folder + "/" + exercise.rubric.topology)) {
        exercise.rubric.topology = fs::absolute(folder + "/" + exercise.rubric.topology).string();
    }
    const std::string wrong_file = folder + std::string(kWrongFile);
    if (const auto text = read_file(wrong_file)) {
        fabric::yaml::Errors wrong_errors(wrong_file);
        auto wrong = read_wrong_answers(*text, exercise.rubric, wrong_errors);
        if (!wrong) {
            return fabric::Failure(wrong_errors.text());
        }
        exercise.wrong = std::move(*wrong);
    }
    return exercise;
}

fabric::Outcome<void> copy_new(const fs::path& from, const fs::path& to) {
    std::error_code failure;
    fs::copy_file(from, to, failure);
    if (failure) {
        std::error_code missing;
        fs::remove(to, missing);  // the disk is full, say: a part of it is worse than nothing
        return fabric::Failure(fmt::format("{}: {}", to.string(), failure.message()));
    }
    return {};
}

}  // namespace

bool Exercise::has(Language language) const {
    return fs::exists(file("exercise", language));
}

std::optional<std::string> read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        return std::nullopt;
    }
    return std::string(std::istreambuf_iterator<char>(in), {});
}

bool write_file(const std::string& path, std::string_view text) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << text << std::flush;
    return out.good();
}

std::vector<std::string> exercise_names(const std::string& tutorials) {
    std::vector<std::string> names;
    std::error_code failure;
    for (const auto& entry : fs::directory_iterator(tutorials, failure)) {
        if (fs::exists(entry.path().string() + std::string(kRubricFile))) {
            names.push_back(entry.path().filename().string());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string nearest_exercise(const std::vector<std::string>& names, std::string_view word) {
    const auto found = std::find_if(names.begin(), names.end(), [word](const std::string& name) {
        return is_meant(name, word) || (number_of(name) > 0 && number_of(name) == number_of(word));
    });
    if (found != names.end()) {
        return *found;
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    return std::string(fabric::nearest(word, views).value_or(""));
}

fabric::Outcome<Exercise> find_exercise(const std::string& tutorials, std::string_view word) {
    const std::vector<std::string> names = exercise_names(tutorials);
    if (names.empty()) {
        return fabric::Failure(
            fmt::format("{}: no exercises here (folders with a rubric.yaml)", tutorials));
    }
    const auto found = std::find_if(names.begin(), names.end(), [word](const std::string& name) {
        return is_meant(name, word);
    });
    if (found == names.end()) {
        const std::vector<std::string_view> views(names.begin(), names.end());
        const std::string meant = fabric::suggestion(word, views);
        return fabric::Failure(fmt::format("no exercise \"{}\"{}{} there are: {}", word, meant,
                                           meant.empty() ? ";" : "", fmt::join(names, ", ")));
    }
    return read_exercise(tutorials + "/" + *found);
}

fabric::Outcome<void> start(const Exercise& exercise, Language language, const std::string& into) {
    const fs::path folder = fs::path(into) / exercise.name;
    const fs::path answer = folder / ("exercise" + std::string(ending_of(language)));
    if (!exercise.has(language)) {
        return fabric::Failure(fmt::format("{} is not there in {}", exercise.name,
                                           language == Language::kC ? "C" : "Python"));
    }
    if (fs::exists(answer)) {
        return fabric::Failure(fmt::format(
            "{} is there already and stays as it is; move it away, or name another folder",
            answer.string()));
    }
    std::error_code failure;
    fs::create_directories(folder, failure);
    if (failure) {
        return fabric::Failure(fmt::format("{}: {}", folder.string(), failure.message()));
    }
    if (const fs::path readme = folder / "README.md"; !fs::exists(readme)) {
        if (auto copied = copy_new(exercise.folder + "/README.md", readme); !copied) {
            return copied;
        }
    }
    return copy_new(exercise.file("exercise", language), answer);  // last: with it all is there
}

std::vector<std::string> find_answers(const Exercise& exercise, const std::string& folder) {
    std::vector<std::string> found;
    std::error_code missing;
    for (const fs::path& place : {fs::path(folder) / exercise.name, fs::path(folder)}) {
        for (const Language language : {Language::kC, Language::kPython}) {
            const fs::path file = place / ("exercise" + std::string(ending_of(language)));
            if (fs::is_regular_file(file, missing)) {
                found.push_back(file.string());
            }
        }
        if (!found.empty()) {
            break;
        }
    }
    return found;
}

fabric::Outcome<std::string> find_answer(const Exercise& exercise, const std::string& folder) {
    const std::vector<std::string> found = find_answers(exercise, folder);
    if (found.empty()) {
        return fabric::Failure(fmt::format(
            "no exercise.c or exercise.py in {0}/{1} or in {0}; `simverbs lab start {1}` "
            "gives you one",
            folder, exercise.name));
    }
    if (found.size() > 1) {
        return fabric::Failure(
            fmt::format("{0} and {1} are both there; name one of them: "
                        "`simverbs lab check {2} {0}`",
                        found[0], found[1], exercise.name.substr(0, exercise.name.find('_'))));
    }
    return found[0];
}

std::string next_hint(const Exercise& exercise, const std::string& folder, Language language) {
    const std::vector<LocalText>& hints = exercise.rubric.hints;
    if (hints.empty()) {
        return "There are no hints for this exercise; its README says what to do.\n";
    }
    const fs::path place = fs::path(folder) / exercise.name;
    const std::string file =
        (fs::is_directory(place) ? place.string() : folder) + std::string(kHintsFile);
    const std::size_t given = number_of(read_file(file).value_or("0"));
    const std::size_t now = given % hints.size();
    const std::string hint = wrapped(
        fmt::format("Hint {} of {}: {}", now + 1, hints.size(), hints[now].in(language)), "");
    return write_file(file, std::to_string(given + 1))
               ? hint
               : hint + fmt::format("{} cannot be written, so the next hint will be this one.\n",
                                    file);
}

bool has_every_hint(const Exercise& exercise, const std::string& folder) {
    const std::string file = folder + std::string(kHintsFile);
    return number_of(read_file(file).value_or("0")) >= exercise.rubric.hints.size();
}

Progress progress(const std::string& folder, const std::string& name) {
    const std::string place = (fs::path(folder) / name).string();
    if (fs::exists(place + std::string(kSolvedFile))) {
        return Progress::kSolved;
    }
    const bool is_begun = fs::exists(place + "/exercise.c") || fs::exists(place + "/exercise.py");
    return is_begun ? Progress::kBegun : Progress::kNone;
}

bool note_solved(const std::string& answer) {
    const fs::path file(answer);
    return write_file((file.parent_path() / kSolvedFile.substr(1)).string(),
                      file.filename().string() + "\n");
}

fabric::Outcome<std::string> text_of(const Exercise& exercise, const WrongAnswer& answer) {
    const std::string file = exercise.file("solution", answer.language);
    std::string text = read_file(file).value_or("");
    for (const auto& [replace, by] : answer.changes) {
        const std::size_t at = text.find(replace);
        if (at == std::string::npos || text.find(replace, at + 1) != std::string::npos) {
            return fabric::Failure(fmt::format("wrong answer {}: {} times in {}: {}", answer.name,
                                               at == std::string::npos ? "0" : "several", file,
                                               replace));
        }
        text.replace(at, replace.size(), by);
    }
    return text;
}

}  // namespace simverbs::lab
