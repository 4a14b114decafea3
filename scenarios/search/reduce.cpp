#include "scenarios/search/reduce.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "fabric/topology/yaml_text.hpp"

namespace scenarios {

namespace yaml = fabric::yaml;

namespace {

Document* find(Document& mapping, std::string_view key) {
    const auto found = std::ranges::find_if(
        mapping.entries, [key](const yaml::Entry& entry) { return entry.key.text == key; });
    return found == mapping.entries.end() ? nullptr : &found->value;
}

Document scalar(std::string text) {
    Document value;
    value.kind = yaml::Kind::kScalar;
    value.text = std::move(text);
    return value;
}

void put(Document& mapping, std::string_view key, Document value) {
    mapping.kind = yaml::Kind::kMapping;
    if (Document* const there = find(mapping, key)) {
        *there = std::move(value);
    } else {
        mapping.entries.push_back({scalar(std::string(key)), std::move(value)});
    }
}

void drop(Document& mapping, std::string_view key) {
    std::erase_if(mapping.entries,
                  [key](const yaml::Entry& entry) { return entry.key.text == key; });
}

std::string name_of(const Document& fault) {
    return Checked(fault).text("name");
}

// `root.expect.fired` without those that are no longer there.
void forget_fired(Document& root, const std::set<std::string>& kept) {
    Document* const expect = find(root, "expect");
    Document* const fired = expect == nullptr ? nullptr : find(*expect, "fired");
    if (fired != nullptr) {
        std::erase_if(fired->entries,
                      [&kept](const yaml::Entry& entry) { return !kept.contains(entry.key.text); });
        if (fired->entries.empty()) {
            drop(*expect, "fired");
        }
    }
}

// Returns true if an item of a list speaks of one of them; lists within it answer for themselves.
bool speaks_of(const Document& value, const NamesGone& gone) {
    if (value.kind == yaml::Kind::kScalar) {
        return gone.contains(value.text);
    }
    return std::ranges::any_of(value.entries, [&gone](const yaml::Entry& entry) {
        return entry.value.kind != yaml::Kind::kList && speaks_of(entry.value, gone);
    });
}

// A loop of nothing.
bool is_hollow(const Document& item) {
    if (item.entries.size() != 1) {
        return false;
    }
    const Document* const body =
        item.entries[0].key.text == "loop" ? Checked(item.entries[0].value).find("do") : nullptr;
    return body != nullptr && body->items.empty();
}

void prune(Document& value, const NamesGone& gone) {
    std::erase_if(value.entries,
                  [&gone](const yaml::Entry& entry) { return gone.contains(entry.key.text); });
    std::erase_if(value.items, [&gone](const Document& item) { return speaks_of(item, gone); });
    for (yaml::Entry& entry : value.entries) {
        prune(entry.value, gone);
    }
    for (Document& item : value.items) {
        prune(item, gone);
    }
    std::erase_if(value.items, is_hollow);
}

// Programs that do nothing, hosts that have nothing.
void drop_empty_programs(Document& root) {
    const auto does_nothing = [](const yaml::Entry& entry) {
        const Document* const list = Checked(entry.value).find("do");
        return list != nullptr && list->items.empty();
    };
    if (Document* const programs = find(root, "programs")) {
        std::erase_if(programs->entries, does_nothing);
    }
    if (Document* const hosts = find(root, "hosts")) {
        for (yaml::Entry& entry : hosts->entries) {
            if (does_nothing(entry)) {
                drop(entry.value, "do");
            }
        }
        std::erase_if(hosts->entries,
                      [](const yaml::Entry& entry) { return entry.value.entries.empty(); });
    }
    for (const char* const section : {"programs", "hosts", "faults"}) {
        const Document* const there = find(root, section);
        if (there != nullptr && there->entries.empty() && there->items.empty()) {
            drop(root, section);
        }
    }
}

// The lists within an operation.
std::vector<Document*> lists_within(Document& operation) {
    std::vector<Document*> lists;
    for (yaml::Entry& entry : operation.entries) {
        if (entry.key.text == "loop") {
            if (Document* const body = find(entry.value, "do")) {
                lists.push_back(body);
            }
        } else if (entry.key.text == "parallel") {
            for (Document& branch : entry.value.items) {
                lists.push_back(&branch);
            }
        }
    }
    return lists;
}

// Every list is visited whole, kept or not: numbers are those of the document before.
void keep_operations(Document& list, const Kept& kept, std::size_t& number) {
    std::vector<Document> left;
    for (Document& operation : list.items) {
        const bool stays = kept[number++];
        for (Document* const inner : lists_within(operation)) {
            keep_operations(*inner, kept, number);
        }
        if (stays && !is_hollow(operation)) {
            left.push_back(std::move(operation));
        }
    }
    list.items = std::move(left);
}

std::size_t count_in(Document& list) {
    std::size_t count = 0;
    for (Document& operation : list.items) {
        ++count;
        for (Document* const inner : lists_within(operation)) {
            count += count_in(*inner);
        }
    }
    return count;
}

std::vector<Document*> programs_of(Document& root) {
    std::vector<Document*> lists;
    for (const char* const section : {"hosts", "programs"}) {
        if (Document* const there = find(root, section)) {
            for (yaml::Entry& entry : there->entries) {
                if (Document* const list = find(entry.value, "do")) {
                    lists.push_back(list);
                }
            }
        }
    }
    return lists;
}

void visit_counts(Document& value, std::size_t& number,
                  const std::function<void(std::size_t, Document&)>& change) {
    for (yaml::Entry& entry : value.entries) {
        const bool counts = entry.key.text == "times" || entry.key.text == "count";
        if (counts && entry.value.kind == yaml::Kind::kScalar) {
            change(number++, entry.value);
        }
        visit_counts(entry.value, number, change);
    }
    for (Document& item : value.items) {
        visit_counts(item, number, change);
    }
}

// A word that is that host, one of its ends ("h0/c") or of its links ("h0-s0").
bool names_host(std::string_view word, std::string_view host) {
    if (word == host) {
        return true;
    }
    if (word.starts_with(host) && (word[host.size()] == '/' || word[host.size()] == '-')) {
        return true;
    }
    const std::string_view other_end = word.substr(0, word.find('#'));
    return other_end.size() > host.size() && other_end.ends_with(host) &&
           other_end[other_end.size() - host.size() - 1] == '-';
}

bool is_named(const Document& value, std::string_view host) {
    return (value.kind == yaml::Kind::kScalar && names_host(value.text, host)) ||
           std::ranges::any_of(value.items,
                               [host](const Document& item) { return is_named(item, host); }) ||
           std::ranges::any_of(value.entries, [host](const yaml::Entry& entry) {
               return entry.key.text != "fabric" &&
                      (names_host(entry.key.text, host) || is_named(entry.value, host));
           });
}

fabric::Topology without_idle(const fabric::Topology& topology,
                              const std::vector<std::string>& hosts) {
    fabric::Topology small = topology;
    std::set<std::string> gone;
    for (const fabric::NodeSpec& node : topology.nodes) {
        if (node.kind == fabric::NodeKind::kHca &&
            std::ranges::find(hosts, fabric::host_of(node)) == hosts.end()) {
            gone.insert(node.name);
        }
    }
    std::erase_if(small.links, [&gone](const fabric::LinkSpec& link) {
        return gone.contains(link.a.node) || gone.contains(link.b.node);
    });
    std::erase_if(small.nodes, [&](const fabric::NodeSpec& node) {
        return gone.contains(node.name) ||
               std::ranges::none_of(small.links, [&node](const fabric::LinkSpec& link) {
                   return link.a.node == node.name || link.b.node == node.name;
               });
    });
    return small;
}

// The trigger of one firing. A packet is told by its PSN and transmission: what other faults drop
// before it does not change them, as it changes how many packets a fault has seen.
Document when_of(const FiringPlace& firing, Document when) {
    for (const char* const key : {"chance", "count", "nth"}) {
        drop(when, key);
    }
    const PacketHit& packet = firing.packet;
    if (packet.end.empty() || Checked(when).has("transmitter")) {
        put(when, "nth", scalar(std::to_string(firing.nth)));
        return when;
    }
    put(when, "qp", scalar(packet.end));
    put(when, "direction", scalar(packet.is_response ? "responses" : "requests"));
    for (const char* const key : {"from", "to"}) {
        drop(when, key);  // the queue pair and the direction say it
    }
    put(when, "psn", scalar(std::to_string(packet.psn)));
    put(when, "attempt", scalar(std::to_string(packet.attempt)));
    return when;
}

}  // namespace

void name_faults(Document& root) {
    int unnamed = 0;
    if (Document* const faults = find(root, "faults")) {
        for (Document& fault : faults->items) {
            if (find(fault, "name") == nullptr) {
                put(fault, "name", scalar(fmt::format("fault{}", ++unnamed)));
            }
        }
    }
}

std::vector<std::string> fault_names(const Document& root) {
    std::vector<std::string> names;
    for (const Document& fault : Checked(root).at("faults").items()) {
        names.push_back(name_of(fault));
    }
    return names;
}

Document with_faults(const Document& root, const std::set<std::string>& kept) {
    Document made = root;
    if (Document* const faults = find(made, "faults")) {
        std::erase_if(faults->items,
                      [&kept](const Document& fault) { return !kept.contains(name_of(fault)); });
        if (faults->items.empty()) {
            drop(made, "faults");
        }
    }
    forget_fired(made, kept);
    return made;
}

Document with_each_firing(const Document& root, const std::string& fault,
                          const std::vector<FiringPlace>& firings) {
    Document made = root;
    Document* const faults = find(made, "faults");
    const auto found = std::ranges::find(faults->items, fault, name_of);
    const Document usual = *found;
    const auto place = faults->items.erase(found);
    std::vector<Document> each;
    for (std::size_t i = 0; i < firings.size(); ++i) {
        Document one = usual;
        put(one, "name", scalar(i == 0 ? fault : fmt::format("{}.{}", fault, i + 1)));
        const Document* const when = find(one, "when");
        put(one, "when", when_of(firings[i], when == nullptr ? Document{} : *when));
        each.push_back(std::move(one));
    }
    faults->items.insert(place, each.begin(), each.end());
    std::vector<std::string> names = fault_names(made);
    std::erase(names, fault);  // it fires once now, whatever was expected
    forget_fired(made, {names.begin(), names.end()});
    return made;
}

NamesGone names_of_connection(const Scenario& scenario, const std::string& connection) {
    NamesGone gone{connection};
    for (const yaml::Value& host :
         scenario.at("connections").at(connection).at("between").items()) {
        gone.insert(fmt::format("{}/{}", host.text, connection));
    }
    return gone;
}

NamesGone names_of_host(const Scenario& scenario, const std::string& host) {
    NamesGone gone{host};
    for (const auto& [name, body] : scenario.at("programs").entries()) {
        if (Checked(body).text("host") == host) {
            gone.insert(name.text);
        }
    }
    for (const auto& [name, body] : scenario.at("connections").entries()) {
        const auto between = Checked(body).at("between").items();
        if (std::ranges::any_of(between, [&](const Document& end) { return end.text == host; })) {
            gone.merge(names_of_connection(scenario, name.text));
        }
    }
    std::set<std::string> nodes;
    for (const fabric::NodeSpec& node : scenario.topology.nodes) {
        if (node.kind == fabric::NodeKind::kHca && fabric::host_of(node) == host) {
            nodes.insert(node.name);
            gone.insert(node.name);
        }
    }
    for (const fabric::LinkSpec& link : scenario.topology.links) {
        if (nodes.contains(link.a.node) || nodes.contains(link.b.node)) {
            gone.insert(link.a.node + "-" + link.b.node);
            gone.insert(link.b.node + "-" + link.a.node);
        }
    }
    return gone;
}

Document without(const Document& root, const NamesGone& gone) {
    Document made = root;
    prune(made, gone);
    drop_empty_programs(made);
    return made;
}

std::vector<Document> on_smaller_fabrics(const Scenario& scenario) {
    std::vector<std::string> hosts;
    for (const std::string& host : scenario.hosts()) {
        if (is_named(scenario.root, host)) {
            hosts.push_back(host);
        }
    }
    const fabric::Topology small = without_idle(scenario.topology, hosts);
    std::vector<Document> made;
    const auto add = [&](Document fabric, std::size_t nodes) {
        if (nodes < scenario.topology.nodes.size()) {
            Document one = scenario.root;
            put(one, "fabric", std::move(fabric));
            made.push_back(std::move(one));
        }
    };
    const bool ethernet = !scenario.topology.links.empty() &&
                          scenario.topology.links[0].layer == fabric::LinkLayer::kEthernet;
    const std::string prefix = ethernet ? "eth-" : "";
    constexpr std::size_t kOfPair = 2;
    constexpr std::size_t kOfStar = 3;
    add(scalar(prefix + "pair"), kOfPair);
    add(scalar(prefix + "star:2"), kOfStar);
    yaml::Errors errors("fabric");
    if (const auto text = hosts.empty() ? std::nullopt : yaml::parse(write_yaml(small), errors)) {
        add(*text, small.nodes.size());
    }
    return made;
}

std::size_t count_operations(const Document& root) {
    Document copy = root;
    std::size_t count = 0;
    for (Document* const list : programs_of(copy)) {
        count += count_in(*list);
    }
    return count;
}

Document with_operations(const Document& root, const Kept& kept) {
    Document made = root;
    std::size_t number = 0;
    for (Document* const list : programs_of(made)) {
        keep_operations(*list, kept, number);
    }
    drop_empty_programs(made);
    return made;
}

void for_each_count(Document& root, const std::function<void(std::size_t, Document&)>& change) {
    std::size_t number = 0;
    for (Document* const list : programs_of(root)) {
        visit_counts(*list, number, change);
    }
}

Document without_key(const Document& root, std::string_view section, std::string_view key) {
    Document made = root;
    Document* const inside = section.empty() ? &made : find(made, section);
    if (inside != nullptr) {
        drop(*inside, key);
        if (!section.empty() && inside->entries.empty()) {
            drop(made, section);
        }
    }
    return made;
}

}  // namespace scenarios
