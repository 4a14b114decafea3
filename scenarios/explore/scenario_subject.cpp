// Explores a scenario, in the process that runs its branches.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "fabric/core/assert.hpp"
#include "fabric/core/hash.hpp"
#include "fabric/core/shell_word.hpp"

#include "scenarios/explore/subject.hpp"
#include "scenarios/search/swarm.hpp"
#include "scenarios/search/trial.hpp"

namespace scenarios {

namespace yaml = fabric::yaml;

namespace {

yaml::Value parsed(const std::string& text) {
    yaml::Errors errors("made");
    auto value = yaml::parse(text, errors);
    SIMVERBS_ASSERT(value.has_value(), "{}: {}", text, errors.text());
    return std::move(*value);
}

yaml::Value& list_of(yaml::Value& root, std::string_view key) {
    const auto found = std::ranges::find(root.entries, key,
                                         [](const yaml::Entry& entry) { return entry.key.text; });
    if (found != root.entries.end()) {
        found->value.kind = yaml::Kind::kList;
        return found->value;
    }
    yaml::Value made = parsed(fmt::format("{}: []\n", key));
    root.entries.push_back(std::move(made.entries.front()));
    return root.entries.back().value;
}

// Invariants alone.
void expect_little(yaml::Value& root) {
    for (yaml::Entry& entry : root.entries) {
        if (entry.key.text == "expect") {
            std::erase_if(entry.value.entries,
                          [](const yaml::Entry& part) { return part.key.text != "invariants"; });
        }
    }
}

// Everything that a program could tell runs apart by, with its time.
std::uint64_t effects_of(const Verdict& verdict) {
    fabric::WordsHash hash;
    const auto add_number = [&hash](auto number) { hash.add(static_cast<std::uint64_t>(number)); };
    for (const Completed& completed : verdict.completed) {
        add_number(completed.time_ps);
        hash.add(fabric::hash_name(completed.end));
        hash.add(completed.id);
        add_number(completed.status);
        add_number(completed.opcode);
        add_number(completed.bytes);
        add_number(completed.imm);
        add_number(completed.vendor_err);
    }
    for (const AsyncEventSeen& event : verdict.events) {
        add_number(event.time_ps);
        hash.add(fabric::hash_name(event.host));
        add_number(event.event);
        hash.add(fabric::hash_name(event.of));
    }
    for (const CmEventSeen& event : verdict.cm_events) {
        add_number(event.time_ps);
        hash.add(fabric::hash_name(event.host));
        add_number(event.event);
        add_number(event.status);
    }
    add_number(verdict.time_ps);
    return hash.value();
}

Outcome outcome_of(std::string_view kind) {
    if (kind.starts_with("invariant")) {
        return Outcome::kWrongData;
    }
    return kind == "ends" ? Outcome::kHangs : Outcome::kFailed;
}

class ScenarioSubject final : public Subject {
  public:
    explicit ScenarioSubject(const Scenario& scenario)
        : repaired_(scenario), lasting_(scenario), surroundings_(surroundings_of(scenario)) {
        demand_completion(repaired_.root);
        expect_little(lasting_.root);
    }

    [[nodiscard]] const std::string& name() const override { return repaired_.file; }
    [[nodiscard]] std::size_t branches_of_process() const override { return 32; }

    [[nodiscard]] std::string reproducer(const Branch& branch) const override {
        return portable_text(with_faults(branch));
    }

    [[nodiscard]] std::string replay(const std::string& file) const override {
        return "simverbs scenario " + fabric::shell_word(file);
    }

    [[nodiscard]] BranchResult run(const Branch& branch) const override {
        Scenario made = with_faults(branch);
        if (branch.with_places) {
            // Before all others: one that drops a packet hides it from those behind.
            yaml::Value& faults = list_of(made.root, "faults");
            faults.items.insert(faults.items.begin(), parsed(observer_text()));
        }
        const Verdict verdict = scenarios::run(made);
        BranchResult result;
        result.time_ps = verdict.time_ps;
        result.effects = effects_of(verdict);
        if (!verdict.error.empty()) {
            result.outcome = Outcome::kFailed;
            result.kind = "error";
            result.happened = verdict.error;
            return result;
        }
        judge(verdict, branch.is_repaired, result);
        if (result.outcome == Outcome::kPassed && !all_fired(verdict, branch)) {
            result.outcome = Outcome::kMissed;
        }
        if (branch.with_explanation) {
            result.explanation = verdict.explanation;
        }
        if (branch.with_places) {
            result.surroundings = surroundings_;
            const auto hits = verdict.packets_hit.find(std::string(kObserver));
            const auto fired = verdict.fired.find(std::string(kObserver));
            for (std::size_t i = 0; hits != verdict.packets_hit.end() && i < hits->second.size();
                 ++i) {
                result.places.push_back({hits->second[i], fired->second[i], {}});
            }
        }
        return result;
    }

  private:
    static bool all_fired(const Verdict& verdict, const Branch& branch) {
        for (std::size_t i = 0; i < branch.choices.size(); ++i) {
            const auto found = verdict.fired.find(fault_name(i));
            if (found == verdict.fired.end() || found->second.empty()) {
                return false;
            }
        }
        return true;
    }

    static void judge(const Verdict& verdict, bool is_repaired, BranchResult& result) {
        for (const Failure& failure : verdict.failures) {
            const Outcome outcome = outcome_of(failure.kind);
            const bool counts = is_repaired || outcome == Outcome::kWrongData;
            if (counts &&
                (result.outcome == Outcome::kPassed || failure.time_ps < result.time_ps)) {
                result.outcome = outcome;
                result.kind = failure.kind;
                result.cause = verdict.root.cause;
                result.expected = failure.expected;
                result.happened = failure.happened;
                result.time_ps = failure.time_ps;
            }
        }
    }

    [[nodiscard]] Scenario with_faults(const Branch& branch) const {
        Scenario made = branch.is_repaired ? repaired_ : lasting_;
        yaml::Value& faults = list_of(made.root, "faults");
        for (std::size_t i = 0; i < branch.choices.size(); ++i) {
            faults.items.push_back(parsed(fault_text(branch, i)));
        }
        return made;
    }

    Scenario repaired_;  // everything must complete
    Scenario lasting_;   // invariants alone
    Surroundings surroundings_;
};

}  // namespace

std::unique_ptr<Subject> scenario_subject(const Scenario& scenario) {
    return std::make_unique<ScenarioSubject>(scenario);
}

}  // namespace scenarios
