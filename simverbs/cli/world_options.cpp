#include "simverbs/cli/world_options.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric/yaml/quantities.hpp"

#include "simverbs/cli/installed_files.hpp"
#include "simverbs/model/settings.hpp"

namespace simverbs::cli {
namespace {

// The row as a served world has it: without the words that embedded worlds alone have.
SettingRow as_served(SettingRow row) {
    row.words = row.words.first(row.words.size() - row.embedded_words);
    row.by_default = row.served_default.empty() ? row.by_default : row.served_default;
    return row;
}

// How --help calls the value of an option.
std::string type_name_of(const SettingRow& row) {
    switch (row.kind) {
        case SettingKind::kNumber:
            return "N";
        case SettingKind::kFile:
            return row.setting == Setting::kScenario ? "SCENARIO" : "FILE";
        case SettingKind::kFolder:
            return "DIR";
        case SettingKind::kBytes:
            return "BYTES";
        case SettingKind::kText:  // HOST, TOPOLOGY
            return std::string(row.variable.substr(kVariablePrefix.size()));
        default:
            return fmt::format("{{{}}}", fmt::join(row.words, ","));
    }
}

std::string meaning_of(const SettingRow& row) {
    const bool is_limited =
        row.kind == SettingKind::kNumber && row.most != std::numeric_limits<std::uint64_t>::max();
    return is_limited ? fmt::format("{}; 0 to {}", row.meaning, row.most)
                      : std::string(row.meaning);
}

// "" where `name` may name a world, by itself or as the last part of a path.
std::string describe_wrong_world(const std::string& name) {
    const std::string last = name.substr(name.rfind('/') + 1);
    const bool has_control =
        std::ranges::any_of(name, [](unsigned char c) { return c < ' ' || c == 0x7F; });
    if (!last.empty() && last.front() != '-' && last.front() != '.' && !has_control) {
        return "";
    }
    return fmt::format(
        "{} is no name of a world: a name, or the last part of a path, begins with "
        "no '-' and no '.', is not empty and has no control character",
        has_control || name.empty() ? "this" : fmt::format("'{}'", name));
}

}  // namespace

std::string option_of(const SettingRow& row) {
    std::string option = "--" + name_of(row);
    std::ranges::replace(option, '_', '-');
    return option;
}

CLI::Option* add_setting(CLI::App& command, const SettingRow& row,
                         const std::function<void(const std::string&)>& take) {
    if (row.kind == SettingKind::kSwitch) {
        return command
            .add_flag_callback(
                option_of(row), [take] { take("1"); }, std::string(row.meaning))
            ->disable_flag_override();
    }
    return command.add_option_function<std::string>(option_of(row), take, meaning_of(row))
        ->check([row](const std::string& value) { return describe_wrong_value(row, value); })
        ->type_name(type_name_of(row))
        ->default_str(std::string(row.by_default));
}

void add_world_options(CLI::App& command, ServerOptions& options) {
    for (const SettingRow& row : kSettings) {
        if (row.option.empty()) {
            continue;
        }
        CLI::Option* const option = add_setting(
            command, as_served(row), [&options, setting = row.setting](const std::string& value) {
                set(options, setting, value);
            });
        if (row.scope == SettingScope::kEverywhere) {
            option->envname(std::string(row.variable));
        }
    }
}

CLI::Option* add_scenario_or_world_options(CLI::App& command, ScenarioChoice& scenario,
                                           const char* meaning, ServerOptions& options,
                                           bool (*is_of_scenario)(const SettingRow& row)) {
    CLI::Option* const file = command.add_option("--scenario", scenario.file, meaning);
    file->type_name("SCENARIO");
    take_installed_files(*file);
    add_world_options(command, options);
    for (const SettingRow& row : kSettings) {
        if (!row.option.empty() && is_of_scenario(row)) {
            file->excludes(command.get_option(std::string(row.option)));
        }
    }
    command.add_option("--set", scenario.settings, "a change of the scenario")
        ->type_name("KEY.KEY=VALUE")
        ->allow_extra_args(false)
        ->needs(file);
    return file;
}

CLI::Option* add_world(CLI::App& command, std::string& world) {
    return command.add_option("--world", world, "name of the world, or path of its socket")
        ->check(describe_wrong_world)
        ->type_name("WORLD");
}

CLI::Option* add_limit(CLI::App& command, const char* name, std::chrono::milliseconds& limit,
                       const char* meaning, const char* by_default) {
    return command
        .add_option_function<std::string>(
            name,
            [&limit, name](const std::string& text) {
                const auto time = fabric::yaml::parse_duration(text);
                if (!time) {
                    throw CLI::ValidationError(name, time.error());
                }
                limit = std::chrono::duration_cast<std::chrono::milliseconds>(*time);
                if (limit != *time || limit <= std::chrono::milliseconds::zero()) {
                    throw CLI::ValidationError(
                        name, fmt::format("\"{}\" is not a whole number of ms above 0", text));
                }
            },
            fmt::format("{}; of wall time: 500ms, 1.5s, 10min, 1h", meaning))
        ->type_name("DURATION")
        ->default_str(by_default);
}

}  // namespace simverbs::cli
