#include "scenarios/engine/topology_records.hpp"

#include <map>

#include <fmt/core.h>

namespace scenarios {

std::vector<Record> records_of_topology(fabric::Topology topology) {
    topology.sort();
    std::vector<Record> records;
    std::map<std::string, std::uint64_t> numbers;
    std::map<std::string, int> links_between;
    const auto text = [](const char* name, std::string value) {
        return Record::Field{name, std::move(value), 0};
    };
    const auto number = [](const char* name, std::uint64_t value) {
        return Record::Field{name, std::to_string(value), value};
    };
    for (const fabric::NodeSpec& node : topology.nodes) {
        numbers.try_emplace(node.name, numbers.size());
        records.push_back(
            {0,
             node.name,
             "object",
             "node",
             {text("label", node.name),
              text("host", node.kind == fabric::NodeKind::kHca ? fabric::host_of(node) : node.name),
              text("kind", std::string(to_string(node.kind)))}});
    }
    for (const fabric::LinkSpec& link : topology.links) {
        std::string name = fmt::format("{}-{}", link.a.node, link.b.node);
        if (const int ordinal = ++links_between[name]; ordinal > 1) {
            name += fmt::format("#{}", ordinal);
        }
        records.push_back(
            {0,
             link.a.node,
             "object",
             "link",
             {text("link", std::move(name)), number("port", link.a.port.value()),
              number("peer", numbers[link.b.node]), number("peer_port", link.b.port.value())}});
    }
    return records;
}

}  // namespace scenarios
