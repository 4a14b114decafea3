#include "simverbs/world/environment.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <unistd.h>

#include "fabric/core/nearest.hpp"

#include "simverbs/model/branch_report.hpp"

namespace simverbs {
namespace {

constexpr std::string_view kFreePrefix = "SIMVERBS_TEST_";
constexpr auto kOtherVariables = std::to_array<std::string_view>(
    {kBranchesVariable, "SIMVERBS_CMAKE_OPTIONS", "SIMVERBS_FUZZ_SECONDS"});
constexpr auto kVariables = [] {
    std::array<std::string_view, kSettings.size()> names{};
    std::ranges::transform(kSettings, names.begin(), &SettingRow::variable);
    return names;
}();

bool is_known(std::string_view name) {
    return !name.starts_with(kVariablePrefix) || name.starts_with(kFreePrefix) ||
           std::ranges::count(kVariables, name) != 0 ||
           std::ranges::count(kOtherVariables, name) != 0;
}

}  // namespace

std::vector<std::string> describe_unknown_variables() {
    std::vector<std::string> found;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        if (!is_known(name)) {
            found.push_back(
                fmt::format("{} is no setting{}", name, fabric::suggestion(name, kVariables)));
        }
    }
    std::ranges::sort(found);
    return found;
}

}  // namespace simverbs
