// A scenario whose programs are processes: a world that is served for them alone, with the
// scenario's faults in it, judged by its trace.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "simverbs/cli/end_signals.hpp"
#include "simverbs/cli/programs.hpp"

#include "scenarios/engine/run.hpp"
#include "scenarios/engine/scenario.hpp"

namespace simverbs::cli {

struct ProcessOptions {
    std::vector<ProgramSpec> programs{};  // empty: those of the scenario, in the order of its hosts
    std::optional<std::chrono::milliseconds> time_limit{};  // of wall time; unset: the scenario's
    std::string trace_file{};
    std::string capture_file{};
    // A signal that interrupts the run: whether it does again afterwards what it did before.
    EndSignals::Afterwards signals = EndSignals::Afterwards::kRaise;
};

// A run that a signal interrupts has a verdict of what there was until then: it is not judged.
// The output of the programs goes to this process's standard output, prefixed by host.
scenarios::Verdict run_processes(const scenarios::Scenario& scenario,
                                 const ProcessOptions& options);

// Whichever kind it is.
scenarios::Verdict run_scenario(const scenarios::Scenario& scenario,
                                const scenarios::RunOptions& options);

}  // namespace simverbs::cli
