// Coverage for people: a page, a table for a README, a badge.
#pragma once

#include <string>
#include <vector>

#include "viz/coverage.hpp"

namespace simverbs::viz {

// A foldable list a group, as part of a page.
std::string coverage_lists(const std::vector<CoverageGroup>& groups);
// A page that needs nothing else. `title` is plain text.
std::string coverage_page(const std::vector<CoverageGroup>& groups, const std::string& title);
// Markdown: a row a group, then what was not reached. No counts: it is the same again for runs that
// reach the same.
std::string coverage_table(const std::vector<CoverageGroup>& groups, const std::string& title);

// "verbs coverage: QP moves 96 %, statuses 100 %, events 100 %": whole percents, rounded down.
std::string coverage_line(const std::vector<CoverageGroup>& groups);
// The same as a picture (SVG), 20 pixels high.
std::string coverage_badge(const std::vector<CoverageGroup>& groups);

}  // namespace simverbs::viz
