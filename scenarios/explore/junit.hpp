// Writes an exploration as JUnit XML: a testsuite with a testcase for each test.
#pragma once

#include <string>

#include "scenarios/explore/explored.hpp"

namespace scenarios {

// A finding is a `failure`. A test that was not explored is `skipped`.
std::string junit(const Explored& explored);

}  // namespace scenarios
