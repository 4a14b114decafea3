#include "tutorials/lab/grade.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
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

// The folders that a student handed in, with those whose names are misspelled.
struct Student {
    std::string name;
    std::vector<std::string> folders;               // that name an exercise
    std::map<std::string, std::string> misspelled;  // by the name that is likely meant
    std::vector<std::string> unknown;               // with an answer for no exercise at all
};

Student read_student(const std::string& class_folder, const std::string& name,
                     const std::vector<std::string>& exercises) {
    Student student{.name = name};
    const fs::path home = fs::path(class_folder) / name;
    std::error_code ignored;
    for (const std::string& folder : folders_in(home.string(), ignored)) {
        const std::string meant = nearest_exercise(exercises, folder);
        const bool has_answer =
            fs::exists(home / folder / "exercise.c") || fs::exists(home / folder / "exercise.py");
        if (meant == folder) {
            student.folders.push_back(folder);
        } else if (!meant.empty()) {
            student.misspelled.try_emplace(meant, folder);
        } else if (has_answer) {
            student.unknown.push_back(folder);
        }
    }
    return student;
}

struct Paper {
    const Student* student;
    const Exercise* exercise;
    std::string folder;
};

std::string row(const Paper& paper, std::uint64_t points, std::string_view failing,
                std::string_view seen) {
    return fmt::format("{},{},{},{},{},{}\n", csv_field(paper.student->name),
                       csv_field(paper.exercise->name), points, paper.exercise->rubric.points(),
                       csv_field(failing), csv_field(seen));
}

// "" when the check was interrupted.
std::string row(const Paper& paper, const Toolbox& toolbox) {
    const Exercise& exercise = *paper.exercise;
    const auto file = find_answer(exercise, paper.folder);
    if (file) {
        const Checked checked = check(exercise, toolbox, *file, "");
        return checked.is_interrupted
                   ? std::string()
                   : row(paper, checked.points(exercise.rubric),
                         checked.first_failing(exercise.rubric), checked.seen_first());
    }
    const auto misspelled = paper.student->misspelled.find(exercise.name);
    return row(paper, 0, "not handed in",
               fs::is_directory(paper.folder)                  ? file.error()
               : misspelled == paper.student->misspelled.end() ? std::string()
                                                               : misspelled->second + "?");
}

// Which of the exercises some student has handed in, or the one that was asked for.
fabric::Outcome<std::vector<Exercise>> find_exercises(const GradeOptions& options,
                                                      const std::vector<Student>& students,
                                                      const std::vector<std::string>& names) {
    std::vector<std::string> wanted{options.exercise};
    if (options.exercise.empty()) {
        wanted = names;
        std::erase_if(wanted, [&students](const std::string& name) {
            return std::none_of(students.begin(), students.end(), [&name](const Student& student) {
                return student.misspelled.contains(name) ||
                       std::find(student.folders.begin(), student.folders.end(), name) !=
                           student.folders.end();
            });
        });
    }
    std::vector<Exercise> exercises;
    for (const std::string& name : wanted) {
        auto exercise = find_exercise(options.exercises, name);
        if (!exercise) {
            return fabric::Failure(std::move(exercise.error()));
        }
        exercises.push_back(std::move(*exercise));
    }
    if (exercises.empty()) {
        return fabric::Failure(
            fmt::format("{}: no STUDENT/NN_name folder of any exercise here", options.folder));
    }
    return exercises;
}

std::vector<std::string> warnings_of(const std::vector<Student>& students) {
    std::vector<std::string> warnings;
    for (const Student& student : students) {
        for (const auto& [meant, folder] : student.misspelled) {
            warnings.push_back(
                fmt::format("{}/{} is not graded: no exercise has that name; did you mean \"{}\"?",
                            student.name, folder, meant));
        }
        for (const std::string& folder : student.unknown) {
            warnings.push_back(fmt::format("{}/{} is not graded: no exercise has that name",
                                           student.name, folder));
        }
    }
    return warnings;
}

// The rows of all papers, in their order; "" for those that an interruption left out.
std::vector<std::string> grade_all(const std::vector<Paper>& papers, const Toolbox& toolbox,
                                   unsigned jobs) {
    std::vector<std::string> rows(papers.size());
    std::atomic<std::size_t> next{0};
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < std::max(1U, jobs); ++i) {
        workers.emplace_back([&] {
            for (std::size_t at = next++; at < papers.size(); at = next++) {
                rows[at] = row(papers[at], toolbox);
                if (rows[at].empty()) {
                    return;
                }
            }
        });
    }
    workers.clear();
    return rows;
}

}  // namespace

fabric::Outcome<Grades> grade(const GradeOptions& options, const Toolbox& toolbox) {
    std::error_code failure;
    const std::vector<std::string> folders = folders_in(options.folder, failure);
    if (failure) {
        return fabric::Failure(fmt::format("{}: {}", options.folder, failure.message()));
    }
    const std::vector<std::string> names = exercise_names(options.exercises);
    std::vector<Student> students;
    students.reserve(folders.size());
    for (const std::string& folder : folders) {
        students.push_back(read_student(options.folder, folder, names));
    }
    const auto exercises = find_exercises(options, students, names);
    if (!exercises) {
        return fabric::Failure(exercises.error());
    }
    std::vector<Paper> papers;
    for (const Student& student : students) {
        for (const Exercise& exercise : *exercises) {
            papers.push_back({&student, &exercise,
                              (fs::path(options.folder) / student.name / exercise.name).string()});
        }
    }
    Grades grades{.csv = "student,exercise,points,of,first failing rule,seen\n",
                  .warnings = warnings_of(students)};
    for (const std::string& each : grade_all(papers, toolbox, options.jobs)) {
        grades.csv += each;
        grades.ungraded += each.empty() ? 1 : 0;
    }
    return grades;
}

}  // namespace simverbs::lab
