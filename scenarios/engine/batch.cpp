#include "scenarios/engine/batch.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "fabric/core/counted.hpp"
#include "fabric/core/shell_word.hpp"

#include "scenarios/engine/verdict_json.hpp"

namespace scenarios {

namespace {

// The signal that ends the run of this process.
volatile std::sig_atomic_t g_interrupted_by = 0;

// The run tells how far it has come when a signal ends it. Processes of a scenario are ended by
// whoever has started them.
void listen_to_signals() {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        struct sigaction before {};
        sigaction(signal, nullptr, &before);
        if (before.sa_handler != SIG_IGN) {
            std::signal(signal, [](int caught) { g_interrupted_by = caught; });
        }
    }
}

Verdict run_here(const std::string& file, const BatchOptions& options,
                 ProcessPool::Reached& reached) {
    const auto scenario = load(file, options.settings);
    if (!scenario) {
        Verdict verdict;
        verdict.file = file;
        verdict.error = scenario.error();
        verdict.is_input = true;
        return verdict;
    }
    if (!scenario->has_processes()) {
        listen_to_signals();
    }
    return options.run(
        *scenario,
        {.files = options.run_files, .reached_ps = &reached, .interrupted_by = &g_interrupted_by});
}

void fail_warnings(Verdict& verdict) {
    for (const std::string& warning : verdict.warnings) {
        verdict.failures.push_back(
            {{1, 1}, verdict.time_ps, "no warning (--strict)", warning, "warning"});
    }
    verdict.warnings.clear();
}

// Failures in the same way at the same place of the scenario, as hundreds of requests that one
// error flushes, are told once, with their number.
std::string describe_failures(const Verdict& verdict) {
    std::string text;
    for (std::size_t i = 0; i < verdict.failures.size();) {
        const Failure& first = verdict.failures[i];
        std::size_t end = i + 1;
        while (end < verdict.failures.size() && verdict.failures[end].kind == first.kind &&
               verdict.failures[end].position == first.position) {
            ++end;
        }
        text += fmt::format("{}:{}:{}: at {}\n    expected: {}\n    happened: {}\n",
                            verdict.file_of(first), first.position.line, first.position.column,
                            time_text(first.time_ps), first.expected, first.happened);
        if (end - i > 1) {
            text +=
                fmt::format("    and {} more of the same kind ({}), the last at {}\n", end - i - 1,
                            first.kind, time_text(verdict.failures[end - 1].time_ps));
        }
        i = end;
    }
    return text;
}

// How far a run had come that was interrupted.
std::string describe_firings(const Verdict& verdict) {
    std::string text;
    for (const std::string& line : verdict.so_far) {
        text += fmt::format("    {}\n", line);
    }
    for (const auto& [name, hits] : verdict.fired) {
        if (!hits.empty()) {
            text += fmt::format("    the fault \"{}\" fired {}\n", name,
                                fabric::counted(hits.size(), "time"));
        }
    }
    return text;
}

}  // namespace

fabric::Outcome<std::vector<std::string>> find_files(const std::vector<std::string>& paths) {
    namespace fs = std::filesystem;
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        if (!fs::is_directory(path)) {
            files.push_back(path);
            continue;
        }
        std::vector<std::string> found;
        for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
            if (entry.path().extension() == ".yaml") {
                found.push_back(entry.path().string());
            }
        }
        std::ranges::sort(found);
        if (found.empty()) {
            return fabric::Failure(path + ": a folder without .yaml files");
        }
        files.insert(files.end(), found.begin(), found.end());
    }
    return files;
}

Verdict verdict_of(const ProcessPool::Done& done, const std::string& file) {
    const auto parsed = nlohmann::json::parse(done.text, nullptr, false);
    if (done.error.empty() && !parsed.is_discarded()) {
        return from_json(parsed);
    }
    Verdict verdict;
    verdict.file = file;
    verdict.error = done.error.empty() ? "what its process left cannot be read" : done.error;
    return verdict;
}

std::vector<Verdict> run_batch(const std::vector<std::string>& files, const BatchOptions& options,
                               const std::function<void(const Verdict&)>& done) {
    std::vector<Verdict> verdicts(files.size());
    std::size_t ended = 0;
    ProcessPool pool(
        [&](std::size_t i, ProcessPool::Reached& reached) {
            return to_line(to_json(run_here(files[i], options, reached)));
        },
        {.jobs = options.jobs},
        [&](std::int64_t reached) {
            return !options.onlooker || options.onlooker({ended, files.size(), reached});
        });
    std::size_t next = 0;
    while (!pool.is_stopped() && (next < files.size() || !pool.is_idle())) {
        for (; next < files.size() && !pool.is_full(); ++next) {
            pool.start(next);
        }
        for (const ProcessPool::Done& each : pool.wait()) {
            Verdict verdict = verdict_of(each, files[each.id]);
            if (options.strict) {
                fail_warnings(verdict);
            }
            done(verdict);
            ++ended;
            if (verdict.interrupted_by == 0) {
                verdicts[each.id] = std::move(verdict);
            }
        }
    }
    std::erase_if(verdicts, [](const Verdict& verdict) { return verdict.file.empty(); });
    return verdicts;
}

std::string report(const Verdict& verdict, const std::vector<std::string>& settings) {
    const bool was_interrupted = verdict.interrupted_by != 0;
    std::string text = fmt::format("{} {}",
                                   was_interrupted    ? "INTERRUPTED"
                                   : verdict.passed() ? "PASS"
                                                      : "FAIL",
                                   verdict.file);
    if (!verdict.error.empty()) {
        return text + "\n" + verdict.error + "\n";
    }
    text += fmt::format("  ({} of virtual time, digest {:016x}{})\n", time_text(verdict.time_ps),
                        verdict.digest, verdict.deterministic ? "" : "; " + verdict.mark);
    for (const std::string& warning : verdict.warnings) {
        text += fmt::format("    warning: {}\n", warning);
    }
    if (was_interrupted) {
        text += describe_firings(verdict);
        text += "    the run did not end by itself: what the scenario expects was not judged\n";
    }
    text += describe_failures(verdict);
    if (!verdict.passed()) {
        if (!verdict.root.cause.empty()) {
            text += "    why the first thing failed that did:\n";
        }
        text += verdict.explanation;
        text += "    replay: " + (verdict.replay.empty()
                                      ? "simverbs scenario " + fabric::shell_word(verdict.file)
                                      : verdict.replay);
        for (const std::string& setting : settings) {
            text += fmt::format(" --set {}", fabric::shell_word(setting));
        }
        text += "\n";
    }
    return text;
}

std::string json(const std::vector<Verdict>& verdicts) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Verdict& verdict : verdicts) {
        all.push_back(to_json(verdict));
    }
    return to_line(all, 2) + "\n";
}

}  // namespace scenarios
