#include "tutorials/lab/check.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <unistd.h>

#include "fabric/core/temporary_folder.hpp"

#include "tutorials/lab/machine.hpp"
#include "tutorials/lab/pictures.hpp"
#include "tutorials/lab/text.hpp"
#include "viz/markup.hpp"

namespace simverbs::lab {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownLines = 25;

// Limits the trace that is read of a program that was stopped. One that turns in a circle repeats
// itself, and its verdict shall not keep the student waiting.
constexpr std::size_t kMostOfEndlessTrace = std::size_t{2} << 20;

fabric::Outcome<viz::Trace> read_begin_of_trace(const std::string& file) {
    std::string text(kMostOfEndlessTrace, '\0');
    std::ifstream in(file, std::ios::binary);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    std::istringstream begin(std::move(text));
    return viz::read_trace(begin, file);
}

void read_trace_of(const std::string& file, Performance& performance) {
    const Ending::Kind kind = performance.ending.kind;
    const bool was_stopped = kind == Ending::Kind::kTimedOut || kind == Ending::Kind::kStuck ||
                             kind == Ending::Kind::kAsleep;
    if (auto trace = was_stopped ? read_begin_of_trace(file) : viz::read_trace(file)) {
        performance.trace = std::move(*trace);
        performance.run = viz::read_run(performance.trace);
    }  // a program that opened no device has none
}

// Returns what stands in parentheses behind "not deterministic" of the first world that is not.
std::string why_unsteady(const std::string& digest_file) {
    constexpr std::string_view kWords = "not deterministic (";
    const std::string text = read_file(digest_file).value_or("");
    const std::size_t at = text.find(kWords);
    const std::size_t begin = at + kWords.size();
    return at == std::string::npos ? "" : text.substr(begin, text.find(")\n", begin) - begin);
}

constexpr std::string_view kPassed = "✔ passed";
constexpr std::string_view kFailed = "✘ failed";
constexpr std::string_view kOpen = "· open  ";  // it did not get far enough to tell

std::string marked(std::string_view mark, std::string_view asks, std::uint64_t points) {
    return fmt::format("  {}  {}{}\n", mark, asks,
                       points == 1 ? "" : fmt::format(" ({} points)", points));
}

std::string said(std::string_view title, const std::string& text) {
    return text.empty()
               ? ""
               : fmt::format("{}\n{}{}\n", title, first_lines(text, kShownLines),
                             text.size() < kMostOutput ? "" : "  ... and more than 1 MiB in all\n");
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

// The words of the library, which leaves it as it is.
bool is_trace_cut(const std::string& errors, const std::string& trace) {
    return errors.find(fmt::format("simverbs: trace file '{}' is not complete", trace)) !=
           std::string::npos;
}

bool lacks_pyverbs(const std::string& errors) {
    return exception_of(errors) == "ModuleNotFoundError: No module named 'pyverbs'";
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
                        Language language, bool is_advised) {
    std::string text = marked(finding.open    ? kOpen
                              : finding.holds ? kPassed
                                              : kFailed,
                              rule.asks, rule.points);
    if (!is_explained) {
        return text;
    }
    text += wrapped(rule.say.in(language), kIndent);
    if (!finding.seen.empty()) {
        text += wrapped("Seen: " + finding.seen, kIndent);
    }
    if (const std::string& hint = rule.hint.in(language); is_advised && !hint.empty()) {
        text += wrapped("Try: " + hint, kIndent);
    }
    return text;
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

std::string words_of_unsteadiness(const Checked& checked) {
    const std::string& why = checked.performance.unsteady;
    return why.empty() ? ""
                       : wrapped(fmt::format("This run is not deterministic, so that the next "
                                             "check may judge it otherwise: {}.",
                                             why),
                                 "");
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

// One answer, compiled and run in a folder of temporary files. Its steps fail where the machine is
// in the way.
class Check {
  public:
    Check(const Exercise& exercise, const Toolbox& toolbox, const std::string& file)
        : exercise_(exercise), toolbox_(toolbox), answer_(fs::absolute(file).string()) {
        checked_.language = language_of(file);
        checked_.has_every_hint = has_every_hint(exercise, fs::path(answer_).parent_path());
    }

    fabric::Outcome<Checked> check(const std::string& pictures) {
        if (access(answer_.c_str(), R_OK) != 0) {
            return fabric::Failure(fmt::format("{}: {}", answer_, std::strerror(errno)));
        }
        fabric::Outcome<void> done = require_space();
        checked_.compiled = !is_c();
        if (done && is_c()) {
            done = compile();
        }
        if (done && checked_.compiled && !checked_.is_interrupted) {
            done = run_answer();
        }
        if (!done) {
            return fabric::Failure(std::move(done.error()));
        }
        if (!checked_.is_interrupted) {
            judge_and_draw(pictures);
        }
        return std::move(checked_);
    }

  private:
    [[nodiscard]] bool is_c() const { return checked_.language == Language::kC; }
    [[nodiscard]] std::string program() const { return folder_.file("program"); }
    [[nodiscard]] std::string trace() const { return folder_.file("trace.jsonl"); }
    [[nodiscard]] std::string notes() const { return folder_.file("ending"); }
    [[nodiscard]] std::string digest() const { return folder_.file("digest"); }
    [[nodiscard]] std::chrono::milliseconds limit() const {
        return toolbox_.time_limit.count() > 0 ? toolbox_.time_limit : exercise_.rubric.time_limit;
    }

    fabric::Outcome<void> compile() {
        const Finished compiled =
            run({.words = compiler_words(toolbox_, exercise_.rubric, answer_, program()),
                 .interruption = toolbox_.interruption});
        checked_.is_interrupted = compiled.ending.kind == Ending::Kind::kInterrupted;
        checked_.complaints = compiled.errors + compiled.output;
        checked_.compiled = compiled.ending.is_good() && fs::exists(program());
        return checked_.compiled || checked_.is_interrupted
                   ? fabric::Outcome<void>()
                   : require_compiler(toolbox_, exercise_.rubric, folder_.file(""));
    }

    fabric::Outcome<void> run_answer() {
        const std::vector<std::string> words =
            is_c() ? std::vector{program()} : std::vector{std::string(kPython), answer_};
        const Environment environment =
            program_environment(toolbox_, exercise_.rubric, {trace(), notes(), digest()});
        Finished finished = run({words, environment, fs::path(answer_).parent_path().string(),
                                 limit(), toolbox_.interruption});
        checked_.is_interrupted = finished.ending.kind == Ending::Kind::kInterrupted;
        if (checked_.is_interrupted) {
            return {};
        }
        if (finished.ending.kind == Ending::Kind::kNotStarted) {
            return fabric::Failure(why_not_started(
                is_c() ? "a program among the temporary files (TMPDIR names another folder)"
                       : std::string(kPython),
                finished.ending));
        }
        if (is_trace_cut(finished.errors, trace())) {
            return fabric::Failure(
                "a trace is cut since its disk is full; TMPDIR names another folder");
        }
        checked_.compiled = is_c() || !is_syntax_error(finished.errors);
        if (!checked_.compiled) {
            checked_.complaints = std::move(finished.errors);
            return {};
        }
        take(std::move(finished));
        return is_c() || !lacks_pyverbs(checked_.performance.errors) ? fabric::Outcome<void>()
                                                                     : require_pyverbs(environment);
    }

    void take(Finished finished) {
        Performance& performance = checked_.performance;
        performance.output = std::move(finished.output);
        performance.errors = std::move(finished.errors);
        performance.ending = finished.ending;
        if (is_c()) {
            performance.place = place_in_c(notes(), program(), answer_);
            performance.second_end = place_of_second_end(performance.errors, program(), answer_);
        } else {
            performance.errors = without_ignored_exceptions(
                without_frames_of_lab(performance.errors), performance.ignored);
            performance.ending = ending_of_python(finished.ending, performance.errors);
            performance.place = place_in_python(notes(), performance.errors, answer_);
        }
        performance.unsteady = why_unsteady(digest());
        read_trace_of(trace(), performance);
    }

    void judge_and_draw(const std::string& pictures) {
        const Rubric& rubric = exercise_.rubric;
        const Performance& performance = checked_.performance;
        if (performance.ending.kind == Ending::Kind::kKilledSupervisor) {
            // How far it came before the kernel ended it differs from run to run.
            checked_.findings.assign(rubric.rules.size(), {.open = true});
        } else if (checked_.compiled) {
            checked_.findings = judge(rubric, performance);
        }
        if (checked_.compiled && !checked_.passed(rubric)) {
            checked_.ending = ending_text(performance, limit());
            checked_.diagnoses = diagnose(rubric, performance, limit());
        }
        if (!pictures.empty()) {
            checked_.drawn = draw(rubric, performance, pictures);
        }
    }

    const Exercise& exercise_;
    const Toolbox& toolbox_;
    const std::string answer_;
    const fabric::TemporaryFolder folder_{"simverbs-lab-"};
    Checked checked_;
};

}  // namespace

fabric::Outcome<Checked> check(const Exercise& exercise, const Toolbox& toolbox,
                               const std::string& file, const std::string& pictures) {
    try {
        return Check(exercise, toolbox, file).check(pictures);
    } catch (const std::exception& error) {  // no process, temporary folder or memory
        return fabric::Failure(error.what());
    }
}

std::string report(const Exercise& exercise, const Checked& checked) {
    std::string text = fmt::format("{}: {}\n\n", exercise.name, exercise.rubric.title);
    text += first_words(checked);
    text += said(checked.language == Language::kC ? "The compiler says:" : "Python says:",
                 checked.complaints);
    text += said("Your program printed:", checked.performance.output);
    text += said("On stderr:", without_noise(checked));
    if (!checked.compiled) {
        return printable(text + marked(kFailed, "It compiles.", 1) +
                         wrapped("The first message of the compiler counts; those behind it are "
                                 "often its consequences.",
                                 kIndent));
    }
    const auto first = checked.first_failing_rule();
    for (std::size_t i = 0; i < checked.findings.size(); ++i) {
        const Rule& rule = exercise.rubric.rules[i];
        // That it did not end well is told already, and that something did not happen may follow
        // from what a diagnosis found.
        const bool is_told = (checked.ending && std::holds_alternative<ExitRule>(rule.demand)) ||
                             (!checked.diagnoses.empty() && checked.findings[i].is_absence);
        text += rule_report(rule, checked.findings[i], i == first && !is_told, checked.language,
                            checked.has_every_hint);
    }
    text += verdict(exercise, checked);
    text += words_of_unsteadiness(checked);
    text += words_of_leak(exercise, checked);
    if (checked.performance.run.end > 0) {
        text += fmt::format("It took {} of virtual time.\n",
                            viz::time_text(checked.performance.run.end));
    }
    for (const std::string& picture : checked.drawn.files) {
        text += fmt::format("{} {}\n", picture == checked.drawn.files.front() ? "Drawn:" : "      ",
                            picture);
    }
    if (!checked.drawn.error.empty()) {
        text += fmt::format("Not drawn: {}\n", checked.drawn.error);
    }
    return printable(text);  // a program may print what a terminal obeys
}

}  // namespace simverbs::lab
