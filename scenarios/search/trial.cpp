#include "scenarios/search/trial.hpp"

#include <algorithm>
#include <filesystem>

#include "scenarios/engine/batch.hpp"
#include "scenarios/engine/process_pool.hpp"
#include "scenarios/engine/verdict_json.hpp"

namespace scenarios {

Verdict run_apart(const Scenario& scenario, const Runner& runner, std::chrono::milliseconds limit,
                  const RunOptions& options) {
    ProcessPool pool(1, limit);
    pool.start(0, [&] { return to_line(to_json(runner(scenario, options))); });
    return verdict_of(pool.wait().front(), scenario.file);
}

const Failure& first_failure(const Verdict& verdict) {
    return *std::ranges::min_element(verdict.failures, {}, &Failure::time_ps);
}

std::string kind_of(const Verdict& verdict) {
    if (!verdict.error.empty()) {
        return verdict.error;
    }
    return verdict.failures.empty() ? std::string() : first_failure(verdict).kind;
}

std::string portable_text(const Scenario& scenario) {
    Scenario copy = scenario;
    for (fabric::yaml::Entry& entry : copy.root.entries) {
        for (fabric::yaml::Entry& inner : entry.value.entries) {
            if (entry.key.text == "fabric" && inner.key.text == "file") {
                inner.value.text = std::filesystem::absolute(scenario.topology_spec).string();
            }
        }
    }
    return to_text(copy);
}

}  // namespace scenarios
