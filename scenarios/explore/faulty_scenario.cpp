#include "scenarios/explore/faulty_scenario.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/core.h>

#include "fabric/core/assert.hpp"

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

Outcome outcome_of(std::string_view kind) {
    if (kind.starts_with("invariant")) {
        return Outcome::kWrongData;
    }
    return kind == "ends" ? Outcome::kHangs : Outcome::kFailed;
}

// Requests may fail after a fault that nothing repairs; data must be right all the same.
bool counts(const Failure& failure, bool is_repaired) {
    return is_repaired || outcome_of(failure.kind) == Outcome::kWrongData;
}

}  // namespace

Scenario with_faults(Scenario scenario, const Branch& branch) {
    yaml::Value& faults = list_of(scenario.root, "faults");
    for (std::size_t i = 0; i < branch.choices.size(); ++i) {
        faults.items.push_back(parsed(fault_text(branch, i)));
    }
    return scenario;
}

Scenario with_observer(Scenario scenario) {
    yaml::Value& faults = list_of(scenario.root, "faults");
    faults.items.insert(faults.items.begin(), parsed(observer_text()));
    return scenario;
}

Scenario expecting_little(Scenario scenario) {
    for (yaml::Entry& entry : scenario.root.entries) {
        if (entry.key.text == "expect") {
            std::erase_if(entry.value.entries,
                          [](const yaml::Entry& part) { return part.key.text != "invariants"; });
        }
    }
    return scenario;
}

bool all_fired(const Verdict& verdict, const Branch& branch) {
    for (std::size_t i = 0; i < branch.choices.size(); ++i) {
        const auto found = verdict.fired.find(fault_name(i));
        if (found == verdict.fired.end() || found->second.empty()) {
            return false;
        }
    }
    return true;
}

bool any_counts(std::span<const Failure> failures, bool is_repaired) {
    return std::ranges::any_of(
        failures, [is_repaired](const Failure& failure) { return counts(failure, is_repaired); });
}

void judge(const Verdict& verdict, bool is_repaired, BranchResult& result) {
    for (const Failure& failure : verdict.failures) {
        if (counts(failure, is_repaired) &&
            (result.outcome == Outcome::kPassed || failure.time_ps < result.time_ps)) {
            result.outcome = outcome_of(failure.kind);
            result.kind = failure.kind;
            result.cause = verdict.root.cause;
            result.expected = failure.expected;
            result.happened = failure.happened;
            result.time_ps = failure.time_ps;
        }
    }
}

std::string fabric_text(const std::string& topology) {
    const std::filesystem::path file(topology);
    return std::filesystem::is_regular_file(file)
               ? fmt::format("fabric: {{file: \"{}\"}}\n", std::filesystem::absolute(file).string())
               : fmt::format("fabric: \"{}\"\n", topology);
}

}  // namespace scenarios
