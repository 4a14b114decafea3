// A scenario from text, run in this process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "scenarios/engine/batch.hpp"
#include "scenarios/engine/run.hpp"

namespace scenarios {

inline Verdict run_text(std::string_view text, const std::vector<std::string>& settings = {}) {
    const auto scenario = parse(text, "test.yaml", settings);
    if (!scenario) {
        Verdict verdict;
        verdict.error = scenario.error();
        return verdict;
    }
    return run(*scenario);
}

inline std::string errors_of(std::string_view text) {
    const auto scenario = parse(text, "test.yaml", {});
    return scenario ? "" : scenario.error();
}

}  // namespace scenarios
