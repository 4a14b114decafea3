#include "scenarios/search/check.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "fabric/core/temporary_folder.hpp"

#include "scenarios/engine/verdict_json.hpp"
#include "scenarios/search/variation.hpp"

namespace scenarios {

namespace {

namespace fs = std::filesystem;

std::string read_all(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

// The last lines of what a program has said.
std::string end_of(const std::string& output) {
    constexpr std::size_t kMost = 400;
    const std::size_t from = output.size() - std::min(output.size(), kMost);
    return output.substr(from, output.find_last_not_of('\n') + 1 - from);
}

// One way to run what is checked.
struct Way {
    std::string name;
    std::vector<std::string> command;  // of a scenario without its result
    const Variation* variation;
};

class Check {
  public:
    // `file`: of the scenario or the program, after which kept traces are called.
    Check(std::string subject, const std::string& file, const CheckOptions& options)
        : options_(options), stem_(fs::path(file).stem().string()), result_{std::move(subject)} {}
    virtual ~Check() = default;
    Check(const Check&) = delete;
    Check& operator=(const Check&) = delete;

    CheckResult check() {
        result_.runs = run(ways(), false);
        if (result_.stopped ||
            std::ranges::any_of(result_.runs, [](const CheckRun& r) { return !r.error.empty(); })) {
            return result_;
        }
        const auto odd = std::ranges::find_if(result_.runs, [this](const CheckRun& run) {
            return run.digests != result_.runs.front().digests;
        });
        if (odd != result_.runs.end()) {
            locate(static_cast<std::size_t>(odd - result_.runs.begin()));
        }
        return result_;
    }

  protected:
    [[nodiscard]] virtual std::vector<Way> ways() const = 0;
    // In a process of its own. The files have names of this run alone.
    [[nodiscard]] virtual CheckRun observe(const Way& way, const std::string& result,
                                           const std::string& trace) const = 0;
    // The traces that a run left under this name, in the order of its worlds.
    [[nodiscard]] virtual std::vector<std::string> traces(const std::string& name) const = 0;

    [[nodiscard]] const CheckOptions& options() const { return options_; }

  private:
    static std::string trace_name(std::size_t id) { return fmt::format("trace-{}", id); }

    std::vector<CheckRun> run(const std::vector<Way>& ways, bool traced) {
        std::vector<CheckRun> runs(ways.size());
        std::size_t ended = 0;
        ProcessPool pool(
            [&](std::size_t id, ProcessPool::Reached& /*not known*/) {
                const std::string result = place_.file(fmt::format("result-{}", id));
                std::remove(result.c_str());
                const CheckRun run =
                    observe(ways[id], result, traced ? place_.file(trace_name(id)) : std::string());
                return to_line(nlohmann::json(
                    {run.digests, run.mark, run.error, static_cast<int>(run.obstacle)}));
            },
            {.jobs = options_.jobs, .limit = options_.limit},
            [&](std::int64_t /*in other programs*/) {
                return !options_.onlooker || options_.onlooker({ended, ways.size()});
            });
        std::size_t next = 0;
        while (!pool.is_stopped() && (next < ways.size() || !pool.is_idle())) {
            for (; next < ways.size() && !pool.is_full(); ++next) {
                pool.start(next);
            }
            for (const ProcessPool::Done& done : pool.wait()) {
                ++ended;
                CheckRun& run = runs[done.id];
                run.name = ways[done.id].name;
                const auto left = nlohmann::json::parse(done.text, nullptr, false);
                if (done.error.empty() && left.is_array()) {
                    run.digests = left.at(0);
                    run.mark = left.at(1);
                    run.error = left.at(2);
                    run.obstacle = static_cast<Obstacle>(left.at(3).get<int>());
                } else {
                    run.error = done.error.empty() ? "what it left cannot be read" : done.error;
                }
            }
        }
        result_.stopped = result_.stopped || pool.is_stopped();
        return runs;
    }

    // Runs the two again, with traces, until they differ again.
    void locate(std::size_t odd) {
        constexpr int kTries = 10;
        const std::vector<Way> all = ways();
        const std::vector<Way> two = {all.front(), all[odd]};
        result_.one = two[0].name;
        result_.other = two[1].name;
        for (int i = 0;
             i < kTries && !result_.stopped && !result_.difference && result_.note.empty(); ++i) {
            const std::vector<CheckRun> runs = run(two, true);
            if (!result_.stopped && runs[0].digests != runs[1].digests) {
                compare(traces(place_.file(trace_name(0))), traces(place_.file(trace_name(1))));
            }
        }
        if (!result_.stopped && !result_.difference && result_.note.empty()) {
            result_.note =
                fmt::format("run again {} times with traces they did not differ", kTries);
        }
    }

    void compare(const std::vector<std::string>& of_one, const std::vector<std::string>& of_other) {
        const std::size_t worlds = std::min(of_one.size(), of_other.size());
        for (std::size_t world = 0; world < worlds && !result_.difference; ++world) {
            auto found = first_difference(of_one[world], of_other[world]);
            if (!found) {
                result_.note = found.error();
                continue;
            }
            result_.difference = std::move(*found);
            if (result_.difference) {
                keep(of_one[world], "one", result_.trace_of_one);
                keep(of_other[world], "other", result_.trace_of_other);
            }
        }
        if (!result_.difference && result_.note.empty()) {
            result_.note =
                fmt::format("their traces do not differ: {} worlds of one, {} of the other",
                            of_one.size(), of_other.size());
        }
    }

    void keep(const std::string& trace, std::string_view which, std::string& kept) {
        const fs::path to = fs::path(options_.folder) / fmt::format("{}-{}.jsonl", stem_, which);
        std::error_code error;
        fs::create_directories(options_.folder, error);
        fs::copy_file(trace, to, fs::copy_options::overwrite_existing, error);
        kept = error ? fmt::format("{} (cannot be written: {})", to.string(), error.message())
                     : to.string();
    }

    const CheckOptions& options_;
    std::string stem_;
    CheckResult result_;
    fabric::TemporaryFolder place_{"simverbs-check-"};
};

class ScenarioCheck final : public Check {
  public:
    ScenarioCheck(const std::string& file, const CheckOptions& options)
        : Check(file, file, options), file_(file) {}

  private:
    [[nodiscard]] std::vector<Way> ways() const override {
        std::vector<Way> all;
        for (const std::string& build : options().builds) {
            for (const Variation& variation : variations()) {
                const bool first = build == options().builds.front();
                Way way{first ? std::string(variation.name)
                              : fmt::format("{}, {}", build, variation.name),
                        {build, "scenario", "--quiet", file_},
                        &variation};
                for (const std::string& setting : options().settings) {
                    way.command.insert(way.command.end(), {"--set", setting});
                }
                all.push_back(std::move(way));
            }
        }
        return all;
    }

    [[nodiscard]] CheckRun observe(const Way& way, const std::string& result,
                                   const std::string& trace) const override {
        std::vector<std::string> command = way.command;
        command.insert(command.end(), {"--json", result});
        if (!trace.empty()) {
            command.insert(command.end(), {"--trace", trace});
        }
        CheckRun run;
        const Ended ended = run_program(command, *way.variation, {}, result + ".output");
        const auto verdicts = nlohmann::json::parse(read_all(result), nullptr, false);
        if (!verdicts.is_array() || verdicts.empty()) {
            run.error = fmt::format("{}: {}", ended.in_words(), end_of(ended.output));
            return run;
        }
        run.error = verdicts[0].value("error", "");
        run.obstacle = verdicts[0].value("is_input", false) ? Obstacle::kInput : Obstacle::kNone;
        run.digests = verdicts[0].value("digest", "");
        run.mark = verdicts[0].value("mark", "");
        return run;
    }

    [[nodiscard]] std::vector<std::string> traces(const std::string& name) const override {
        return {name};
    }

    std::string file_;
};

class ProgramCheck final : public Check {
  public:
    ProgramCheck(const std::vector<std::string>& command, const CheckOptions& options)
        : Check(fmt::format("{}", fmt::join(command, " ")), command.front(), options),
          command_(command) {}

  private:
    [[nodiscard]] std::vector<Way> ways() const override {
        std::vector<Way> all;
        for (const Variation& variation : variations()) {
            all.push_back({std::string(variation.name), command_, &variation});
        }
        return all;
    }

    [[nodiscard]] CheckRun observe(const Way& way, const std::string& result,
                                   const std::string& trace) const override {
        Environment environment = {{"SIMVERBS_DIGEST", result}};
        if (!trace.empty()) {
            environment.emplace_back("SIMVERBS_TRACE", trace + ".%n");
        }
        if (!options().libraries.empty()) {
            const char* const earlier = std::getenv("LD_LIBRARY_PATH");
            environment.emplace_back(
                "LD_LIBRARY_PATH",
                options().libraries + (earlier == nullptr ? "" : fmt::format(":{}", earlier)));
        }
        CheckRun run;
        const Ended ended =
            run_program(way.command, *way.variation, environment, result + ".output");
        run.digests = read_all(result);
        if (!ended.well()) {
            run.obstacle = ended.was_not_found() ? Obstacle::kNoProgram : Obstacle::kNone;
            run.error = fmt::format("{}: {}", ended.in_words(), end_of(ended.output));
        } else if (run.digests.empty()) {
            run.error =
                "it left no digest: it must use verbs in its own process, and return from "
                "main() or call exit()";
        } else if (run.digests.find("not deterministic") != std::string::npos) {
            run.mark = run.digests.substr(0, run.digests.find_last_not_of('\n') + 1);
        }
        return run;
    }

    [[nodiscard]] std::vector<std::string> traces(const std::string& name) const override {
        std::vector<std::string> found;
        for (std::string next = name + ".1"; fs::exists(next);
             next = fmt::format("{}.{}", name, found.size() + 1)) {
            found.push_back(next);
        }
        return found;
    }

    std::vector<std::string> command_;
};

std::string one_line(std::string text) {
    text.erase(text.find_last_not_of('\n') + 1);
    for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
        text.replace(at, 1, "; ");
    }
    return text;
}

std::string place(const std::string& file, std::size_t line) {
    return line == 0 ? file : fmt::format("{}:{}", file, line);
}

}  // namespace

bool CheckResult::is_same() const {
    return std::ranges::all_of(runs, [this](const CheckRun& run) {
        return run.error.empty() && run.digests == runs.front().digests;
    });
}

Obstacle CheckResult::obstacle() const {
    const auto found = std::ranges::find_if(
        runs, [](const CheckRun& run) { return run.obstacle != Obstacle::kNone; });
    return found == runs.end() ? Obstacle::kNone : found->obstacle;
}

CheckResult check_scenario(const std::string& file, const CheckOptions& options) {
    return ScenarioCheck(file, options).check();
}

CheckResult check_program(const std::vector<std::string>& command, const CheckOptions& options) {
    return ProgramCheck(command, options).check();
}

std::string report(const CheckResult& result) {
    const auto broken =
        std::ranges::find_if(result.runs, [](const CheckRun& run) { return !run.error.empty(); });
    if (broken != result.runs.end()) {
        return fmt::format("FAIL {}\n    {}: {}\n", result.subject, broken->name, broken->error);
    }
    const auto marked =
        std::ranges::find_if(result.runs, [](const CheckRun& run) { return !run.mark.empty(); });
    const std::string mark = marked == result.runs.end()
                                 ? ""
                                 : fmt::format("    marked as not deterministic ({}): {}\n",
                                               marked->name, one_line(marked->mark));
    if (result.is_same()) {
        return fmt::format("SAME {}  ({}; {} runs)\n{}", result.subject,
                           one_line(result.runs.front().digests), result.runs.size(), mark);
    }
    std::string text = fmt::format("DIFFERS {}\n", result.subject);
    for (const CheckRun& run : result.runs) {
        text += fmt::format("    {:<16} {}\n", run.name, one_line(run.digests));
    }
    text += mark;
    if (!result.difference) {
        return text + fmt::format("    no record is to blame: {}\n", result.note);
    }
    const TraceDifference& found = *result.difference;
    text += fmt::format("  record {} of the run digest is the first that differs\n", found.record);
    for (const std::string& common : found.before) {
        text += fmt::format("    both: {}\n", common);
    }
    text += fmt::format("    {}: {}\n        {}\n", result.one, found.one,
                        place(result.trace_of_one, found.line_of_one));
    text += fmt::format("    {}: {}\n        {}\n", result.other, found.other,
                        place(result.trace_of_other, found.line_of_other));
    return text;
}

}  // namespace scenarios
