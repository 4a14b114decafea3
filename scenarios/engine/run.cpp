#include "scenarios/engine/run.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "scenarios/engine/faults.hpp"
#include "scenarios/engine/judge.hpp"
#include "scenarios/engine/own_world.hpp"
#include "scenarios/engine/program.hpp"
#include "scenarios/engine/world.hpp"

namespace scenarios {

namespace {

constexpr std::int64_t kDefaultStop = 1'000'000'000'000'000;  // 1000 s

bool does_something(const Scenario& scenario) {
    const Checked root(scenario.root);
    return root.has("programs") || root.has("workloads") ||
           std::ranges::any_of(scenario.at("hosts").entries(),
                               [](const auto& host) { return Checked(host.value).has("do"); });
}

// Programs that wait when nothing is left before the end of the run, and what queue pairs wait for.
std::vector<std::string> waiting_at_the_end(const Programs& programs, std::int64_t stop) {
    std::vector<std::string> waiting = programs.waiting();
    const char* const why = waiting.empty() ? nullptr : simverbs_waits();
    if (why != nullptr) {
        std::string lines = why;
        while (lines.ends_with('\n')) {
            lines.pop_back();
        }
        for (std::size_t at = 0; (at = lines.find('\n', at)) != std::string::npos;) {
            lines.replace(at, 1, "\n      ");
            at += 7;
        }
        waiting.push_back(
            fmt::format("nothing is left before run.stop, {}:\n      {}", time_text(stop), lines));
    }
    return waiting;
}

}  // namespace

void add_findings(Verdict& verdict, std::span<const Record> records, const Faults& faults) {
    verdict.explanation = explain(records, {}, [&faults](std::uint64_t id) {
                              return fmt::format("\"{}\"", faults.name_of(id));
                          }).value_or(recovered(records));
    verdict.root = root_of(records);
    verdict.fired = faults.firings();
    for (const auto& [name, hits] : verdict.fired) {
        if (hits.empty()) {
            verdict.warnings.push_back(fmt::format("the fault \"{}\" never fired", name));
        }
    }
}

Verdict run(const Scenario& scenario, const RunOptions& options) {
    Verdict verdict;
    verdict.file = scenario.file;
    World world(scenario, options.trace_file);
    OwnWorld sink;
    Faults faults(world, sink);
    verdict.error = world.error().empty() ? faults.inject_all(scenario) : world.error();
    if (!verdict.error.empty()) {
        verdict.is_input = true;
        return verdict;
    }
    Judge judge(world, faults);
    Programs programs(scenario, world, faults, judge);
    const std::int64_t stop = scenario.at("run").duration("stop", kDefaultStop);
    programs.run(options.stop_ps > 0 ? std::min(stop, options.stop_ps) : stop, options.reached_ps);
    world.take_all();
    judge.judge_end(scenario.at("expect"), waiting_at_the_end(programs, stop));
    verdict.error = world.error();
    verdict.failures = judge.failures();
    verdict.time_ps = world.now();
    int deterministic = 1;
    if (simverbs_run_digest(&verdict.digest) != 0 ||
        simverbs_is_deterministic(&deterministic) != 0) {
        verdict.error = simverbs_last_error();
    }
    verdict.deterministic = deterministic == 1;
    verdict.mark = verdict.deterministic ? "" : simverbs_last_error();
    add_findings(verdict, world.records(), faults);
    if (!does_something(scenario)) {
        verdict.warnings.emplace_back(
            "nothing is done: no host has \"do\", and there are no programs and no workloads");
    }
    verdict.completed = world.completed();
    verdict.events = world.events();
    return verdict;
}

}  // namespace scenarios
