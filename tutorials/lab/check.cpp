#include "tutorials/lab/check.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <variant>

#include <fmt/format.h>

#include "tutorials/lab/temporary_folder.hpp"
#include "tutorials/lab/text.hpp"
#include "viz/graphviz.hpp"
#include "viz/ladder.hpp"
#include "viz/markup.hpp"
#include "viz/state_diagram.hpp"
#include "viz/state_machine.hpp"
#include "viz/timeline.hpp"
#include "viz/topology_picture.hpp"

namespace simverbs::lab {
namespace {

namespace fs = std::filesystem;

constexpr int kCannotExecute = 127;  // as a shell says it
constexpr std::size_t kShownLines = 25;
constexpr std::string_view kPython = "/usr/bin/python3";  // Debian's, which has pyverbs

void read_trace_of(const std::string& file, Performance& performance) {
    if (auto trace = viz::read_trace(file)) {
        performance.trace = std::move(*trace);
        performance.run = viz::read_run(performance.trace);
    }  // a program that opened no device has none
}

// The services of the queue pairs that there were, as diagrams.
std::vector<viz::StateMachine> machines_of(const viz::Trace& trace, const viz::Run& run) {
    std::vector<viz::StateMachine> machines;
    for (viz::StateMachine& machine : viz::all_machines()) {
        const bool is_used =
            std::any_of(run.services.begin(), run.services.end(),
                        [&machine](const auto& qp) { return machine.id == "qp_" + qp.second; });
        if (is_used) {
            viz::count_moves(machine, trace);
            machines.push_back(std::move(machine));
        }
    }
    return machines;
}

class Painter {
  public:
    Painter(std::string folder, Checked& checked) : folder_(std::move(folder)), checked_(checked) {}

    void draw(Picture picture) {
        const viz::Trace& trace = checked_.performance.trace;
        const viz::Run& run = checked_.performance.run;
        switch (picture) {
            case Picture::kLadder:
                if (!run.services.empty()) {
                    save("ladder.svg", viz::ladder(trace, run, {}));
                }
                return;
            case Picture::kTimeline:
                save("timeline.json", viz::timeline(trace, run));
                return;
            case Picture::kTopology:
                save_drawn("topology.svg", viz::topology_picture(run, {}));
                return;
            case Picture::kStates:
                for (const viz::StateMachine& machine : machines_of(trace, run)) {
                    save_drawn(fmt::format("states_{}.svg", machine.id),
                               viz::state_diagram(machine));
                }
        }
    }

  private:
    void save(const std::string& name, std::string_view text) {
        const std::string file = folder_ + "/" + name;
        if (write_file(file, text)) {
            checked_.pictures.push_back(file);
        } else {
            checked_.picture_error = file + " cannot be written";
        }
    }
    void save_drawn(const std::string& name, const std::string& dot) {
        if (const auto svg = viz::draw(dot, "svg")) {
            save(name, *svg);
        } else {
            checked_.picture_error = svg.error();
        }
    }

