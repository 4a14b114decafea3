#include "simverbs/world/world_options.hpp"

#include <chrono>
#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric/core/assert.hpp"
#include "fabric/core/nearest.hpp"

namespace simverbs {
namespace {

// Words of the table are those of the enumerations, in the same order.
template <class Enumeration>
Enumeration word_as(const SettingRow& row, std::string_view value) {
    return static_cast<Enumeration>(*place_of(row, value));
}
static_assert(row_of(Setting::kSchedule).words[static_cast<std::size_t>(Schedule::kSerial)] ==
              "serial");
static_assert([] {
    for (const auto& [name, management] : kSubnetManagementNames) {
        if (row_of(Setting::kSm).words[static_cast<std::size_t>(management)] != name) {
            return false;
        }
    }
    return true;
}());

std::string describe_range(const SettingRow& row) {
    constexpr std::uint64_t kAny = ~std::uint64_t{0};
    return fmt::format("a number from 0 to {}",
                       row.most == kAny ? "2^64-1" : std::to_string(row.most));
}

}  // namespace

std::string describe_wrong_value(const SettingRow& row, std::string_view value) {
    switch (row.kind) {
        case SettingKind::kNumber:
            return number_of(row, value)
                       ? ""
                       : fmt::format("'{}' is not {}", value, describe_range(row));
        case SettingKind::kWord:
            return place_of(row, value)
                       ? ""
                       : fmt::format("'{}' is none of {}{}", value, fmt::join(row.words, ", "),
                                     fabric::suggestion(value, row.words));
        case SettingKind::kBytes:
            return number_of(row, value) || place_of(row, value)
                       ? ""
                       : fmt::format("'{}' is neither a number of bytes nor {}", value,
                                     fmt::join(row.words, ", "));
        case SettingKind::kSwitch:
            return value == "1" || value == "0" ? ""
                                                : fmt::format("'{}' is neither 1 nor 0", value);
        case SettingKind::kText:
        case SettingKind::kFile:
        case SettingKind::kFolder:
            break;
    }
    return "";
}

std::string set(WorldOptions& options, Setting setting, std::string_view value) {
    const SettingRow& row = row_of(setting);
    if (std::string wrong = describe_wrong_value(row, value); !wrong.empty()) {
        return wrong;
    }
    SimulationOptions& simulation = options.simulation;
    switch (setting) {
        case Setting::kTopology:
            simulation.topology = value;
            break;
        case Setting::kPersonality:
            simulation.personality = value;
            break;
        case Setting::kRouting:
            simulation.routing = word_as<fabric::RoutingEngine>(row, value);
            break;
        case Setting::kSeed:
            simulation.seed = *number_of(row, value);
            break;
        case Setting::kFirstPsn:
            simulation.first_psn = static_cast<std::uint32_t>(*number_of(row, value));
            break;
        case Setting::kFirstQpn:
            simulation.first_qpn = static_cast<std::uint32_t>(*number_of(row, value));
            break;
        case Setting::kKeys:
            simulation.random_keys = value == "random";
            break;
        case Setting::kSm:
            simulation.subnet_management = word_as<SubnetManagement>(row, value);
            break;
        case Setting::kSchedule:
            options.time.schedule = word_as<Schedule>(row, value);
            break;
        case Setting::kOrder:
            options.time.order = *number_of(row, value);
            break;
        case Setting::kSpinMs:
            options.time.spin_limit = std::chrono::milliseconds(*number_of(row, value));
            break;
        case Setting::kHelperThread:
            options.time.helper_thread = value == "on";
            break;
        case Setting::kWarn:
            options.time.warn = is_on(value);
            break;
        case Setting::kTrace:
            options.trace_file = value;
            break;
        case Setting::kPcap:
            options.capture_file = value;
            break;
        case Setting::kCoverage:
            options.coverage_folder = value;
            break;
        default:
            SIMVERBS_ASSERT(false, "{} is no part of WorldOptions", row.variable);
    }
    return "";
}

}  // namespace simverbs
