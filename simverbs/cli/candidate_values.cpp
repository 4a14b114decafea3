#include "simverbs/cli/candidate_values.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fabric/net/topology.hpp"
#include "fabric/topology/generators.hpp"
#include "fabric/topology/load.hpp"

#include "simverbs/cli/dead_worlds.hpp"
#include "simverbs/cli/fabric_question.hpp"
#include "simverbs/cli/installed_files.hpp"
#include "simverbs/model/settings.hpp"
#include "simverbs/world/environment.hpp"

#include "tutorials/lab/exercise.hpp"

namespace simverbs::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string_view> split(std::string_view list, std::string_view separator) {
    std::vector<std::string_view> parts;
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(separator), list.size());
        parts.push_back(list.substr(0, end));
        list.remove_prefix(std::min(end + separator.size(), list.size()));
    }
    return parts;
}

// "{a,b}" of a type such as "TEXT:{a,b}".
Candidates words_of(std::string_view kind) {
    Candidates found;
    const std::size_t begin = kind.find('{');
    const std::size_t end = kind.find('}', begin);
    for (const std::string_view word : split(kind.substr(begin + 1, end - begin - 1), ",")) {
        found.words.push_back({std::string(word)});
    }
    return found;
}

// Scenarios or topologies that came with the command. There are many: the folder alone until it has
// been begun.
void add_installed(Candidates& found, const std::string& folder, std::string_view begun) {
    const std::string name = "scenarios/" + folder + "/";
    std::error_code none;
    if (!begun.starts_with(name)) {
        if (!fs::exists("scenarios", none)) {
            found.words.push_back({name, "installed"});
        }
        return;
    }
    std::set<std::string> names;
    for (const fs::directory_entry& entry :
         fs::directory_iterator(installed_folder(fs::path("scenarios") / folder), none)) {
        const fs::path file = entry.path().filename();
        if (file.extension() != ".md") {
            names.insert(name + file.string());
        }
    }
    for (const std::string& file : names) {
        found.words.push_back({file, "installed"});
    }
}

Candidates topologies(std::string_view begun) {
    Candidates found;
    found.others = ShellWords::kFiles;
    // "pair, star:N, each with eth- before it for Ethernet, or vpi-pair; attributes of links ...".
    const std::string_view generators = fabric::generators();
    for (std::string_view form : split(generators.substr(0, generators.find(';')), ", ")) {
        constexpr std::string_view kOr = "or ";
        form.remove_prefix(form.starts_with(kOr) ? kOr.size() : 0);
        if (form.find(' ') != std::string_view::npos) {
            continue;
        }
        const std::size_t colon = form.find(':');
        found.words.push_back(
            {std::string(form.substr(0, std::min(colon, form.size() - 1) + 1)), std::string(form)});
    }
    add_installed(found, "topologies", begun);
    return found;
}

Candidates scenarios(std::string_view begun) {
    Candidates found;
    found.others = ShellWords::kFiles;
    add_installed(found, "library", begun);
    return found;
}

Candidates worlds() {
    Candidates found;
    found.others = ShellWords::kFiles;
    for (const std::string& name : living_worlds()) {
        found.words.push_back({name});
    }
    return found;
}

Candidates exercises() {
    Candidates found;
    for (const std::string& name : lab::exercise_names(installed_folder("tutorials"))) {
        found.words.push_back({name});
    }
    return found;
}

// The fabric of the world that the command line names, as `fabric show --json` has it; null: none.
nlohmann::json ask_fabric(const Context& context) {
    const std::string world = context.value_of("--world");
    FabricRequest request;
    request.action = FabricAction::kShow;
    request.as_json = 1;
    FabricQuestion question(socket_path(world.empty() ? std::string(kDefaultWorld) : world),
                            request);
    if (!question.is_asked() || !question.take_answer() || question.error() != 0) {
        return nullptr;
    }
    return nlohmann::json::parse(question.text(), nullptr, false);
}

Candidates hosts_of_world(const Context& context) {
    Candidates found;
    const nlohmann::json fabric = ask_fabric(context);
    std::set<std::string> seen;
    for (const auto& node : fabric.is_object() ? fabric.at("nodes") : nlohmann::json::array()) {
        // Switches belong to no host.
        const std::string host = node.value("kind", "") == "switch" ? "" : node.value("host", "");
        if (!host.empty() && seen.insert(host).second) {
            found.words.push_back({host});
        }
    }
    return found;
}

// Names of nodes, links and ports, whichever are asked for.
Candidates names_of_world(const Context& context, bool nodes, bool links, bool ports) {
    Candidates found;
    const nlohmann::json fabric = ask_fabric(context);
    if (!fabric.is_object()) {
        return found;
    }
    const auto add = [&](const char* list, bool is_asked) {
        for (const auto& each : is_asked ? fabric.at(list) : nlohmann::json::array()) {
            found.words.push_back({each.value("name", "")});
        }
    };
    add("nodes", nodes);
    add("links", links);
    for (const auto& port : ports ? fabric.at("ports") : nlohmann::json::array()) {
        found.words.push_back(
            {fmt::format("{}:{}", port.value("node", ""), port.value("port", 0))});
    }
    return found;
}

Candidates hosts(const Context& context) {
    if (!context.has_own_world) {
        return hosts_of_world(context);
    }
    std::string topology = context.value_of("--topology");
    if (topology.empty()) {
        topology = environment_value(Setting::kTopology);
    }
    return hosts_of_topology(
        topology.empty() ? std::string(row_of(Setting::kTopology).by_default) : topology, "");
}

}  // namespace

Candidates hosts_of_topology(const std::string& topology, std::string_view behind) {
    std::vector<std::string_view> personalities;
    personalities.reserve(std::size(kPersonalities));
    for (const Personality* const each : kPersonalities) {
        personalities.push_back(each->name);
    }
    Candidates found;
    const auto loaded = fabric::load_topology(find_installed_file(topology), personalities);
    std::set<std::string> seen;
    for (const fabric::NodeSpec& node : loaded ? loaded->nodes : decltype(loaded->nodes){}) {
        const bool is_host = node.kind == fabric::NodeKind::kHca;
        if (is_host && seen.insert(fabric::host_of(node)).second) {
            found.words.push_back({fmt::format("{}{}", fabric::host_of(node), behind)});
        }
    }
    return found;
}

Candidates values_of_kind(std::string_view kind, const Context& context, std::string_view begun) {
    if (kind.find('{') != std::string_view::npos) {
        return words_of(kind);
    }
    kind = kind.substr(0, kind.find(':'));
    if (kind == "FILE" || kind == "FILE|DIR") {
        return {{}, ShellWords::kFiles};
    }
    return kind == "DIR"        ? Candidates{{}, ShellWords::kFolders}
           : kind == "WORD"     ? Candidates{{}, ShellWords::kCommands}
           : kind == "TOPOLOGY" ? topologies(begun)
           : kind == "SCENARIO" ? scenarios(begun)
           : kind == "WORLD"    ? worlds()
           : kind == "EXERCISE" ? exercises()
           : kind == "HOST"     ? hosts(context)
           : kind == "LINK"     ? names_of_world(context, false, true, false)
           : kind == "PORT"     ? names_of_world(context, false, false, true)
           : kind == "NAME"     ? names_of_world(context, true, true, true)
                                : Candidates{};
}

}  // namespace simverbs::cli
