#include "tutorials/lab/check.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

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

class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string name = (fs::temp_directory_path() / "simverbs-lab-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) {
            throw std::system_error(errno, std::generic_category(), name);
        }
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    [[nodiscard]] std::string file(std::string_view name) const {
        return path_ + "/" + std::string(name);
    }

  private:
    std::string path_;
};

void read_trace_of(const std::string& file, Performance& performance) {
    std::string error;
    if (auto trace = viz::read_trace(file, error)) {
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

// Whoever sent or got a packet, in that order: a lesson may have more than a ladder shows by
// itself.
std::vector<viz::QpName> talkers_of(const viz::Run& run) {
    constexpr std::size_t kMost = 24;
    std::vector<viz::QpName> talkers;
    const auto add = [&talkers](const viz::QpName& qp) {
        if (talkers.size() < kMost &&
            std::find(talkers.begin(), talkers.end(), qp) == talkers.end()) {
            talkers.push_back(qp);
        }
    };
    for (const viz::RunPacket& packet : run.packets) {
        if (const auto to = run.destination(packet)) {
            add(packet.from);
            add(*to);
        }
    }
    return talkers;
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
                    save("ladder.svg", viz::ladder(trace, run, {.qps = talkers_of(run)}));
                }
                return;
            case Picture::kTimeline:
                save("timeline.json", viz::timeline(trace, run));
                return;
            case Picture::kTopology:
                save_drawn("topology.svg", viz::topology_picture(run, std::nullopt));
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
        if (const auto svg = viz::draw(dot, "svg", checked_.picture_error)) {
            save(name, *svg);
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

// Lessons that need no receive at RTR need no word about it; the others have a rule.
std::string without_noise(std::string_view errors) {
    std::string kept;
    while (!errors.empty()) {
        const std::size_t end = std::min(errors.find('\n'), errors.size() - 1) + 1;
        const std::string_view line = errors.substr(0, end);
        if (!line.starts_with("simverbs: no_receive_at_rtr:")) {
            kept += line;
        }
        errors.remove_prefix(end);
    }
    return kept;
}

std::string rule_report(const Rule& rule, const Finding& finding, bool is_first) {
    std::string text = marked(finding.holds  ? kPassed
                              : finding.open ? kOpen
                                             : kFailed,
                              rule.asks, rule.points);
    if (!is_first) {
        return text;
    }
    constexpr std::string_view kIndent = "            ";
    text += wrapped(rule.say, kIndent);
    if (!finding.seen.empty()) {
        text += wrapped("Seen: " + finding.seen, kIndent);
    }
    if (!rule.hint.empty()) {
        text += wrapped("Try: " + rule.hint, kIndent);
    }
    return text;
}

std::string verdict(const Exercise& exercise, const Checked& checked) {
    const std::uint64_t points = checked.points(exercise.rubric);
    const std::uint64_t all = exercise.rubric.points();
    const std::string number = exercise.name.substr(0, exercise.name.find('_'));
    if (checked.passed(exercise.rubric)) {
        return fmt::format(
            "\n{0} of {0} points: solved. `simverbs lab solution {1}` shows another way "
            "to write it.\n",
            all, number);
    }
    return fmt::format(
        "\n{} of {} points. Begin with the first that failed; `simverbs lab hint {}` "
        "gives a hint.\n",
        points, all, number);
}

}  // namespace

std::uint64_t Checked::points(const Rubric& rubric) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < findings.size(); ++i) {
        sum += findings[i].holds ? rubric.rules[i].points : 0;
    }
    return sum;
}

std::string Checked::first_failing(const Rubric& rubric) const {
    if (!compiled) {
        return "compiles";
    }
    for (std::size_t i = 0; i < findings.size(); ++i) {
        if (!findings[i].holds && !findings[i].open) {
            return rubric.rules[i].name;
        }
    }
    return "";
}

