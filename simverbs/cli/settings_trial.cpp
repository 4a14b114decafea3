#include "simverbs/cli/settings_trial.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/topology/load.hpp"

#include "simverbs/cli/launch.hpp"
#include "simverbs/model/personalities.hpp"
#include "simverbs/protocol/served_protocol.hpp"
#include "simverbs/world/environment.hpp"
#include "simverbs/world/world_options.hpp"

namespace simverbs::cli {
namespace {

std::string value_of(Setting setting) {
    return std::string(environment_value(setting));
}

bool is_folder(const std::string& path) {
    struct stat about {};
    return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Why a file cannot be written; "" where it can, as far as one sees without doing so.
std::string describe_unwritable(const std::string& path) {
    if (is_folder(path)) {
        return std::strerror(EISDIR);
    }
    const bool is_there = access(path.c_str(), F_OK) == 0;
    const std::string& asked = is_there ? path : folder_of(path);
    return access(asked.c_str(), W_OK) == 0
               ? ""
               : fmt::format("cannot be written: {}", std::strerror(errno));
}

std::string describe_unusable_folder(const std::string& path) {
    const bool is_there = access(path.c_str(), F_OK) == 0;
    if (is_there && !is_folder(path)) {
        return std::strerror(ENOTDIR);
    }
    const std::string& asked = is_there ? path : folder_of(path);
    return access(asked.c_str(), W_OK) == 0
               ? ""
               : fmt::format("no file can be written there: {}", std::strerror(errno));
}

class Trial {
  public:
    SettingsTrial take() {
        const std::string scenario = value_of(Setting::kScenario);
        if (!value_of(Setting::kServer).empty()) {
            try_server();
        } else if (!scenario.empty()) {
            try_scenario(scenario);
        } else {
            try_topology();
        }
        for (const Setting setting : {Setting::kTrace, Setting::kPcap, Setting::kDigest}) {
            if (const std::string path = value_of(setting); !path.empty()) {
                add(setting, describe_unwritable(path));
            }
        }
        if (const std::string path = value_of(Setting::kCoverage); !path.empty()) {
            add(Setting::kCoverage, describe_unusable_folder(path));
        }
        if (const std::string path = value_of(Setting::kDevices);
            !path.empty() && !is_folder(path)) {
            add(Setting::kDevices, "there is no such folder");
        }
        return {std::move(found_), std::move(scenario_)};
    }

  private:
    void add(Setting setting, const std::string& wrong) {
        if (!wrong.empty()) {
            found_.push_back({setting, fmt::format("'{}': {}", value_of(setting), wrong)});
        }
    }

    void try_server() {
        const std::string path = value_of(Setting::kServer);
        const auto connection = connect_to_world(path);
        if (!connection) {
            add(Setting::kServer, connection.error());
            return;
        }
        close(*connection);
        const HostPlace place = ask_for_host(path, value_of(Setting::kHost));
        add(Setting::kServer, place.problem);
        if (!place.is_known) {
            add(Setting::kHost, fmt::format("the world has no such host; it has {}", place.hosts));
        }
    }

    void try_scenario(const std::string& path) {
        auto scenario =
            scenarios::load(path, {}, {.topology = topology_spec(), .is_certain = false});
        if (!scenario) {
            add(Setting::kScenario, scenario.error());
        } else if (scenario->has_processes()) {
            add(Setting::kScenario,
                "a scenario that starts programs (run:) cannot be around one: simverbs scenario "
                "runs it");
        } else {
            try_host(scenario->topology);
            scenario_ = std::move(*scenario);
        }
    }

    static std::string topology_spec() {
        const std::string spec = value_of(Setting::kTopology);
        return spec.empty() ? std::string(row_of(Setting::kTopology).by_default) : spec;
    }

    void try_topology() {
        std::vector<std::string_view> personalities;
        personalities.reserve(kPersonalities.size());
        for (const Personality* const each : kPersonalities) {
            personalities.push_back(each->name);
        }
        const auto topology = fabric::load_topology(topology_spec(), personalities);
        if (topology) {
            try_host(*topology);
        } else {
            add(Setting::kTopology, topology.error());
        }
    }

    void try_host(const fabric::Topology& topology) {
        const std::string host = value_of(Setting::kHost);
        const bool is_there =
            std::ranges::any_of(topology.nodes, [&host](const fabric::NodeSpec& node) {
                return node.kind == fabric::NodeKind::kHca && fabric::host_of(node) == host;
            });
        add(Setting::kHost, host.empty() || is_there ? "" : "the topology has no such host");
    }

    std::vector<SettingMistake> found_;
    std::optional<scenarios::Scenario> scenario_;
};

}  // namespace

SettingsTrial try_settings() {
    std::vector<SettingMistake> mistakes;
    for (const SettingRow& row : kSettings) {
        const std::string_view value = environment_value(row.setting);
        const std::string wrong = value.empty() ? "" : describe_wrong_value(row, value);
        if (!wrong.empty()) {
            mistakes.push_back({row.setting, wrong});
        }
    }
    return mistakes.empty() ? Trial().take() : SettingsTrial{std::move(mistakes)};
}

}  // namespace simverbs::cli
