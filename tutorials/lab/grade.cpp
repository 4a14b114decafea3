#include "tutorials/lab/grade.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tutorials/lab/check.hpp"
#include "tutorials/lab/exercise.hpp"
#include "tutorials/lab/text.hpp"

namespace simverbs::lab {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> folders_in(const std::string& folder, std::error_code& failure) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder, failure)) {
        const std::string name = entry.path().filename().string();
        if (entry.is_directory() && !name.starts_with('.')) {
            names.push_back(name);
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

struct Paper {
    std::string student;
    const Exercise* exercise;
    std::string folder;
};

std::string row(const Paper& paper, const Toolbox& toolbox) {
    const Exercise& exercise = *paper.exercise;
    std::string error;
    std::string failing = "not handed in";
    std::string seen;
    std::uint64_t points = 0;
    if (const auto file = find_answer(exercise, paper.folder, error)) {
        const Checked checked = check(exercise, toolbox, *file, "");
        points = checked.points(exercise.rubric);
        failing = checked.first_failing(exercise.rubric);
        seen = checked.seen_first();
    } else if (fs::is_directory(paper.folder)) {
        seen = error;
    }
    return fmt::format("{},{},{},{},{},{}\n", csv_field(paper.student), csv_field(exercise.name),
                       points, exercise.rubric.points(), csv_field(failing), csv_field(seen));
}

// Which of the exercises some student has handed in, or the one that was asked for.
bool find_exercises(const GradeOptions& options, const std::vector<std::string>& students,
                    std::vector<Exercise>& exercises, std::string& error) {
    std::vector<std::string> wanted{options.exercise};
    if (options.exercise.empty()) {
        wanted = exercise_names(options.exercises);
        std::erase_if(wanted, [&](const std::string& name) {
            return std::none_of(students.begin(), students.end(), [&](const std::string& student) {
                return fs::is_directory(fs::path(options.folder) / student / name);
            });
        });
    }
    for (const std::string& name : wanted) {
        auto exercise = find_exercise(options.exercises, name, error);
        if (!exercise) {
            return false;
        }
        exercises.push_back(std::move(*exercise));
    }
    if (exercises.empty()) {
        error = fmt::format("{}: no STUDENT/NN_name folder of any exercise here", options.folder);
    }
    return !exercises.empty();
}

}  // namespace

std::optional<std::string> grade(const GradeOptions& options, const Toolbox& toolbox,
                                 std::string& error) {
    std::error_code failure;
    const std::vector<std::string> students = folders_in(options.folder, failure);
    if (failure) {
        error = fmt::format("{}: {}", options.folder, failure.message());
        return std::nullopt;
    }
    std::vector<Exercise> exercises;
    if (!find_exercises(options, students, exercises, error)) {
        return std::nullopt;
    }
    std::vector<Paper> papers;
    for (const std::string& student : students) {
        for (const Exercise& exercise : exercises) {
            papers.push_back({student, &exercise,
                              (fs::path(options.folder) / student / exercise.name).string()});
        }
    }
    std::vector<std::string> rows(papers.size());
    std::atomic<std::size_t> next{0};
    {
        std::vector<std::jthread> workers;
        for (unsigned i = 0; i < std::max(1U, options.jobs); ++i) {
            workers.emplace_back([&] {
                for (std::size_t at = next++; at < papers.size(); at = next++) {
                    rows[at] = row(papers[at], toolbox);
                }
            });
        }
    }
    std::string csv = "student,exercise,points,of,first failing rule,seen\n";
    for (const std::string& each : rows) {
        csv += each;
    }
    return csv;
}

}  // namespace simverbs::lab
