#include "simverbs/cli/world_options.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simverbs/model/settings.hpp"

namespace simverbs::cli {
namespace {

// The row without the words that embedded worlds alone have.
SettingRow as_served(SettingRow row) {
    row.words = row.words.first(row.words.size() - row.embedded_words);
    return row;
}

// How --help calls the value of an option.
std::string type_name_of(const SettingRow& row) {
    switch (row.kind) {
        case SettingKind::kNumber:
            return "N";
        case SettingKind::kFile:
            return "FILE";
        case SettingKind::kFolder:
            return "DIR";
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

void add_setting(CLI::App& command, ServerOptions& options, const SettingRow& row) {
    CLI::Option* const option =
        command
            .add_option_function<std::string>(
                std::string(row.option),
                [&options, setting = row.setting](const std::string& value) {
                    set(options, setting, value);
                },
                meaning_of(row))
            ->check([row](const std::string& value) { return describe_wrong_value(row, value); })
            ->type_name(type_name_of(row))
            ->default_str(
                std::string(row.served_default.empty() ? row.by_default : row.served_default));
    if (row.scope == SettingScope::kEverywhere) {
        option->envname(std::string(row.variable));
    }
}

}  // namespace

void add_world_options(CLI::App& command, ServerOptions& options) {
    for (const SettingRow& row : kSettings) {
        if (!row.option.empty()) {
            add_setting(command, options, as_served(row));
        }
    }
}

void add_world(CLI::App& command, std::string& world) {
    command.add_option("--world", world, "name of the world, or path of its socket")
        ->type_name("WORLD");
}

CLI::Option* add_limit(CLI::App& command, const char* name, std::chrono::milliseconds& limit,
                       const char* meaning, const char* by_default) {
    return command
        .add_option_function<std::uint64_t>(
            name, [&limit](const std::uint64_t& ms) { limit = std::chrono::milliseconds(ms); },
            fmt::format("{}; of wall time: 500ms, 60s, 10min, 1h", meaning))
        ->transform(CLI::AsNumberWithUnit(
            std::map<std::string, std::uint64_t>{
                {"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}},
            CLI::AsNumberWithUnit::UNIT_REQUIRED))
        ->type_name("DURATION")
        ->default_str(by_default);
}

}  // namespace simverbs::cli
