// SIMVERBS_SCENARIO=FILE, simverbs_begin_scenario(): a scenario around a program that has the
// library in it, a test say. The library calls begin before the world is made, end when it ends or
// when the program asks; and explain, scenario or not, where simverbs_explain() is called.
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "fabric/core/shell_word.hpp"
#include "fabric/yaml/value.hpp"

#include "simverbs/abi/scenario_module.hpp"

#include "scenarios/engine/batch.hpp"
#include "scenarios/engine/explain.hpp"
#include "scenarios/engine/faults.hpp"
#include "scenarios/engine/judge.hpp"
#include "scenarios/engine/own_world.hpp"
#include "scenarios/engine/topology_file.hpp"
#include "scenarios/engine/usage.hpp"
#include "scenarios/engine/witness.hpp"

namespace scenarios {
namespace {

// The world ends while the verdict is made: it is asked nothing then.
class EndingWorld final : public OwnWorld {
  public:
    [[nodiscard]] std::optional<std::uint64_t> matched(std::uint32_t /*id*/) const override {
        return std::nullopt;
    }
};

// Facts about a run that the library knows only at its end.
struct Around {
    explicit Around(Scenario what) : scenario(std::move(what)), witness(scenario) {}

    Scenario scenario;
    Witness witness;
    EndingWorld world;
    Faults faults{witness, world};
};
// Never destroyed by itself: a program that just returns from main() ends its scenario in an exit
// handler of the library, which runs after the destructors of this module. nullptr: there is
// nothing to judge at the end.
Around* g_around = nullptr;

// Settings that the file leaves out stay as the program or its environment has them.
std::string configure(const Scenario& scenario) {
    const TopologyFile topology(scenario);
    if (!topology.error().empty()) {
        return topology.error();
    }
    const bool set = (!Checked(scenario.root).has("fabric") ||
                      simverbs_set_topology(topology.spec().c_str()) == 0) &&
                     apply_settings(scenario.at("run"));
    return set ? "" : simverbs_last_error();
}

void see(const simverbs_record* record, void* /*argument*/) {
    g_around->witness.see(record_of(*record));
}

std::string begin(const char* file, const char* topology) {
    auto scenario = load(file, {}, {.topology = topology});
    if (!scenario) {
        return scenario.error();
    }
    fabric::yaml::Errors misplaced(scenario->files());
    check_for_processes(*scenario, misplaced);
    if (scenario->has_processes() || scenario->at("expect").at("exit").value() != nullptr) {
        misplaced.add({},
                      "run and exit are of processes that simverbs starts; this one has started");
    }
    if (!misplaced.empty()) {
        return misplaced.text();
    }
    if (std::string wrong = configure(*scenario); !wrong.empty()) {
        return wrong;
    }
    if (!Checked(scenario->root).has("expect")) {
        Around faults_alone(std::move(*scenario));
        return faults_alone.faults.inject_all(faults_alone.scenario);
    }
    g_around = new Around(std::move(*scenario));
    if (simverbs_trace_callback(see, nullptr) != 0) {
        return simverbs_last_error();
    }
    return g_around->faults.inject_all(g_around->scenario);
}

std::string end(const ScenarioModuleRun& run) {
    if (g_around == nullptr) {
        return "";
    }
    Around& around = *g_around;
    around.witness.end(run.now_ps, run.run_digest);
    Judge judge(around.witness, around.faults);
    judge.judge_end(around.scenario.at("expect"), {});
    Verdict verdict;
    verdict.file = around.scenario.file;
    verdict.included = around.scenario.included;
    verdict.failures = judge.failures();
    verdict.time_ps = run.now_ps;
    verdict.digest = run.run_digest;
    verdict.mark = run.mark;
    verdict.deterministic = verdict.mark.empty();
    add_explanation(verdict, around.witness);
    add_findings(verdict, around.witness, around.faults);
    verdict.replay = fmt::format("SIMVERBS_SCENARIO={} and the program",
                                 fabric::shell_word(around.scenario.file));
    delete std::exchange(g_around, nullptr);
    return verdict.passed() ? "" : report(verdict, {});
}

std::string explain_given(ScenarioModuleRecords* records, void* from,
                          const ScenarioModuleSubject& subject) {
    std::vector<Record> seen;
    records(
        from,
        [](const simverbs_record* record, void* argument) {
            static_cast<std::vector<Record>*>(argument)->push_back(record_of(*record));
        },
        &seen);
    Question question{.node = subject.node, .is_of_this_life = true, .is_cut = subject.is_cut};
    if (subject.qpn != 0) {
        question.qpn = subject.qpn;
    }
    if (subject.cq != 0) {
        question.completion = find_polled(
            seen, {subject.node, subject.qpn, subject.cq, subject.unread, subject.status});
        if (question.completion == nullptr) {
            return "";
        }
    }
    return explain(seen, question).value_or("");
}

}  // namespace
}  // namespace scenarios

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED const char* simverbs_scenario_begin(const char* file, const char* topology) {
    static std::string wrong;
    wrong = scenarios::begin(file, topology);
    return wrong.empty() ? nullptr : wrong.c_str();
}

EXPORTED const char* simverbs_scenario_end(const ScenarioModuleRun* run) {
    static std::string report;
    report = scenarios::end(*run);
    return report.empty() ? nullptr : report.c_str();
}

EXPORTED const char* simverbs_scenario_explain(ScenarioModuleRecords* records, void* from,
                                               const ScenarioModuleSubject* subject) {
    static std::string text;
    text = scenarios::explain_given(records, from, *subject);
    return text.c_str();
}
