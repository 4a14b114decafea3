#include "scenarios/explore/branch_reports.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "fabric/core/hash.hpp"

#include "simverbs/model/branch_report.hpp"

namespace scenarios {

namespace {

// "\nLINK" of each descriptor that programs of this process start with.
std::string inherited_descriptors() {
    std::string lines;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
        const auto number =
            static_cast<int>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
        if (number > STDERR_FILENO && (fcntl(number, F_GETFD) & FD_CLOEXEC) == 0) {
            lines += "\n" + std::filesystem::read_symlink(entry.path(), error).string();
        }
    }
    return lines;
}

}  // namespace

std::pair<std::string, std::string> variable_for_reports(const std::string& reports_file,
                                                         const std::string& output_file,
                                                         std::chrono::milliseconds limit) {
    return {simverbs::kBranchesVariable,
            fmt::format("{}\n{}\n{}\n{}{}", getpid(), limit.count(), reports_file, output_file,
                        inherited_descriptors())};
}

BranchReports read_branch_reports(const std::string& reports_file) {
    std::ifstream in(reports_file, std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    std::string_view rest = all;
    BranchReports reports;
    simverbs::BranchReport report;
    while (rest.size() >= sizeof report) {
        std::memcpy(&report, rest.data(), sizeof report);
        rest.remove_prefix(sizeof report);
        if (rest.size() < report.name_bytes + report.text_bytes) {
            break;
        }
        const std::string name(rest.substr(0, report.name_bytes));
        const std::string text(rest.substr(report.name_bytes, report.text_bytes));
        rest.remove_prefix(report.name_bytes + report.text_bytes);
        switch (report.kind) {
            case simverbs::BranchReportKind::kStarted:
                reports.has_started = true;
                break;
            case simverbs::BranchReportKind::kFired:
                reports.fired.insert(name);
                break;
            case simverbs::BranchReportKind::kEnded:
                if (reports.ended.contains(name)) {
                    // From its start, the program would have the fault in each of its worlds.
                    reports.obstacles.emplace(name, "it fires in several worlds");
                }
                reports.ended.emplace(name, Ended{.status = report.status,
                                                  .output = text,
                                                  .error = {},
                                                  .is_late = report.is_late != 0});
                break;
            case simverbs::BranchReportKind::kWorldEnded: {
                WorldsEnd& end = reports.worlds[name];
                end.time_ps = std::max(end.time_ps, report.time_ps);
                end.digest = fabric::mix_words(end.digest, report.run_digest);
                end.marks = end.marks.empty() ? text : end.marks;
                if (report.turns_digest != 0) {
                    end.turns_digest = fabric::mix_words(end.turns_digest, report.turns_digest);
                }
                break;
            }
            case simverbs::BranchReportKind::kNotForked:
                reports.obstacles.emplace(name, text);
                break;
        }
    }
    std::erase_if(reports.ended,
                  [&](const auto& end) { return reports.obstacles.contains(end.first); });
    return reports;
}

}  // namespace scenarios
