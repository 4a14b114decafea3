// Many scenarios: each in a process of its own, so that nothing leaks from one to the next and a
// crash is one scenario's; and what came of them as text, JUnit XML and JSON.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fabric/core/outcome.hpp"

#include "scenarios/engine/process_pool.hpp"
#include "scenarios/engine/run.hpp"

namespace scenarios {

struct BatchOptions {
    std::vector<std::string> settings{};
    RunFiles run_files{};  // of a single scenario
    unsigned jobs = 1;
    bool strict = false;  // a warning is a failure
    std::function<Verdict(const Scenario&, const RunOptions&)> run = scenarios::run;
    Onlooker onlooker{};  // of files; `reached` is virtual time in picoseconds
};

// The .yaml files of folders, in the order of their names; files as they are. Fails where
// a folder has none.
fabric::Outcome<std::vector<std::string>> find_files(const std::vector<std::string>& paths);

// `done` is told of each as it ends, and of those that have been interrupted since the onlooker
// wanted no more. The verdicts are those that ended, in the order of the files.
std::vector<Verdict> run_batch(const std::vector<std::string>& files, const BatchOptions& options,
                               const std::function<void(const Verdict&)>& done);

// Reads the verdict that a process left as JSON; where it left none, says how the process ended.
Verdict verdict_of(const ProcessPool::Done& done, const std::string& file);

// "PASS file ...", with every failure and the line that replays it.
std::string report(const Verdict& verdict, const std::vector<std::string>& settings);
std::string junit(const std::vector<Verdict>& verdicts);
std::string json(const std::vector<Verdict>& verdicts);

}  // namespace scenarios
