// Explores a scenario, in the process that runs its branches.
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/core/hash.hpp"
#include "fabric/core/shell_word.hpp"

#include "scenarios/explore/faulty_scenario.hpp"
#include "scenarios/search/swarm.hpp"
#include "scenarios/search/trial.hpp"

namespace scenarios {

namespace {

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

class ScenarioSubject final : public Subject {
  public:
    explicit ScenarioSubject(const Scenario& scenario)
        : repaired_(scenario),
          lasting_(expecting_little(scenario)),
          surroundings_(surroundings_of(scenario)) {
        demand_completion(repaired_.root);
    }

    [[nodiscard]] const std::string& name() const override { return repaired_.file; }
    [[nodiscard]] std::size_t branches_of_process() const override { return 32; }

    [[nodiscard]] bool keeps_limits() const override { return false; }

    [[nodiscard]] std::string reproducer(const Branch& branch) const override {
        return portable_text(with_faults(branch));
    }

    [[nodiscard]] std::string replay(const std::string& file) const override {
        return "simverbs scenario " + fabric::shell_word(file);
    }

    [[nodiscard]] BranchResult run(const Branch& branch) const override {
        const Verdict verdict = scenarios::run(
            branch.with_places ? with_observer(with_faults(branch)) : with_faults(branch),
            {.is_explained = [&branch](std::span<const Failure> failures) {
                return branch.with_explanation || any_counts(failures, branch.is_repaired);
            }});
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
            result.places = places_of(verdict);
        }
        return result;
    }

  private:
    // Its packets and completions, as they come.
    [[nodiscard]] std::vector<Place> places_of(const Verdict& verdict) const {
        std::vector<std::pair<std::int64_t, Place>> timed;
        const std::string observer(kObserver);
        const auto hits = verdict.packets_hit.find(observer);
        for (std::size_t i = 0; hits != verdict.packets_hit.end() && i < hits->second.size(); ++i) {
            const PacketHit& packet = hits->second[i];
            const Place place{
                packet, verdict.fired.at(observer)[i], {}, receiver_of(packet, surroundings_)};
            timed.emplace_back(verdict.fired_at_ps.at(observer)[i], place);
        }
        std::map<std::pair<std::string, std::string_view>, std::uint64_t> completions;
        for (const Completed& completed : verdict.completed) {
            const std::string host = host_of_end(completed.end);
            if (host == completed.end) {
                continue;  // of no queue pair that the scenario names
            }
            const std::string_view call =
                completed.is_receive ? kReceiveCompletion : kSendCompletion;
            const Place place{{.end = completed.end, .host = host},
                              ++completions[{completed.end, call}],
                              std::string(call),
                              {}};
            timed.emplace_back(completed.time_ps, place);
        }
        std::ranges::stable_sort(timed, {}, &std::pair<std::int64_t, Place>::first);
        std::vector<Place> places;
        places.reserve(timed.size());
        for (auto& [time_ps, place] : timed) {
            places.push_back(std::move(place));
        }
        return places;
    }

    [[nodiscard]] Scenario with_faults(const Branch& branch) const {
        return scenarios::with_faults(branch.is_repaired ? repaired_ : lasting_, branch);
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
