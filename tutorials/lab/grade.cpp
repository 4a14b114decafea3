#include "tutorials/lab/grade.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tutorials/lab/check.hpp"
#include "tutorials/lab/exercise.hpp"
#include "tutorials/lab/text.hpp"

namespace simverbs::lab {
namespace {

namespace fs = std::filesystem;

// Fails where the folder cannot be read.
fabric::Outcome<std::vector<std::string>> folders_in(const fs::path& folder) {
    std::error_code failure;
    std::error_code ignored;
    std::vector<std::string> names;
    for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
         entry.increment(failure)) {
        const std::string name = entry->path().filename().string();
        if (entry->is_directory(ignored) && !name.starts_with('.')) {
            names.push_back(name);
        }
    }
    if (failure) {
        return fabric::Failure(fmt::format("{}: {}", folder.string(), failure.message()));
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
    bool has_flat_answer = false;                   // in no folder of an exercise
    std::string obstacle;                           // why the folder cannot be read
};

bool has_answer(const fs::path& folder) {
    std::error_code missing;
    return fs::exists(folder / "exercise.c", missing) ||
           fs::exists(folder / "exercise.py", missing);
}

Student read_student(const std::string& class_folder, const std::string& name,
                     const std::vector<std::string>& exercises) {
    const fs::path home = fs::path(class_folder) / name;
    Student student{.name = name, .has_flat_answer = has_answer(home)};
    const auto folders = folders_in(home);
    if (!folders) {
        student.obstacle = folders.error();
        return student;
    }
    for (const std::string& folder : *folders) {
        const std::string meant = nearest_exercise(exercises, folder);
        if (meant == folder) {
            student.folders.push_back(folder);
        } else if (!meant.empty()) {
            student.misspelled.try_emplace(meant, folder);
        } else if (has_answer(home / folder)) {
            student.unknown.push_back(folder);
        }
    }
    return student;
}

struct Paper {
    const Student* student;
    const Exercise* exercise;
    fs::path home;               // of the student
    bool is_flat_right = false;  // home/exercise.c counts, too

    [[nodiscard]] fs::path folder() const { return home / exercise->name; }
    [[nodiscard]] std::string name() const { return student->name + "/" + exercise->name; }
};

// A row, or why there is none; both are empty after an interruption.
struct Row {
    std::string text;
    std::string obstacle;
};

Row row(const Paper& paper, std::uint64_t points, std::string_view failing, std::string_view seen) {
    return {.text = fmt::format("{},{},{},{},{},{}\n", csv_field(paper.student->name),
                                csv_field(paper.exercise->name), points,
                                paper.exercise->rubric.points(), csv_field(failing),
                                csv_field(printable(seen)))};
}

Row row_of_missing(const Paper& paper) {
    const auto misspelled = paper.student->misspelled.find(paper.exercise->name);
    std::error_code missing;
    return row(paper, 0, "not handed in",
               fs::is_directory(paper.folder(), missing)
                   ? fmt::format("no exercise.c or exercise.py in {}", paper.folder().string())
               : misspelled == paper.student->misspelled.end() ? std::string()
                                                               : misspelled->second + "?");
}

// Checks the answers to one exercise, at most one in each language; the better one counts.
Row row(const Paper& paper, const Toolbox& toolbox) {
    const Exercise& exercise = *paper.exercise;
    if (!paper.student->obstacle.empty()) {
        return {.obstacle = paper.student->obstacle};
    }
    const auto readable = folders_in(paper.folder());
    std::error_code missing;
    if (!readable && fs::is_directory(paper.folder(), missing)) {
        return {.obstacle = readable.error()};
    }
    std::vector<std::string> files = find_answers(exercise, paper.folder().string());
    if (files.empty() && paper.is_flat_right) {
        files = find_answers(exercise, paper.home.string());
    }
    std::optional<Checked> best;
    for (const std::string& file : files) {
        auto checked = check(exercise, toolbox, file, "");
        if (!checked || checked->is_interrupted) {
            return {.obstacle = checked ? std::string() : checked.error()};
        }
        if (!best || checked->points(exercise.rubric) > best->points(exercise.rubric)) {
            best = std::move(*checked);
        }
    }
    return best ? row(paper, best->points(exercise.rubric), best->first_failing(exercise.rubric),
                      best->seen_first())
                : row_of_missing(paper);
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
            fmt::format("{}: no STUDENT/NN_name folder of any exercise here; with --exercise NAME, "
                        "STUDENT/exercise.c is graded as well",
                        options.folder));
    }
    return exercises;
}

