#include "scenarios/engine/batch.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/engine/verdict_json.hpp"

namespace scenarios {

namespace {

Verdict run_here(const std::string& file, const BatchOptions& options) {
    std::string errors;
    const auto scenario = load(file, options.settings, errors);
    if (!scenario) {
        Verdict verdict;
        verdict.file = file;
        verdict.error = errors;
        verdict.is_input = true;
        return verdict;
    }
    return options.run(*scenario, {options.trace_file});
}

void fail_warnings(Verdict& verdict) {
    for (const std::string& warning : verdict.warnings) {
        verdict.failures.push_back(
            {{1, 1}, verdict.time_ps, "no warning (--strict)", warning, "warning"});
    }
    verdict.warnings.clear();
}

}  // namespace

std::vector<std::string> find_files(const std::vector<std::string>& paths, std::string& error) {
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
            error = path + ": a folder without .yaml files";
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
    ProcessPool pool(options.jobs);
    std::size_t next = 0;
    while (next < files.size() || !pool.is_idle()) {
        for (; next < files.size() && !pool.is_full(); ++next) {
            pool.start(next, [&] { return to_line(to_json(run_here(files[next], options))); });
        }
        for (const ProcessPool::Done& each : pool.wait()) {
            verdicts[each.id] = verdict_of(each, files[each.id]);
            if (options.strict) {
                fail_warnings(verdicts[each.id]);
            }
            done(verdicts[each.id]);
        }
    }
    return verdicts;
}

std::string report(const Verdict& verdict, const std::vector<std::string>& settings) {
    std::string text = fmt::format("{} {}", verdict.passed() ? "PASS" : "FAIL", verdict.file);
    if (!verdict.error.empty()) {
        return text + "\n" + verdict.error + "\n";
    }
    text += fmt::format("  ({} of virtual time, digest {:016x}{})\n", time_text(verdict.time_ps),
                        verdict.digest, verdict.deterministic ? "" : "; " + verdict.mark);
    for (const std::string& warning : verdict.warnings) {
        text += fmt::format("    warning: {}\n", warning);
    }
    for (const Failure& failure : verdict.failures) {
        text += fmt::format("{}:{}:{}: at {}\n    expected: {}\n    happened: {}\n", verdict.file,
                            failure.position.line, failure.position.column,
                            time_text(failure.time_ps), failure.expected, failure.happened);
    }
    if (!verdict.passed()) {
        if (!verdict.root.cause.empty()) {
            text += "    why the first thing failed that did:\n";
        }
        text += verdict.explanation;
        text += "    replay: " +
                (verdict.replay.empty() ? "simverbs scenario " + verdict.file : verdict.replay);
        for (const std::string& setting : settings) {
            text += fmt::format(" --set '{}'", setting);
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
