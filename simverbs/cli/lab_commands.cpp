#include "simverbs/cli/lab_commands.hpp"

#include <exception>
#include <filesystem>

#include <fmt/format.h>

#include "simverbs/cli/launch.hpp"

#include "tutorials/lab/check.hpp"
#include "tutorials/lab/grade.hpp"

namespace simverbs::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kFailed = 1;

int complain(std::string_view what) {
    fmt::print(stderr, "simverbs lab: {}\n", what);
    return kFailed;
}

// As built, and as installed, in the same place beside this program.
std::string tutorials_folder() {
    return folder_of_this_program() + "/../share/simverbs/tutorials";
}

lab::Toolbox toolbox() {
    const std::string libraries = library_folder();
    return {fs::weakly_canonical(tutorials_folder()).string(),
            {fs::weakly_canonical(folder_of_this_program() + "/../include").string()},
            {libraries, fs::weakly_canonical(libraries + "/..").string()}};
}

lab::Language language(bool is_python) {
    return is_python ? lab::Language::kPython : lab::Language::kC;
}

}  // namespace

LabCommands::LabCommands(CLI::App& app)
    : lab_(app.add_subcommand("lab", "Learn verbs: exercises that check themselves")) {
    lab_->require_subcommand(1);
    lab_->add_option("--exercises", exercises_,
                     "folder of exercises; default: those that come with simverbs");
    lab_->fallthrough();
    add_words_of_students();
    add_words_of_teachers();
}

CLI::App* LabCommands::add(const char* name, const char* help) {
    CLI::App* const command = lab_->add_subcommand(name, help);
    command->add_option("exercise", which_, "its number or name")->required();
    return command;
}

void LabCommands::add_words_of_students() {
    list_ = lab_->add_subcommand("list", "What there is to learn");
    start_ = add("start", "Begin an exercise: puts its files into ./NN_name");
    check_ = add("check", "Compile, run and judge your answer, and draw what happened");
    hint_ = add("hint", "The next hint");
    solution_ = add("solution", "Print a solution");
    for (CLI::App* each : {start_, check_, hint_}) {
        each->add_option("folder", place_, "that holds ./NN_name, or your file; default: this one");
    }
    for (CLI::App* each : {start_, solution_}) {
        each->add_flag("--python", python_, "in Python (pyverbs)");
    }
    check_->add_flag("--no-pictures", without_pictures_, "judge only");
}

void LabCommands::add_words_of_teachers() {
    grade_ = lab_->add_subcommand("grade", "Check a class: DIR/STUDENT/NN_name/exercise.c, as CSV");
    grade_->add_option("folder", place_, "of the students' folders")->required();
    grade_->add_option("--exercise", which_, "this one only");
    grade_->add_option("-o,--output", output_, "write the CSV to this file");
    grade_->add_option("-j,--jobs", jobs_, "so many at once")->check(CLI::Range(1, 256));
    prove_ = add("prove", "Whether an exercise is sound: starter, solution, wrong answers");
    prove_->add_flag("--no-wrong", without_wrong_, "starter and solution only");
    rubric_ = lab_->add_subcommand("rubric", "The keys of a rubric.yaml");
}

int LabCommands::run() {
    if (library_folder().empty()) {
        return complain("the library libsimverbs.so is not found beside this program");
    }
    try {
        return *list_       ? list()
               : *start_    ? start()
               : *check_    ? check()
               : *hint_     ? hint()
               : *solution_ ? solution()
               : *grade_    ? grade()
               : *prove_    ? prove()
                            : (fmt::print("{}", lab::rubric_reference()), 0);
    } catch (const std::exception& error) {  // no process, no temporary folder
        return complain(error.what());
    }
}

std::string LabCommands::exercises() const {
    return exercises_.empty() ? toolbox().tutorials : exercises_;
}

std::optional<lab::Exercise> LabCommands::exercise() const {
    std::string error;
    auto found = lab::find_exercise(exercises(), which_, error);
    if (!found) {
        complain(error);
    }
    return found;
}

int LabCommands::list() const {
    const auto names = lab::exercise_names(exercises());
    for (const std::string& name : names) {
        std::string error;
        const auto exercise = lab::find_exercise(exercises(), name, error);
        if (!exercise) {
            return complain(error);
        }
        fmt::print("{:<24} {:<9} {}\n", name,
                   exercise->has(lab::Language::kPython) ? "C, Python" : "C",
                   exercise->rubric.title);
    }
    return names.empty() ? complain(fmt::format("{}: no exercises here", exercises())) : 0;
}

int LabCommands::start() const {
    const auto chosen = exercise();
    std::string error;
    if (!chosen) {
        return kFailed;
    }
    if (!lab::start(*chosen, language(python_), place_, error)) {
        return complain(error);
    }
    const std::string folder = (fs::path(place_) / chosen->name).lexically_normal().string();
    fmt::print(
        "{0}/README.md says what it is about; write into {0}/exercise{1} where it says YOUR TURN,\n"
        "then: simverbs lab check {2}{3}\n",
        folder, lab::ending_of(language(python_)), which_, place_ == "." ? "" : " " + place_);
    return 0;
}

int LabCommands::check() const {
    const auto chosen = exercise();
    if (!chosen) {
        return kFailed;
    }
    std::string error;
    const std::optional<std::string> file =
        fs::is_regular_file(place_) ? place_ : lab::find_answer(*chosen, place_, error);
    if (!file) {
        return complain(error);
    }
    const std::string beside = fs::path(*file).parent_path().string();
    const lab::Checked checked = lab::check(
        *chosen, toolbox(), *file, without_pictures_ ? "" : (beside.empty() ? "." : beside));
    fmt::print("{}", lab::report(*chosen, checked));
    return checked.passed(chosen->rubric) ? 0 : kFailed;
}

int LabCommands::hint() const {
    const auto chosen = exercise();
    if (!chosen) {
        return kFailed;
    }
    fmt::print("{}", lab::next_hint(*chosen, place_));
    return 0;
}

int LabCommands::solution() const {
    const auto chosen = exercise();
    if (!chosen) {
        return kFailed;
    }
    const std::string file = chosen->file("solution", language(python_));
    const auto text = lab::read_file(file);
    if (!text) {
        return complain(fmt::format("there is no {}", file));
    }
    fmt::print("{}", *text);
    return 0;
}

int LabCommands::grade() const {
    std::string error;
    const auto csv = lab::grade({place_, exercises(), which_, jobs_}, toolbox(), error);
    if (!csv) {
        return complain(error);
    }
    if (output_.empty()) {
        fmt::print("{}", *csv);
        return 0;
    }
    return lab::write_file(output_, *csv) ? 0
                                          : complain(fmt::format("{} cannot be written", output_));
}

int LabCommands::prove() const {
    const auto chosen = exercise();
    if (!chosen) {
        return kFailed;
    }
    std::size_t failed = 0;
    fmt::print("{}", lab::prove(*chosen, toolbox(), !without_wrong_, failed));
    return failed == 0 ? 0 : kFailed;
}

}  // namespace simverbs::cli
