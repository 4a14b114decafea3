// Small scenarios, from the text of the file to the verdict, in one process and one thread.
#include <cstdlib>
#include <iostream>
#include <string_view>

#include <benchmark/benchmark.h>
#include <malloc.h>

#include "scenarios/engine/run.hpp"
#include "scenarios/engine/scenario.hpp"

namespace {

// One message that gets lost, and is sent again.
constexpr std::string_view kLostOnce = R"(
connections:
  c: {between: [h0, h1], timeout: 10}
hosts:
  h0:
    do:
      - write: {qp: c, id: 1, length: 4096}
      - poll: {qp: c, status: SUCCESS}
faults:
  - {name: lost, action: drop, when: {qp: h0/c, psn: 2, attempt: 1}}
expect:
  completions: {h0/c: [{id: 1}]}
  qp_states: {h0/c: RTS, h1/c: RTS}
  fired: {lost: 1}
)";

scenarios::Scenario read() {
    auto scenario = scenarios::parse(kLostOnce, "lost_once", {});
    if (!scenario) {
        std::cerr << scenario.error() << "\n";
        std::exit(EXIT_FAILURE);
    }
    return *scenario;
}

void judge(const scenarios::Scenario& scenario) {
    const scenarios::Verdict verdict = scenarios::run(scenario);
    if (!verdict.passed()) {
        std::cerr << "the scenario fails\n";
        std::exit(EXIT_FAILURE);
    }
}

void small_scenario(benchmark::State& state) {
    for ([[maybe_unused]] auto _ : state) {
        judge(read());
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK(small_scenario)->Unit(benchmark::kMicrosecond);

void small_scenario_without_reading(benchmark::State& state) {
    const scenarios::Scenario scenario = read();
    for ([[maybe_unused]] auto _ : state) {
        judge(scenario);
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK(small_scenario_without_reading)->Unit(benchmark::kMicrosecond);

}  // namespace

// Memory that a scenario frees stays with the process. Otherwise malloc(3) gives it back to the
// kernel after each scenario or after none, by what happens to lie at the end of the heap, and that
// is half of the time of a scenario.
int main(int argc, char** argv) {
    constexpr int kKeptBytes = 64 << 20;
    mallopt(M_TRIM_THRESHOLD, kKeptBytes);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    return EXIT_SUCCESS;
}
