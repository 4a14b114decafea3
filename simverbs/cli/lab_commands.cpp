#include "simverbs/cli/lab_commands.hpp"

#include <array>
#include <chrono>
#include <exception>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fabric/core/counted.hpp"
#include "fabric/core/shell_word.hpp"

#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/installed_files.hpp"
#include "simverbs/cli/launch.hpp"
#include "simverbs/cli/output_option.hpp"
#include "simverbs/cli/world_options.hpp"

#include "tutorials/lab/check.hpp"
#include "tutorials/lab/grade.hpp"
#include "tutorials/lab/prove.hpp"

namespace simverbs::cli {
namespace {

namespace fs = std::filesystem;

int complain(const std::string& what) {
    return cli::complain(what, kUsage);
}

std::string tutorials_here() {
    return installed_folder("tutorials").string();
}

constexpr std::array<std::string_view, 3> kMarks = {" ", "·", "✔"};  // by lab::Progress
constexpr std::array<std::string_view, 3> kProgress = {"none", "begun", "solved"};  // likewise

lab::Language language(bool is_python) {
    return is_python ? lab::Language::kPython : lab::Language::kC;
}

}  // namespace

LabCommands::LabCommands(CLI::App& app)
    : lab_(app.add_subcommand("lab", "Learn verbs: exercises that check themselves")) {
    lab_->require_subcommand(1);
    lab_->add_option("--exercises", exercises_, "folder of exercises")
        ->type_name("DIR")
        ->default_str("those that come with simverbs");
    lab_->fallthrough();
    add_words_of_students();
    add_words_of_teachers();
}

CLI::App* LabCommands::add(const char* name, const char* help) {
    CLI::App* const command = lab_->add_subcommand(name, help);
    command->add_option("exercise", which_, "its number or name")
        ->type_name("EXERCISE")
        ->required();
    return command;
}

void LabCommands::add_time_limit(CLI::App& command) {
    add_limit(command, "--time-limit", time_limit_, "how long a run may take", "the exercise's");
}

void LabCommands::add_words_of_students() {
    list_ = lab_->add_subcommand("list", "What there is to learn, and what you have solved");
    list_->add_option("folder", place_, "that holds your ./NN_name folders")
        ->type_name("DIR")
        ->check(CLI::ExistingDirectory);
    list_->add_flag("--json", as_json_, "for programs");
    start_ = add("start", "Begin an exercise: puts its files into ./NN_name");
    check_ = add("check", "Compile, run and judge your answer, and draw what happened");
    watch_ = add("watch", "Check your answer at every save, until Ctrl-C");
    hint_ = add("hint", "The next hint");
    solution_ = add("solution", "Print a solution");
    for (CLI::App* each : {start_, check_, watch_, hint_}) {
        each->add_option("folder", place_, "that holds ./NN_name, or your file")->type_name("DIR");
    }
    for (CLI::App* each : {start_, hint_, solution_}) {
        each->add_flag("--python", python_, "in Python (pyverbs)");
    }
    for (CLI::App* each : {check_, watch_}) {
        each->add_flag("--no-pictures", without_pictures_, "judge only");
        add_time_limit(*each);
    }
}

void LabCommands::add_words_of_teachers() {
    grade_ = lab_->add_subcommand("grade", "Check a class: DIR/STUDENT/NN_name/exercise.c, as CSV");
    grade_->add_option("folder", place_, "of the students' folders")->type_name("DIR")->required();
    grade_->add_option("--exercise", which_, "this one only")
        ->type_name("EXERCISE")
        ->default_str("all");
    add_output(*grade_, output_, "write the CSV to FILE");
    grade_->add_option("-j,--jobs", jobs_, "so many at once")->check(CLI::Range(1, 256));
    add_time_limit(*grade_);
    prove_ = add("prove", "Whether an exercise is sound: starter, solution, wrong answers");
    prove_->add_flag("--no-wrong", without_wrong_, "starter and solution only");
    rubric_ = lab_->add_subcommand("rubric", "The keys of a rubric.yaml");
}

int LabCommands::run() {
    if (library_folder().empty()) {
        return cli::complain("the library libsimverbs.so is not found beside this program",
                             kFailed);
    }
    try {
        return *list_       ? list()
               : *start_    ? start()
               : *check_    ? check()
               : *watch_    ? watch()
               : *hint_     ? hint()
               : *solution_ ? solution()
               : *grade_    ? grade()
               : *prove_    ? prove()
                            : (fmt::print("{}", lab::rubric_reference()), 0);
    } catch (const std::exception& error) {  // no descriptor, say
        return complain(error.what());
    }
}

std::string LabCommands::exercises() const {
    return exercises_.empty() ? tutorials_here() : exercises_;
}

lab::Toolbox LabCommands::toolbox(const Interruption& interruption) const {
    const std::string libraries = library_folder();
    return {tutorials_here(),
            {fs::weakly_canonical(folder_of_this_program() + "/../include").string()},
            {libraries, fs::weakly_canonical(libraries + "/..").string()},
            time_limit_,
            interruption.descriptor()};
}

std::optional<lab::Exercise> LabCommands::exercise() const {
    auto found = lab::find_exercise(exercises(), which_);
    if (!found) {
        complain(found.error());
        return std::nullopt;
    }
    return std::move(*found);
}

std::optional<std::string> LabCommands::answer(const lab::Exercise& exercise) const {
    if (fs::is_regular_file(place_)) {
        return place_;
    }
    auto file = lab::find_answer(exercise, place_);
    if (!file) {
        complain(file.error());
        return std::nullopt;
    }
    return std::move(*file);
}

int LabCommands::list_as_json() const {
    nlohmann::ordered_json listed = nlohmann::ordered_json::array();
    for (const std::string& name : lab::exercise_names(exercises())) {
        const auto exercise = lab::find_exercise(exercises(), name);
        if (!exercise) {
            return complain(exercise.error());
        }
        nlohmann::ordered_json languages = {"C"};
        if (exercise->has(lab::Language::kPython)) {
            languages.push_back("Python");
        }
        const auto progress = static_cast<std::size_t>(lab::progress(place_, name));
        listed.push_back({{"exercise", name},
                          {"title", exercise->rubric.title},
                          {"languages", std::move(languages)},
                          {"progress", kProgress[progress]}});
    }
    fmt::print("{}\n", listed.dump());
    return kPassed;
}

int LabCommands::list() const {
    if (as_json_) {
        return list_as_json();
    }
    const auto names = lab::exercise_names(exercises());
    std::size_t solved = 0;
    std::string next;
    for (const std::string& name : names) {
        const auto exercise = lab::find_exercise(exercises(), name);
        if (!exercise) {
            return complain(exercise.error());
        }
        const lab::Progress progress = lab::progress(place_, name);
        solved += progress == lab::Progress::kSolved ? 1 : 0;
        if (next.empty() && progress != lab::Progress::kSolved) {
            next = fmt::format("{} {}", progress == lab::Progress::kBegun ? "check" : "start",
                               name.substr(0, name.find('_')));
        }
        fmt::print("{} {:<26} {:<9} {}\n", kMarks[static_cast<std::size_t>(progress)], name,
                   exercise->has(lab::Language::kPython) ? "C, Python" : "C",
                   exercise->rubric.title);
    }
    if (names.empty()) {
        return complain(fmt::format("{}: no exercises here", exercises()));
    }
    fmt::print("\n{} of {} solved in {} (✔ solved, · begun).{}\n", solved, names.size(),
               place_ == "." ? "this folder" : place_,
               next.empty() ? "" : fmt::format(" Next: simverbs lab {}", next));
    return 0;
}

int LabCommands::start() const {
    const auto chosen = exercise();
    if (!chosen) {
        return kUsage;
    }
    const auto started = lab::start(*chosen, language(python_), place_);
    if (!started) {
        return complain(started.error());
    }
    const std::string folder = (fs::path(place_) / chosen->name).lexically_normal().string();
    const std::string file =
        fmt::format("{}/exercise{}", folder, lab::ending_of(language(python_)));
    const bool has_other_language = lab::find_answers(*chosen, place_).size() > 1;
    const std::string checked = has_other_language ? file : place_;
    fmt::print(
        "{}/README.md says what it is about; write into {} where it says YOUR TURN,\n"
        "then: simverbs lab check {}{} (or watch: a check at every save)\n",
        folder, file, which_, checked == "." ? "" : " " + fabric::shell_word(checked));
    return 0;
}

int LabCommands::check() const {
    const auto chosen = exercise();
    const auto file = chosen ? answer(*chosen) : std::nullopt;
    if (!file) {
        return kUsage;
    }
    const Interruption interruption;
    const int status = check_and_report(*chosen, toolbox(interruption), *file, !without_pictures_);
    return interruption.signal() == 0 ? status : kSignalled + interruption.signal();
}

int LabCommands::watch() const {
    const auto chosen = exercise();
    const auto file = chosen ? answer(*chosen) : std::nullopt;
    if (!file) {
        return kUsage;
    }
    const Interruption interruption;
    return watch_answer(*chosen, toolbox(interruption), *file, !without_pictures_, interruption)
               ? kSignalled + interruption.signal()
               : cli::complain(fmt::format("{}: its folder is gone", *file), kFailed);
}

int LabCommands::hint() const {
    const auto chosen = exercise();
    if (!chosen) {
        return kUsage;
    }
    const auto file = lab::find_answer(*chosen, place_);  // there may be none yet
    const lab::Language wanted = python_ ? lab::Language::kPython
                                 : file  ? lab::language_of(*file)
                                         : lab::Language::kC;
    fmt::print("{}", lab::next_hint(*chosen, place_, wanted));
    return 0;
}

int LabCommands::solution() const {
    const auto chosen = exercise();
    if (!chosen) {
        return kUsage;
    }
    const std::string file = chosen->file("solution", language(python_));
    const auto text = lab::read_file(file);
    if (!text) {
        return complain(
            fmt::format("{} has no solution in {}", chosen->name, python_ ? "Python" : "C"));
    }
    fmt::print("{}", *text);
    return 0;
}

int LabCommands::grade() const {
    const bool has_file = !output_.empty();
    if (has_file && !can_write(output_)) {  // before a long time, not after it
        return complain(fmt::format("{} cannot be written", output_));
    }
    const Interruption interruption;
    const auto grades = lab::grade({place_, exercises(), which_, jobs_}, toolbox(interruption));
    if (!grades) {
        return complain(grades.error());
    }
    for (const std::string& warning : grades->warnings) {
        cli::complain("warning: " + warning, 0);
    }
    if (!has_file) {
        fmt::print("{}", grades->csv);
    } else if (!lab::write_file(output_, grades->csv)) {
        return cli::complain(fmt::format("{} cannot be written", output_), kFailed);
    }
    for (const std::string& obstacle : grades->obstacles) {
        complain(obstacle);
    }
    if (interruption.signal() != 0) {
        return cli::complain(
            fmt::format("interrupted; not graded: {}", fabric::counted(grades->ungraded, "answer")),
            kSignalled + interruption.signal());
    }
    return grades->obstacles.empty() ? 0 : kUsage;
}

int LabCommands::prove() const {
    const auto chosen = exercise();
    if (!chosen) {
        return kUsage;
    }
    const Interruption interruption;
    const lab::Proof proof = lab::prove(*chosen, toolbox(interruption), !without_wrong_);
    if (interruption.signal() != 0) {
        return kSignalled + interruption.signal();
    }
    fmt::print("{}", proof.text);
    if (!proof.obstacle.empty()) {
        return complain(proof.obstacle);
    }
    return proof.failed == 0 ? 0 : kFailed;
}

}  // namespace simverbs::cli