    std::string folder_;
    Checked& checked_;
};

constexpr std::string_view kPassed = "✔ passed";
constexpr std::string_view kFailed = "✘ failed";
constexpr std::string_view kOpen = "· open  ";  // it did not get far enough to tell

std::string marked(std::string_view mark, std::string_view asks, std::uint64_t points) {
    return fmt::format("  {}  {}{}\n", mark, asks,
                       points == 1 ? "" : fmt::format(" ({} points)", points));
}

std::string said(std::string_view title, const std::string& text) {
    return text.empty() ? "" : fmt::format("{}\n{}\n", title, first_lines(text, kShownLines));
}

constexpr std::string_view kIndent = "            ";

// Leaves out what simverbs says that is no mistake in a lesson, or that the report says in words of
// its own: a missing receive at RTR has a rule where it matters, pyverbs frees its list of devices
// before it opens one, and objects that are left have a rule or words_of_leak().
bool is_noise(std::string_view line) {
    return line.starts_with("simverbs: no_receive_at_rtr:") ||
           line.starts_with("simverbs: devices were listed and none was opened") ||
           line.starts_with("simverbs: not_destroyed:");
}

// Returns what came on stderr. Of a world that was reported already, a second report says nothing
// new.
std::string without_noise(const Checked& checked) {
    std::istringstream lines{std::string(without_fault_report(checked.performance.errors))};
    std::string kept;
    bool has_report = false;
    bool is_repeated = false;
    for (std::string line; std::getline(lines, line);) {
        const bool is_asked_for = line.starts_with("simverbs: asked for, at");
        const bool is_of_host = line.starts_with("host ") || line.starts_with("  ");
        is_repeated = has_report && (is_asked_for || (is_repeated && is_of_host));
        has_report = has_report || line.starts_with("host ");
        if (!is_repeated && !is_noise(line)) {
            kept += line + "\n";
        }
    }
    return kept;
}

// How it ended, when not well, and what else needs no rule: before all that it printed.
std::string first_words(const Checked& checked) {
    std::string text;
    if (checked.ending) {
        text += wrapped("✘ " + *checked.ending, "");
        const bool has_printed =
            !checked.performance.output.empty() || !without_noise(checked).empty();
        text += has_printed ? "" : "  It had printed nothing.\n";
    }
    for (const Diagnosis& diagnosis : checked.diagnoses) {
        if (!checked.ending || diagnosis.text != *checked.ending) {
            text += wrapped("✘ " + diagnosis.text, "");
        }
    }
    return text.empty() ? text : text + "\n";
}

std::string rule_report(const Rule& rule, const Finding& finding, bool is_explained,
                        const std::string& advice) {
    std::string text = marked(finding.open    ? kOpen
                              : finding.holds ? kPassed
                                              : kFailed,
                              rule.asks, rule.points);
    if (!is_explained) {
        return text;
    }
    text += wrapped(rule.say, kIndent);
    if (!finding.seen.empty()) {
        text += wrapped("Seen: " + finding.seen, kIndent);
    }
    if (!advice.empty()) {
        text += wrapped("Try: " + advice, kIndent);
    }
    return text;
}

// The first error of the compiler or the linker, without the folder of the file; of Python, whose
// last line names the error, the line before it.
std::string first_error(Language language, const std::string& complaints) {
    std::istringstream lines(complaints);
    std::string place;
    std::string last;
    for (std::string line; std::getline(lines, line);) {
        const bool is_error = line.find(" error: ") != std::string::npos ||
                              line.find("undefined reference") != std::string::npos;
        if (language == Language::kC && is_error) {
            const std::size_t folder = line.rfind('/', line.find(':'));
            return folder == std::string::npos ? line : line.substr(folder + 1);
        }
        const std::size_t number = line.rfind(", line ");
        place = number == std::string::npos ? place : line.substr(number + 2) + ", ";
        last = line.empty() ? last : line;
    }
    return language == Language::kPython ? place + last : last;
}

std::string verdict(const Exercise& exercise, const Checked& checked) {
    const std::uint64_t points = checked.points(exercise.rubric);
    const std::uint64_t all = exercise.rubric.points();
    const std::string number = exercise.name.substr(0, exercise.name.find('_'));
    if (checked.passed(exercise.rubric)) {
        return fmt::format(
            "\n{0} of {0} points: solved. `simverbs lab solution {1}{2}` shows another way "
            "to write it.\n",
            all, number, checked.language == Language::kPython ? " --python" : "");
    }
    return fmt::format(
        "\n{} of {} points. Begin with the first ✘; `simverbs lab hint {}` gives {}.\n", points,
        all, number, checked.has_every_hint ? "the hints again" : "a hint");
}

// Tells of objects that an answer left behind where no rule of the lesson asks for their end, and
// of those that Python could not end for it.
std::string words_of_leak(const Exercise& exercise, const Checked& checked) {
    const Performance& performance = checked.performance;
    std::string text;
    for (const std::string& exception : performance.ignored) {
        text += wrapped(fmt::format("Python threw an object away and could not end it: {}. Close "
                                    "objects yourself, in the reverse order of their making.",
                                    exception),
                        "");
    }
    const bool has_rule = std::any_of(
        exercise.rubric.rules.begin(), exercise.rubric.rules.end(),
        [](const Rule& rule) { return std::holds_alternative<ClosedRule>(rule.demand); });
    const std::string left = has_rule || checked.ending ? "" : left_behind(performance);
    if (!left.empty()) {
        text += wrapped(
            fmt::format("Something was left behind, which this lesson does not judge: {}. {} ends "
                        "what a host has.",
                        left, checked.language == Language::kC ? "lab_close()" : "host.close()"),
            "");
    }
    return text;
}

}  // namespace

std::uint64_t Checked::points(const Rubric& rubric) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < findings.size(); ++i) {
        sum += findings[i].holds ? rubric.rules[i].points : 0;
    }
    return sum;
}

std::optional<std::size_t> Checked::first_failing_rule() const {
    const auto found = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
        return !finding.holds && !finding.open;
    });
    return found == findings.end() ? std::nullopt
                                   : std::optional<std::size_t>(found - findings.begin());
}

std::string Checked::first_failing(const Rubric& rubric) const {
    if (!compiled) {
        return std::string(kCompiles);
    }
    if (!diagnoses.empty()) {
        return std::string(diagnoses.front().name);
    }
    const auto rule = first_failing_rule();
    return rule ? rubric.rules[*rule].name : "";
}

std::string Checked::seen_first() const {
    if (!compiled) {
        return first_error(language, complaints);
    }
    if (!diagnoses.empty()) {
        return diagnoses.front().text;
    }
    const auto rule = first_failing_rule();
    return rule ? findings[*rule].seen : "";
}

