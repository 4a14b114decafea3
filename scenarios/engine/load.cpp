// Reading a scenario: includes, settings, defaults and workloads make one document; the fabric
// gives the names of hosts and links; then every key, value and name is checked.
#include "fabric/topology/load.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <system_error>

#include <fmt/core.h>

#include "fabric/topology/yaml_text.hpp"
#include "fabric/yaml/fields.hpp"

#include "scenarios/engine/compose.hpp"
#include "scenarios/engine/format.hpp"
#include "scenarios/engine/scenario.hpp"
#include "scenarios/engine/usage.hpp"
#include "scenarios/engine/workloads.hpp"

namespace scenarios {

namespace {

namespace yaml = fabric::yaml;

std::string in_folder_of(const std::string& file, const std::string& path) {
    const std::filesystem::path wanted(path);
    return wanted.is_absolute() ? path
                                : (std::filesystem::path(file).parent_path() / wanted).string();
}

// The topology, and how simverbs_set_topology() is told of it.
// A failure is of a fabric that is described in the scenario itself.
fabric::Outcome<void> read_fabric(Scenario& scenario, yaml::Errors& errors) {
    const yaml::Value* const said = Checked(scenario.root).find("fabric");
    const auto take = [&](fabric::Outcome<fabric::Topology> made, yaml::Position position) {
        if (made) {
            scenario.topology = std::move(*made);
        } else {
            errors.add(position, made.error());
        }
    };
    if (said == nullptr || said->kind == yaml::Kind::kNothing) {
        scenario.topology_spec = scenario.default_fabric.topology;
        take(fabric::load_topology(scenario.topology_spec), {});
        return {};
    }
    if (said->kind == yaml::Kind::kScalar) {
        scenario.topology_spec = said->text;
        take(fabric::load_topology(said->text), said->position);
        return {};
    }
    const Checked body(*said);
    if (!body.has("file")) {
        fabric::Outcome<fabric::Topology> made = fabric::read_yaml(*said, scenario.files());
        if (!made) {
            return fabric::Failure(made.error());
        }
        scenario.topology = std::move(*made);
        return {};
    }
    constexpr auto kFileOnly = std::to_array<std::string_view>({"file"});
    const yaml::Fields only(*said, kFileOnly, errors);
    scenario.topology_spec = in_folder_of(scenario.file, body.text("file"));
    take(fabric::load_topology(scenario.topology_spec), said->position);
    return {};
}

void add_fabric_names(const fabric::Topology& topology, KnownNames& names) {
    std::map<std::string, int> seen;
    for (const fabric::NodeSpec& node : topology.nodes) {
        names.add(Names::kNode, node.name);
        if (node.kind == fabric::NodeKind::kHca) {
            names.add(Names::kHost, fabric::host_of(node));
            names.add(Names::kNode, fabric::host_of(node));
            names.add(Names::kHca, fabric::host_of(node));
            names.add(Names::kHca, node.name);
        }
    }
    for (const fabric::LinkSpec& link : topology.links) {
        const auto& [one, other] = std::minmax(link.a.node, link.b.node);
        const int nth = ++seen[fmt::format("{}-{}", one, other)];
        const std::string number = nth == 1 ? "" : fmt::format("#{}", nth);
        names.add(Names::kLink, fmt::format("{}-{}{}", one, other, number));
        names.add(Names::kLink, fmt::format("{}-{}{}", other, one, number));
    }
}

// Faults stand in the list, and wherever a program injects one.
void add_fault_names(const yaml::Value& value, KnownNames& names) {
    for (const yaml::Entry& entry : value.entries) {
        if (entry.key.text == "inject" && Checked(entry.value).has("name")) {
            names.add(Names::kFault, Checked(entry.value).text("name"));
        }
        add_fault_names(entry.value, names);
    }
    for (const yaml::Value& item : value.items) {
        add_fault_names(item, names);
    }
}

KnownNames names_of(const Scenario& scenario) {
    KnownNames names;
    if (scenario.is_fabric_known()) {
        add_fabric_names(scenario.topology, names);
    } else {
        for (const Names kind : {Names::kHost, Names::kNode, Names::kHca, Names::kLink}) {
            names.accept_all(kind);
        }
    }
    names.add(Names::kMemory, "mem");
    const auto add = [&names](Names kind, Checked mapping) {
        for (const auto& [name, unused] : mapping.entries()) {
            names.add(kind, name.text);
        }
    };
    for (const auto& [host, value] : scenario.at("hosts").entries()) {
        const Checked body(value);
        if (body.has("do")) {
            names.add(Names::kProgram, host.text);
        }
        add(Names::kMemory, body.at("memory"));
        add(Names::kCq, body.at("completion_queues"));
        add(Names::kSrq, body.at("shared_receives"));
        add(Names::kWindow, body.at("windows"));
    }
    if (!scenario.has_own_programs()) {
        names.number_ends();
    }
    add(Names::kProgram, scenario.at("programs"));
    add(Names::kConnection, scenario.at("connections"));
    for (const auto& [name, value] : scenario.at("connections").entries()) {
        names.add(Names::kCq, name.text);
        if (Checked(value).text("type") == "XRC") {
            names.add(Names::kSrq, name.text);
        }
        for (const yaml::Value& host : Checked(value).at("between").items()) {
            names.add(Names::kEnd, host.text + "/" + name.text);
        }
    }
    int unnamed = 0;
    for (const yaml::Value& fault : scenario.at("faults").items()) {
        const Checked body(fault);
        names.add(Names::kFault,
                  body.has("name") ? body.text("name") : fmt::format("fault{}", ++unnamed));
    }
    add_fault_names(scenario.root, names);
    return names;
}

fabric::Outcome<std::string> read_file(const std::string& file) {
    // Reading a folder throws.
    std::error_code ignored;
    if (std::filesystem::is_directory(file, ignored)) {
        return fabric::Failure(file + ": cannot be read: it is a folder");
    }
    std::ifstream in(file, std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(in), {});
    if (!in) {
        return fabric::Failure(file + ": cannot be read");
    }
    return text;
}

// Merging would hide them.
void find_repeated_keys(const yaml::Value& value, yaml::Errors& errors) {
    std::set<std::string_view> seen;
    for (const yaml::Entry& entry : value.entries) {
        if (!seen.insert(entry.key.text).second) {
            errors.add(entry.key.position, fmt::format("\"{}\" a second time", entry.key.text));
        }
        find_repeated_keys(entry.value, errors);
    }
    for (const yaml::Value& item : value.items) {
        find_repeated_keys(item, errors);
    }
}

void set_file(yaml::Value& value, std::size_t file) {
    value.position.file = file;
    for (yaml::Entry& entry : value.entries) {
        set_file(entry.key, file);
        set_file(entry.value, file);
    }
    for (yaml::Value& item : value.items) {
        set_file(item, file);
    }
}

// The files that a document is made of: all, and those that are being read.
struct Files {
    std::set<std::string> open;
    std::vector<std::string> included{};
};

// `include: [files]`: this document goes over them, later ones over earlier ones.
fabric::Outcome<yaml::Value> read_document(std::string_view text, const std::string& file,
                                           Files& files) {
    const std::size_t place = files.included.size();
    yaml::Errors errors(file);
    auto document = yaml::parse(text, errors);
    if (!document) {
        return fabric::Failure(errors.text());
    }
    if (document->kind == yaml::Kind::kNothing) {
        document->kind = yaml::Kind::kMapping;
    }
    find_repeated_keys(*document, errors);
    yaml::Value whole;
    whole.kind = yaml::Kind::kMapping;
    const yaml::Value none;
    const yaml::Value* const includes = Checked(*document).find("include");
    if (includes != nullptr && includes->kind == yaml::Kind::kScalar) {
        errors.add(includes->position,
                   fmt::format("expected a list of files: include: [{}]", includes->text));
        return fabric::Failure(errors.text());
    }
    for (const yaml::Value& item : yaml::items_of(includes == nullptr ? none : *includes, errors)) {
        const std::string path = in_folder_of(file, item.text);
        if (!files.open.insert(path).second) {
            errors.add(item.position, fmt::format("\"{}\" includes itself", item.text));
        } else if (const auto included = read_file(path); !included) {
            errors.add(item.position, included.error());
        } else {
            files.included.push_back(path);
            auto other = read_document(*included, path, files);
            if (!other) {
                return other;
            }
            merge(whole, std::move(*other));
            files.open.erase(path);
        }
    }
    if (!errors.empty()) {
        return fabric::Failure(errors.text());
    }
    std::erase_if(document->entries,
                  [](const yaml::Entry& entry) { return entry.key.text == "include"; });
    set_file(*document, place);
    if (document->kind != yaml::Kind::kMapping) {
        return std::move(*document);  // the check of its shape says what it is
    }
    merge(whole, std::move(*document));
    return whole;
}

// Before workloads are part of the document only they can be checked: others may speak of what they
// make.
fabric::Outcome<void> check_part(Scenario& scenario, const Shape& shape, Checked part) {
    yaml::Errors errors(scenario.files());
    scenario.topology_spec.clear();
    fabric::Outcome<void> of_fabric = read_fabric(scenario, errors);
    if (errors.empty() && of_fabric) {
        check(part.value() == nullptr ? yaml::Value{} : *part.value(), shape, names_of(scenario),
              errors);
    }
    if (&shape == &format::kScenario && errors.empty() && of_fabric) {
        check_usage(scenario, errors);
    }
    if (!errors.empty()) {
        return fabric::Failure(errors.text());
    }
    return of_fabric;
}

std::size_t connections_of(const std::string& kind, Checked body, std::size_t all_hosts) {
    const auto named = [body, all_hosts](std::string_view key) {
        const std::size_t hosts = body.at(key).items().size();
        return hosts == 0 ? all_hosts : hosts;
    };
    if (kind == "all_to_all") {
        const std::size_t hosts = named("hosts");
        return hosts * (hosts - std::min<std::size_t>(hosts, 1)) / 2;
    }
    if (kind == "incast") {
        return named("from");
    }
    return kind == "key_value" ? named("clients") : 1;
}

void find_repeated_hosts(Checked body, yaml::Errors& errors) {
    for (const char* const key : {"hosts", "from", "clients"}) {
        std::set<std::string_view> seen;
        for (const yaml::Value& host : body.at(key).items()) {
            if (!seen.insert(host.text).second) {
                errors.add(host.position, fmt::format("\"{}\" a second time", host.text));
            }
        }
    }
}

// A short line of a file may mean a great many queue pairs.
fabric::Outcome<void> check_size(const Scenario& scenario) {
    constexpr std::size_t kMost = 524'288;  // all_to_all of 1024 hosts has 523,776
    yaml::Errors errors(scenario.files());
    const std::size_t hosts = scenario.hosts().size();
    std::size_t before = 0;
    for (const auto& [name, value] : scenario.at("workloads").entries()) {
        const yaml::Entry& kind = value.entries.front();
        find_repeated_hosts(Checked(kind.value), errors);
        const std::size_t own = connections_of(kind.key.text, Checked(kind.value), hosts);
        if (before + own > kMost) {
            errors.add(kind.key.position,
                       fmt::format("{} connections: workloads may have {} in all{}; name fewer "
                                   "hosts",
                                   own, kMost,
                                   before == 0 ? "" : fmt::format(", and {} came before", before)));
            break;
        }
        before += own;
    }
    if (!errors.empty()) {
        return fabric::Failure(errors.text());
    }
    return {};
}

}  // namespace

std::vector<std::string> Scenario::files() const {
    std::vector<std::string> all{file};
    all.insert(all.end(), included.begin(), included.end());
    return all;
}

std::vector<std::string> Scenario::hosts() const {
    std::vector<std::string> names;
    for (const fabric::NodeSpec& node : topology.nodes) {
        const std::string& host = fabric::host_of(node);
        if (node.kind == fabric::NodeKind::kHca && std::ranges::find(names, host) == names.end()) {
            names.push_back(host);
        }
    }
    return names;
}

bool Scenario::is_fabric_known() const {
    return default_fabric.is_certain || Checked(root).has("fabric");
}

bool Scenario::has_own_programs() const {
    for (const char* const section : {"programs", "connections", "workloads"}) {
        if (!at(section).entries().empty()) {
            return true;
        }
    }
    return std::ranges::any_of(at("hosts").entries(), [](const yaml::Entry& host) {
        return Checked(host.value).has("do");
    });
}

bool Scenario::has_processes() const {
    return std::ranges::any_of(at("hosts").entries(), [](const yaml::Entry& host) {
        return Checked(host.value).has("run");
    });
}

fabric::Outcome<Scenario> parse(std::string_view text, const std::string& file, Settings settings,
                                const DefaultFabric& otherwise) {
    Files files{{file}};
    auto root = read_document(text, file, files);
    if (!root) {
        return fabric::Failure(root.error());
    }
    for (const std::string& setting : settings) {
        if (const auto changed = set(*root, setting); !changed) {
            return fabric::Failure(changed.error());
        }
    }
    Scenario scenario{file, std::move(*root), {}, {}, std::move(files.included), otherwise};
    auto checked = check_part(scenario, format::kWorkloads, scenario.at("workloads"));
    if (checked) {
        checked = check_size(scenario);
    }
    if (checked && Checked(scenario.root).has("defaults")) {
        checked = check_part(scenario, format::kDefaults, scenario.at("defaults"));
    }
    if (checked) {
        apply_defaults(scenario.root);
        expand_workloads(scenario);
        checked = check_part(scenario, format::kScenario, Checked(scenario.root));
    }
    if (!checked) {
        return fabric::Failure(checked.error());
    }
    return scenario;
}

namespace {

// Where the file is right without the settings, names the first with which it is wrong in place of
// a line of the file, which has none of it. Returns `errors` where the file itself is wrong.
std::string blame_setting(std::string_view text, const std::string& file, Settings settings,
                          std::string errors) {
    if (!parse(text, file, {})) {
        return errors;
    }
    for (std::size_t count = 1; count <= settings.size(); ++count) {
        const auto scenario = parse(text, file, settings.first(count));
        if (scenario) {
            continue;
        }
        std::string found = scenario.error();
        const std::string& setting = settings[count - 1];
        std::string place = file + ':';
        if (found.starts_with(place)) {
            const std::size_t line_end = found.find(':', place.size());
            const std::size_t message = found.find(": ", std::min(line_end, found.size()));
            found.erase(0, message == std::string::npos ? 0 : message + 2);
        }
        return found.starts_with("--set ") ? found : fmt::format("--set {}: {}", setting, found);
    }
    return errors;
}

}  // namespace

std::string to_text(const Scenario& scenario) {
    return to_text(scenario.root);
}

fabric::Outcome<Scenario> load(const std::string& file, Settings settings,
                               const DefaultFabric& otherwise) {
    const auto text = read_file(file);
    if (!text) {
        return fabric::Failure(text.error());
    }
    auto scenario = parse(*text, file, settings, otherwise);
    if (!scenario && !settings.empty()) {
        return fabric::Failure(blame_setting(*text, file, settings, scenario.error()));
    }
    return scenario;
}

}  // namespace scenarios
