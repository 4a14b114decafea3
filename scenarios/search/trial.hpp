// One run in a process of its own, whatever becomes of it; and what makes two failures the same.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "scenarios/engine/run.hpp"
#include "scenarios/engine/scenario.hpp"

namespace scenarios {

// A function that runs a scenario: scenarios::run(), or something that knows more kinds of them.
using Runner = std::function<Verdict(const Scenario&, const RunOptions&)>;

// `limit` of wall time, after which it has failed by that. Nothing: `goes_on`, which is asked a few
// times a second, was false.
std::optional<Verdict> run_apart(const Scenario& scenario, const Runner& runner,
                                 std::chrono::milliseconds limit,
                                 const std::function<bool()>& goes_on,
                                 const RunOptions& options = {});

// Returns the kind of the earliest failure; "" for a run that passed.
std::string kind_of(const Verdict& verdict);
// The earliest failure; the verdict has one.
const Failure& first_failure(const Verdict& verdict);

// Reads the same wherever it is written: paths in it are absolute.
std::string portable_text(const Scenario& scenario);

}  // namespace scenarios