std::vector<std::string> warnings_of(const GradeOptions& options,
                                     const std::vector<Student>& students) {
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
        if (student.has_flat_answer && options.exercise.empty()) {
            warnings.push_back(
                fmt::format("the answer in {} itself is not graded: it lies in no "
                            "exercise's folder; --exercise NAME grades it",
                            student.name));
        }
    }
    return warnings;
}

// The rows of all papers, in their order.
std::vector<Row> grade_all(const std::vector<Paper>& papers, const Toolbox& toolbox,
                           unsigned jobs) {
    std::vector<Row> rows(papers.size());
    std::atomic<std::size_t> next{0};
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < std::max(1U, jobs); ++i) {
        workers.emplace_back([&] {
            for (std::size_t at = next++; at < papers.size(); at = next++) {
                rows[at] = row(papers[at], toolbox);
                if (rows[at].text.empty() && rows[at].obstacle.empty()) {
                    return;
                }
            }
        });
    }
    workers.clear();
    return rows;
}

// "REASON; not graded: ada/03_to_rts, bob/03_to_rts", in the order of the papers.
std::vector<std::string> obstacles_of(const std::vector<Paper>& papers,
                                      const std::vector<Row>& rows) {
    std::vector<std::string> reasons;
    std::map<std::string, std::string> names;
    for (std::size_t i = 0; i < papers.size(); ++i) {
        if (rows[i].obstacle.empty()) {
            continue;
        }
        std::string& list = names[rows[i].obstacle];
        if (list.empty()) {
            reasons.push_back(rows[i].obstacle);
        }
        list += (list.empty() ? "" : ", ") + papers[i].name();
    }
    for (std::string& reason : reasons) {
        reason += "; not graded: " + names[reason];
    }
    return reasons;
}

}  // namespace

fabric::Outcome<Grades> grade(const GradeOptions& options, const Toolbox& toolbox) {
    const auto folders = folders_in(options.folder);
    if (!folders) {
        return fabric::Failure(folders.error());
    }
    if (folders->empty()) {
        return fabric::Failure(fmt::format("{}: no folder of a student here", options.folder));
    }
    const std::vector<std::string> names = exercise_names(options.exercises);
    std::vector<Student> students;
    students.reserve(folders->size());
    for (const std::string& folder : *folders) {
        students.push_back(read_student(options.folder, folder, names));
    }
    const auto exercises = find_exercises(options, students, names);
    if (!exercises) {
        return fabric::Failure(exercises.error());
    }
    std::vector<Paper> papers;
    for (const Student& student : students) {
        for (const Exercise& exercise : *exercises) {
            papers.push_back({&student, &exercise, fs::path(options.folder) / student.name,
                              !options.exercise.empty()});
        }
    }
    const std::vector<Row> rows = grade_all(papers, toolbox, options.jobs);
    Grades grades{.csv = "student,exercise,points,of,first failing rule,seen\n",
                  .warnings = warnings_of(options, students),
                  .obstacles = obstacles_of(papers, rows)};
    for (const Row& each : rows) {
        grades.csv += each.text;
        grades.ungraded += each.text.empty() ? 1 : 0;
    }
    return grades;
}

}  // namespace simverbs::lab
