#include "simverbs/driver/embedded_options.hpp"

#include <fmt/format.h>

#include "simverbs/world/environment.hpp"

namespace simverbs::driver {
namespace {

bool is_of_embedded_worlds(const SettingRow& row) {
    return row.scope == SettingScope::kWorld || row.scope == SettingScope::kOutput ||
           row.scope == SettingScope::kEverywhere;
}

}  // namespace

std::string set_embedded(EmbeddedOptions& options, Setting setting, std::string_view value) {
    if (std::string wrong = describe_wrong_value(row_of(setting), value); !wrong.empty()) {
        return wrong;
    }
    switch (setting) {
        case Setting::kHost:
            options.host = value;
            return "";
        case Setting::kTraceFlush:
            options.flush_trace = is_on(value);
            return "";
        case Setting::kDigest:
            options.digest_file = value;
            return "";
        case Setting::kSummary:
            options.summary = is_on(value);
            return "";
        case Setting::kScenario:  // begins before the world is made
            return "";
        default:
            return set(options, setting, value);
    }
}

std::string read_environment(EmbeddedOptions& options) {
    for (const SettingRow& row : kSettings) {
        const std::string_view value = environment_value(row.setting);
        if (value.empty() || !is_of_embedded_worlds(row)) {
            continue;
        }
        if (const std::string wrong = set_embedded(options, row.setting, value); !wrong.empty()) {
            return fmt::format("{}={}", row.variable, wrong);
        }
    }
    return "";
}

}  // namespace simverbs::driver