namespace {

// False when it does not compile.
bool compile(const Toolbox& toolbox, const std::string& answer, const std::string& program,
             Checked& checked) {
    const Finished compiled = run(
        {.words = compiler_words(toolbox, answer, program), .interruption = toolbox.interruption});
    checked.is_interrupted = compiled.ending.kind == Ending::Kind::kInterrupted;
    checked.complaints = compiled.errors + compiled.output;
    if (compiled.ending.number == kCannotExecute && checked.complaints.empty()) {
        checked.complaints = "there is no C compiler: apt install gcc, or name one by CC\n";
    }
    return compiled.ending.is_good();
}

}  // namespace

Checked check(const Exercise& exercise, const Toolbox& toolbox, const std::string& file,
              const std::string& pictures) {
    const TemporaryFolder folder;
    Checked checked{.language = language_of(file)};
    const std::string answer = fs::absolute(file).string();
    checked.has_every_hint = has_every_hint(exercise, fs::path(answer).parent_path().string());
    const bool is_c = checked.language == Language::kC;
    const std::string program = folder.file("program");
    const std::string trace = folder.file("trace.jsonl");
    const std::string notes = folder.file("ending");
    if (is_c && !compile(toolbox, answer, program, checked)) {
        return checked;
    }
    checked.compiled = true;
    const auto limit =
        toolbox.time_limit.count() > 0 ? toolbox.time_limit : exercise.rubric.time_limit;
    const std::vector<std::string> words =
        is_c ? std::vector{program} : std::vector{std::string(kPython), answer};
    Finished finished = run({words, program_environment(toolbox, exercise.rubric, trace, notes),
                             fs::path(answer).parent_path().string(), limit, toolbox.interruption});
    Performance& performance = checked.performance;
    performance.output = std::move(finished.output);
    performance.errors = std::move(finished.errors);
    if (!is_c && is_syntax_error(performance.errors)) {
        checked.compiled = false;
        checked.complaints = std::move(performance.errors);
        performance = {};
        return checked;
    }
    if (!is_c) {
        performance.errors = without_ignored_exceptions(performance.errors, performance.ignored);
    }
    performance.ending =
        is_c ? finished.ending : ending_of_python(finished.ending, performance.errors);
    performance.place = is_c ? place_in_c(notes, program, answer)
                             : place_in_python(notes, performance.errors, answer);
    if (is_c) {
        performance.second_end = place_of_second_end(performance.errors, program, answer);
    }
    checked.is_interrupted = finished.ending.kind == Ending::Kind::kInterrupted;
    read_trace_of(trace, performance);
    checked.findings = judge(exercise.rubric, performance);
    if (!checked.passed(exercise.rubric)) {
        checked.ending = ending_text(performance, limit);
        checked.diagnoses = diagnose(exercise.rubric, performance, limit);
    }
    if (!pictures.empty() && !performance.trace.records.empty()) {
        Painter painter(pictures, checked);
        for (const Picture picture : exercise.rubric.pictures) {
            painter.draw(picture);
        }
    }
    return checked;
}

std::string report(const Exercise& exercise, const Checked& checked) {
    std::string text = fmt::format("{}: {}\n\n", exercise.name, exercise.rubric.title);
    text += first_words(checked);
    text += said(checked.language == Language::kC ? "The compiler says:" : "Python says:",
                 checked.complaints);
    text += said("Your program printed:", checked.performance.output);
    text += said("On stderr:", without_noise(checked));
    if (!checked.compiled) {
        return text + marked(kFailed, "It compiles.", 1) +
               wrapped(
                   "The first message of the compiler counts; those behind it are often its "
                   "consequences.",
                   kIndent);
    }
    const auto first = checked.first_failing_rule();
    for (std::size_t i = 0; i < checked.findings.size(); ++i) {
        const Rule& rule = exercise.rubric.rules[i];
        // That it did not end well is told already, and that something did not happen may follow
        // from what a diagnosis found.
        const bool is_told = (checked.ending && std::holds_alternative<ExitRule>(rule.demand)) ||
                             (!checked.diagnoses.empty() && checked.findings[i].is_absence);
        text += rule_report(rule, checked.findings[i], i == first && !is_told,
                            checked.has_every_hint ? rule.hint.in(checked.language) : "");
    }
    text += verdict(exercise, checked);
    text += words_of_leak(exercise, checked);
    if (checked.performance.run.end > 0) {
        text += fmt::format("It took {} of virtual time.\n",
                            viz::time_text(checked.performance.run.end));
    }
    for (const std::string& picture : checked.pictures) {
        text += fmt::format("{} {}\n", picture == checked.pictures.front() ? "Drawn:" : "      ",
                            picture);
    }
    if (!checked.picture_error.empty()) {
        text += fmt::format("Not drawn: {}\n", checked.picture_error);
    }
    return text;
}

}  // namespace simverbs::lab
