#include "scenarios/explore/junit.hpp"

#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "fabric/core/xml_text.hpp"

namespace scenarios {

namespace {

// "1.234", with a point whatever the locale.
std::string seconds(std::chrono::milliseconds time) {
    return fmt::format("{}.{:03}", time.count() / 1000, time.count() % 1000);
}

// "explore.Suite" and "Name", so that a test does not have the name of its run without faults.
std::string name_attributes(const ExploredTest& test, bool is_test) {
    const std::size_t dot = is_test ? test.name.find('.') : std::string::npos;
    const std::string suite = dot == std::string::npos ? "" : "." + test.name.substr(0, dot);
    return fmt::format(
        "classname=\"explore{}\" name=\"{}\"", fabric::xml_text(suite),
        fabric::xml_text(dot == std::string::npos ? test.name : test.name.substr(dot + 1)));
}

std::string failure(const Finding& finding, std::size_t number) {
    const BranchResult& result = finding.result;
    std::vector<std::string_view> names;
    for (const Choice& choice : finding.choices) {
        names.push_back(choice.name);
    }
    const std::string message =
        fmt::format("{}{}{} ({})", fmt::join(names, ", then "), names.empty() ? "" : ": ",
                    to_string(result.outcome), result.kind);
    return fmt::format("    <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                       fabric::xml_text(to_string(result.outcome)), fabric::xml_text(message),
                       fabric::xml_text(report(finding, number)));
}

std::string testcase(const ExploredTest& test, bool is_test) {
    std::string inside;
    if (const std::string why_not = not_explored(test); !why_not.empty()) {
        inside = fmt::format("    <skipped message=\"{}\"/>\n", fabric::xml_text(why_not));
    }
    for (std::size_t i = 0; i < test.result.findings.size(); ++i) {
        inside += failure(test.result.findings[i], test.before + i + 1);
    }
    const std::string attributes =
        fmt::format("{} time=\"{}\"", name_attributes(test, is_test), seconds(test.took));
    return inside.empty() ? fmt::format("  <testcase {}/>\n", attributes)
                          : fmt::format("  <testcase {}>\n{}  </testcase>\n", attributes, inside);
}

}  // namespace

std::string junit(const Explored& explored) {
    std::size_t failed = 0;
    std::size_t skipped = 0;
    std::chrono::milliseconds took{};
    std::string cases;
    for (const ExploredTest& test : explored.tests) {
        failed += test.result.findings.empty() ? 0 : 1;
        skipped += not_explored(test).empty() ? 0 : 1;
        took += test.took;
        cases += testcase(test, explored.has_tests);
    }
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"simverbs explore\" "
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{}\">\n{}</testsuite>\n",
        explored.tests.size(), failed, skipped, seconds(took), cases);
}

}  // namespace scenarios
