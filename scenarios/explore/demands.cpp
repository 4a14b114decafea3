#include "scenarios/explore/demands.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "fabric/yaml/quantities.hpp"

#include "scenarios/engine/observation.hpp"

namespace scenarios {

namespace {

bool is_excused(const Mistake& mistake, const Branch& branch, const BranchResult& result) {
    switch (excuse_of(mistake.misuse)) {
        case Excuse::kNone:
            return false;
        case Excuse::kEnd:
            return !result.ended_well;
        case Excuse::kFailure:
            return !branch.is_repaired;
        case Excuse::kNews:
            return !branch.is_repaired || std::ranges::find(branch.choices, ChoiceGroup::kEvents,
                                                            &Choice::group) != branch.choices.end();
        case Excuse::kAny:
            return true;
    }
    return false;
}

}  // namespace

void apply(const Demands& demands, const Branch& branch, BranchResult& result) {
    std::erase_if(result.mistakes, [&](const Mistake& mistake) {
        return std::ranges::any_of(
                   demands.usual_mistakes,
                   [&mistake](const Mistake& usual) { return usual.is_as(mistake); }) ||
               is_excused(mistake, branch, result);
    });
    if (result.outcome != Outcome::kPassed) {
        return;
    }
    const auto found = result.mistakes.begin();
    if (found != result.mistakes.end()) {
        result.outcome =
            found->misuse == simverbs::Misuse::kNotDestroyed ? Outcome::kLeaks : Outcome::kMisuse;
        result.kind = simverbs::to_string(found->misuse);
        result.happened = found->line;
    } else if (demands.within && result.time_ps > demands.within->count()) {
        result.outcome = Outcome::kTooSlow;
        result.kind = "virtual time";
        result.expected =
            fmt::format("an end within {}", fabric::yaml::duration_text(*demands.within));
        result.happened = fmt::format("an end after {}", time_text(result.time_ps));
    }
}

}  // namespace scenarios
