#include "simverbs/cli/doctor_command.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fabric/core/counted.hpp"

#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/machine_checks.hpp"

namespace simverbs::cli {
namespace {

constexpr std::array<std::string_view, 3> kWords = {"ok", "note", "problem"};  // by Weight

std::string_view word_of(Weight weight) {
    return kWords[static_cast<std::size_t>(weight)];
}

std::string in_words(const std::vector<Finding>& findings, std::size_t problems) {
    constexpr int kSubjectWidth = 16;
    constexpr int kWordWidth = 8;
    std::string text;
    for (const Finding& each : findings) {
        text += fmt::format("{:<{}}{:<{}}{}\n", word_of(each.weight), kWordWidth, each.subject,
                            kSubjectWidth, each.found);
        for (const auto& [what, said] :
             {std::pair("so", &each.consequence), std::pair("do", &each.advice)}) {
            if (!said->empty()) {
                text += fmt::format("{:<{}}{}: {}\n", "", kWordWidth + kSubjectWidth, what, *said);
            }
        }
    }
    return text +
           (problems == 0
                ? "Nothing prevents the use of simverbs.\n"
                : fmt::format("{} the use of simverbs.\n",
                              fabric::counted(problems, "problem prevents", "problems prevent")));
}

std::string in_json(const std::vector<Finding>& findings, std::size_t problems) {
    nlohmann::ordered_json checks = nlohmann::ordered_json::array();
    for (const Finding& each : findings) {
        checks.push_back({{"check", each.subject},
                          {"result", word_of(each.weight)},
                          {"found", each.found},
                          {"consequence", each.consequence},
                          {"advice", each.advice}});
    }
    // Bytes of file names that are no UTF-8 are replaced.
    return nlohmann::ordered_json{{"version", SIMVERBS_VERSION},
                                  {"usable", problems == 0},
                                  {"checks", std::move(checks)}}
               .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
           "\n";
}

}  // namespace

DoctorCommand::DoctorCommand(CLI::App& app, std::vector<std::string> program)
    : command_(app.add_subcommand("doctor", "Look at the machine, and say what to do")),
      program_(std::move(program)) {
    // For --help alone: take_program() has taken these words before.
    command_->add_option("program", program_, "a program to look at, too, behind --")
        ->type_name("WORD");
    command_->add_flag("--json", as_json_, "for programs");
}

int DoctorCommand::run() {
    const std::vector<Finding> findings = check_machine(program_);
    const auto problems = static_cast<std::size_t>(std::ranges::count(
        findings, Weight::kProblem, [](const Finding& each) { return each.weight; }));
    fmt::print("{}", as_json_ ? in_json(findings, problems) : in_words(findings, problems));
    return problems == 0 ? kPassed : kFailed;
}

}  // namespace simverbs::cli