Checked check(const Exercise& exercise, const Toolbox& toolbox, const std::string& file,
              const std::string& pictures) {
    const TemporaryFolder folder;
    Checked checked;
    const std::string answer = fs::absolute(file).string();
    std::vector<std::string> words{std::string(kPython), answer};
    if (answer.ends_with(ending_of(Language::kC))) {
        words = {folder.file("program")};
        const Finished compiled = run({.words = compiler_words(toolbox, answer, words[0])});
        checked.complaints = compiled.errors + compiled.output;
        if (compiled.ending.number == kCannotExecute && checked.complaints.empty()) {
            checked.complaints = "there is no C compiler: apt install gcc, or name one by CC\n";
        }
        checked.compiled =
            compiled.ending.kind == Ending::Kind::kExited && compiled.ending.number == 0;
        if (!checked.compiled) {
            return checked;
        }
    }
    checked.compiled = true;
    const std::string trace = folder.file("trace.jsonl");
    Finished finished = run({words, program_environment(toolbox, exercise.rubric, trace),
                             fs::path(answer).parent_path().string(), exercise.rubric.time_limit});
    checked.performance.output = std::move(finished.output);
    checked.performance.errors = std::move(finished.errors);
    checked.performance.ending = finished.ending;
    read_trace_of(trace, checked.performance);
    checked.findings = judge(exercise.rubric, checked.performance);
    if (!pictures.empty() && !checked.performance.trace.records.empty()) {
        Painter painter(pictures, checked);
        for (const Picture picture : exercise.rubric.pictures) {
            painter.draw(picture);
        }
    }
    return checked;
}

std::string report(const Exercise& exercise, const Checked& checked) {
    std::string text = fmt::format("{}: {}\n\n", exercise.name, exercise.rubric.title);
    text += said("The compiler says:", checked.complaints);
    text += said("Your program printed:", checked.performance.output);
    text += said("On stderr:", without_noise(checked.performance.errors));
    if (!checked.compiled) {
        return text + marked(kFailed, "It compiles.", 1) +
               wrapped(
                   "The first message of the compiler counts; those behind it are often its "
                   "consequences.",
                   "            ");
    }
    const std::string first = checked.first_failing(exercise.rubric);
    for (std::size_t i = 0; i < checked.findings.size(); ++i) {
        const Rule& rule = exercise.rubric.rules[i];
        text += rule_report(rule, checked.findings[i], rule.name == first);
    }
    text += verdict(exercise, checked);
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

namespace {

class Prover {
  public:
    Prover(const Exercise& exercise, const Toolbox& toolbox, std::size_t& failed)
        : exercise_(exercise), toolbox_(toolbox), failed_(failed) {}

    // `expected`: the rule that fails first, "" for none, "*" for any.
    std::string try_out(std::string_view what, const std::string& file, std::string_view expected) {
        const Checked checked = check(exercise_, toolbox_, file, "");
        const std::string named = checked.first_failing(exercise_.rubric);
        const bool good =
            expected == "*" ? !named.empty() && named != "compiles" : named == expected;
        failed_ += good ? 0 : 1;
        const std::string came = named.empty() ? "passes" : "fails by " + named;
        std::string line = fmt::format(
            "{} {}: {} {}", good ? "✔ as it should:" : "✘ wrong:", exercise_.name, what, came);
        if (!good) {
            line += fmt::format(" instead of {}\n{}",
                                expected.empty() ? "passing" : "by " + std::string(expected),
                                report(exercise_, checked));
        }
        return line + "\n";
    }

  private:
    const Exercise& exercise_;
    const Toolbox& toolbox_;
    std::size_t& failed_;
};

}  // namespace

std::string prove(const Exercise& exercise, const Toolbox& toolbox, bool with_wrong,
                  std::size_t& failed) {
    Prover prover(exercise, toolbox, failed);
    std::string text;
    for (const Language language : {Language::kC, Language::kPython}) {
        if (exercise.has(language)) {
            const std::string_view ending = ending_of(language);
            text += prover.try_out(fmt::format("exercise{}", ending),
                                   exercise.file("exercise", language), "*");
            text += prover.try_out(fmt::format("solution{}", ending),
                                   exercise.file("solution", language), "");
        }
    }
    for (const WrongAnswer& answer : exercise.wrong) {
        if (!with_wrong) {
            break;
        }
        const TemporaryFolder folder;
        const std::string file = folder.file(answer.is_python ? "exercise.py" : "exercise.c");
        std::string error;
        const auto changed = text_of(exercise, answer, error);
        if (!changed || !write_file(file, *changed)) {
            ++failed;
            text += fmt::format("✘ wrong: {}: {}\n", exercise.name, error);
            continue;
        }
        text += prover.try_out(fmt::format("wrong answer {}", answer.name), file, answer.fails);
    }
    return text;
}

}  // namespace simverbs::lab
