#include "simverbs/cli/settings_command.hpp"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/settings_trial.hpp"
#include "simverbs/model/settings.hpp"
#include "simverbs/server/text_table.hpp"
#include "simverbs/world/environment.hpp"

namespace simverbs::cli {
namespace {

std::string code(std::string_view text) {
    return text.empty() ? "" : fmt::format("`{}`", text);
}

// "`sequential` (default), `random`", or the range and the default of a number.
std::string values_in_markdown(const SettingRow& row) {
    constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
    std::string text;
    if (row.kind == SettingKind::kNumber) {
        text = fmt::format("0 to {}", row.most == kAny ? "2^64-1" : std::to_string(row.most));
    } else if (row.kind == SettingKind::kBytes) {
        text = "a number";
    } else if (row.kind == SettingKind::kSwitch) {
        text = "`1`, `0`";
    }
    for (const std::string_view word : row.words) {
        text += fmt::format("{}{}", text.empty() ? "" : ", ", code(word));
    }
    if (!row.by_default.empty()) {
        text += fmt::format("{}default {}", text.empty() ? "" : "; ", code(row.by_default));
    }
    if (!row.served_default.empty()) {
        text += fmt::format(", served {}", code(row.served_default));
    }
    return text;
}

std::string sentence(std::string_view text) {
    std::string made(text);
    if (made.front() >= 'a' && made.front() <= 'z') {
        made.front() = static_cast<char>(made.front() - 'a' + 'A');
    }
    return made + ".";
}

std::string in_markdown() {
    std::string text =
        "| variable | option | in a scenario | values | what it is |\n"
        "| --- | --- | --- | --- | --- |\n";
    for (const SettingRow& row : kSettings) {
        text += fmt::format("| {} | {} | {} | {} | {}{}{} |\n", code(row.variable),
                            code(row.option), code(row.key), values_in_markdown(row),
                            sentence(row.meaning), row.details.empty() ? "" : " ", row.details);
    }
    return text;
}

// As `doctor --json`: what there is, then what is wrong with it.
std::string as_json(const std::vector<std::string>& mistakes) {
    nlohmann::ordered_json settings = nlohmann::ordered_json::array();
    for (const SettingRow& row : kSettings) {
        const std::string_view value = environment_value(row.setting);
        settings.push_back({{"variable", row.variable},
                            {"value", value.empty() ? nlohmann::ordered_json(nullptr)
                                                    : nlohmann::ordered_json(value)},
                            {"default", row.by_default},
                            {"meaning", row.meaning}});
    }
    return nlohmann::ordered_json{{"settings", std::move(settings)}, {"mistakes", mistakes}}.dump(
               -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
           "\n";
}

std::string as_table() {
    std::vector<TableRow> rows = {{"VARIABLE", "VALUE", "MEANING"}};
    for (const SettingRow& row : kSettings) {
        const std::string_view value = environment_value(row.setting);
        const std::string by_default =
            row.by_default.empty() ? "-" : fmt::format("({})", row.by_default);
        rows.push_back({std::string(row.variable), value.empty() ? by_default : std::string(value),
                        std::string(row.meaning)});
    }
    return text_table(rows);
}

// Returns what is wrong with the settings in the environment, a sentence each.
std::vector<std::string> describe_mistakes() {
    std::vector<std::string> mistakes = describe_unknown_variables();
    for (const SettingMistake& mistake : try_settings().mistakes) {
        mistakes.push_back(fmt::format("{}={}", row_of(mistake.setting).variable, mistake.what));
    }
    return mistakes;
}

}  // namespace

SettingsCommand::SettingsCommand(CLI::App& app)
    : command_(app.add_subcommand(
          "settings", "The variables that embedded worlds read, and what the environment has")) {
    command_->add_flag("--markdown", as_markdown_, "the table of the manual, in Markdown");
    command_->add_flag("--json", as_json_, "for programs")->excludes("--markdown");
}

int SettingsCommand::run() {
    if (as_markdown_) {
        fmt::print("{}", in_markdown());
        return kPassed;
    }
    const std::vector<std::string> mistakes = describe_mistakes();
    fmt::print("{}", as_json_ ? as_json(mistakes) : as_table());
    for (const std::string& mistake : mistakes) {
        complain(mistake, kUsage);
    }
    return mistakes.empty() ? kPassed : kUsage;
}

}  // namespace simverbs::cli
