#include "scenarios/search/trial.hpp"

#include <algorithm>
#include <filesystem>

#include "scenarios/engine/batch.hpp"
#include "scenarios/engine/process_pool.hpp"
#include "scenarios/engine/verdict_json.hpp"

namespace scenarios {

std::optional<Verdict> run_apart(const Scenario& scenario, const Runner& runner,
                                 std::chrono::milliseconds limit,
                                 const std::function<bool()>& goes_on, const RunOptions& options) {
    ProcessPool pool(
        [&](std::size_t /*the only one*/, ProcessPool::Reached& /*nobody looks*/) {
            return to_line(to_json(runner(scenario, options)));
        },
        {.limit = limit}, [&](std::int64_t /*reached*/) { return !goes_on || goes_on(); });
    pool.start(0);
    const std::vector<ProcessPool::Done> done = pool.wait();
    return done.empty() ? std::nullopt : std::optional(verdict_of(done.front(), scenario.file));
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
