// One scenario, from its file to a verdict.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "scenarios/engine/explain.hpp"
#include "scenarios/engine/observation.hpp"
#include "scenarios/engine/run_files.hpp"
#include "scenarios/engine/scenario.hpp"

namespace scenarios {

struct Verdict {
    std::string file;
    std::vector<std::string> included{};  // files, which positions of failures may be in
    std::string error;                    // it could not be run, or its file is wrong
    bool is_input = false;                // the latter
    std::vector<Failure> failures;
    // Explains the failure of the end that the first failed expectation is about; if it is about
    // none, the first failed completion or stopped queue pair. If nothing failed, it says how many
    // packets were sent again.
    std::string explanation;
    Root root{};  // why the same failed; empty if nothing did
    std::vector<Completed> completed{};
    std::vector<AsyncEventSeen> events{};
    std::vector<CmEventSeen> cm_events{};
    std::vector<std::string> warnings{};  // it passed, and yet may not test what it was written for
    // Which of its matches each fault has hit, from 1, by the name of the fault.
    std::map<std::string, std::vector<std::uint64_t>> fired{};
    std::map<std::string, std::vector<PacketHit>> packets_hit{};  // those of them that are packets
    std::map<std::string, std::vector<std::int64_t>> fired_at_ps{};  // when; not in JSON
    std::vector<int> exit_statuses{};  // of its processes, as a shell gives them
    bool is_late = false;              // the limit of wall time has ended them
    int interrupted_by = 0;            // a signal: the run did not end by itself, and is not judged
    std::vector<std::string> so_far{};  // how far it had come, a line or more each
    std::uint64_t digest = 0;
    std::int64_t time_ps = 0;
    bool deterministic = true;
    std::string mark{};    // why not
    std::string replay{};  // the command that does it again; "": simverbs scenario FILE

    // The file of a failure.
    [[nodiscard]] const std::string& file_of(const Failure& failure) const {
        return failure.position.file == 0 ? file : included[failure.position.file - 1];
    }
    [[nodiscard]] bool passed() const {
        return error.empty() && failures.empty() && interrupted_by == 0;
    }
};

struct RunOptions {
    RunFiles files{};
    // Picoseconds of virtual time at which it ends, if the scenario does not say earlier; 0: none.
    std::int64_t stop_ps = 0;
    std::atomic<std::int64_t>* reached_ps = nullptr;  // told how far it has come; null: nobody is
    // Says from the failures whether they are to be explained, which can take as long as the run;
    // nothing: always.
    std::function<bool(std::span<const Failure>)> is_explained{};
    // The signal that ends it, once there is one; null: none does.
    const volatile std::sig_atomic_t* interrupted_by = nullptr;
};

class Faults;
class Observed;

// Adds to the verdict why something failed, or what was sent again.
void add_explanation(Verdict& verdict, const Observed& run);
// Adds which faults fired, and a warning for each fault that never did, with the reason.
void add_findings(Verdict& verdict, const Observed& run, const Faults& faults);

// In this process, whose world it takes and leaves as new.
Verdict run(const Scenario& scenario, const RunOptions& options = {});

}  // namespace scenarios
