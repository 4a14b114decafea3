#include "simverbs/server/fabric_report.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "fabric/core/counted.hpp"
#include "fabric/mad/managed_network.hpp"
#include "fabric/yaml/quantities.hpp"

#include "simverbs/model/hw_counters.hpp"
#include "simverbs/server/report_json.hpp"
#include "simverbs/server/text_table.hpp"
#include "simverbs/world/counter_files.hpp"

namespace simverbs {
namespace {

using fabric::Link;
using fabric::Node;
using fabric::NodeKind;
using fabric::Port;
using fabric::PortCounters;
using fabric::PortNumber;

using Counted = std::vector<std::pair<std::string_view, std::uint64_t>>;

// Returns the node whose performance agent answers for an InfiniBand port; nullptr for one on
// Ethernet, whose counters are the driver's.
fabric::ManagedNode* managed_node_of(Simulation& simulation, const Port& port) {
    return port.attributes().link_layer == fabric::LinkLayer::kInfiniband
               ? simulation.managed_network().find(port.node().id())
               : nullptr;
}

Counted counters_of(Simulation& simulation, const Port& port) {
    Counted counted;
    if (fabric::ManagedNode* const managed = managed_node_of(simulation, port)) {
        for (const CounterFile& row : kCounterFiles) {
            counted.emplace_back(row.name,
                                 managed->performance().value(port.number(), row.counter));
        }
        return counted;
    }
    for (const EthernetCounterFile& row : kEthernetCounterFiles) {
        counted.emplace_back(row.name, row.value(port.counters()));
    }
    counted.emplace_back("ecn_marked_packets", port.counters().marked);
    counted.emplace_back("pause_frames_sent", port.counters().pauses_sent);
    counted.emplace_back("discards", port.counters().total_discards());
    return counted;
}

Counted hardware_counters_of(const Simulation& simulation, const Port& port) {
    Counted counted;
    if (port.node().kind() != NodeKind::kHca) {
        return counted;
    }
    const HwCounters& counters =
        simulation.hca(port.node().id().value()).hw_counters(port.number().value());
    for (const HwCounterRow& row : kHwCounters) {
        counted.emplace_back(row.name, counters.value(row.counter));
    }
    return counted;
}

std::string lid_text(const Port& port) {
    const fabric::PortAttributes& attributes = port.attributes();
    if (attributes.lid == fabric::kNoLid) {
        return "-";
    }
    const unsigned last = attributes.lid.value() + (1U << attributes.lmc) - 1;
    return attributes.lmc == 0 ? fmt::format("{}", attributes.lid.value())
                               : fmt::format("{}-{}", attributes.lid.value(), last);
}

std::string guid_text(fabric::Guid guid) {
    return fmt::format("{:#018x}", guid.value());
}

// Those that frames come for: a switch has one at port 0 alone.
std::span<const fabric::GidEntry> gids_of(const Port& port) {
    const bool is_external = port.node().kind() == NodeKind::kSwitch && port.number().value() != 0;
    return is_external ? std::span<const fabric::GidEntry>() : port.attributes().gids;
}

// As inet_ntop(3): "::ffff:10.0.0.1" for an address of IPv4.
std::string gid_text(const fabric::Gid& gid) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(AF_INET6, gid.bytes.data(), text.data(), text.size());
    return text.data();
}

std::string_view gid_type_name(fabric::GidType type) {
    switch (type) {
        case fabric::GidType::kInfiniband:
            return "InfiniBand";
        case fabric::GidType::kRoceV1:
            return "RoCE v1";
        case fabric::GidType::kRoceV2:
            return "RoCE v2";
    }
    return "?";
}

std::string node_table(const std::vector<const Node*>& nodes) {
    std::vector<TableRow> rows{{"node", "kind", "host", "ports", "GUID", "description"}};
    for (const Node* const node : nodes) {
        rows.push_back({node->name(), std::string(to_string(node->kind())),
                        node->kind() == NodeKind::kHca ? node->host() : "-",
                        std::to_string(node->port_count()), guid_text(node->guid()),
                        node->description()});
    }
    return text_table(rows);
}

std::string port_table(const std::vector<const Port*>& ports) {
    std::vector<TableRow> rows{{"port", "LID", "state", "physical", "rate", "MTU", "peer"}};
    for (const Port* const port : ports) {
        TableRow row{port_name(*port), lid_text(*port)};
        if (port->link() == nullptr) {
            row.resize(rows.front().size(), "-");
        } else {
            row.emplace_back(to_string(port->state()));
            row.emplace_back(to_string(port->physical_state()));
            row.push_back(rate_of(*port));
            row.push_back(fmt::format("{}B", port->attributes().link_mtu_bytes()));
            row.push_back(port_name(*port->peer()));
        }
        rows.push_back(std::move(row));
    }
    return text_table(rows);
}

// The P_Keys and GIDs of ports that have GIDs, a GID a line; of a port without any that is alone,
// the P_Keys.
std::string address_table(const std::vector<const Port*>& ports) {
    std::vector<TableRow> rows{{"port", "P_Keys", "GID index", "GID", "type", "VLAN"}};
    for (const Port* const port : ports) {
        const fabric::PortAttributes& attributes = port->attributes();
        std::string pkeys;
        for (const std::uint16_t pkey : attributes.pkeys) {
            pkeys += fmt::format("{}{:#06x}", pkeys.empty() ? "" : " ", pkey);
        }
        const std::span<const fabric::GidEntry> gids = gids_of(*port);
        if (gids.empty() && !pkeys.empty() && ports.size() == 1) {
            rows.push_back({port_name(*port), pkeys, "-", "-", "-", "-"});
        }
        for (std::size_t i = 0; i < gids.size(); ++i) {
            const fabric::GidEntry& entry = gids[i];
            rows.push_back({i == 0 ? port_name(*port) : "", i == 0 ? pkeys : "", std::to_string(i),
                            gid_text(entry.gid), std::string(gid_type_name(entry.type)),
                            entry.vlan == 0 ? "-" : std::to_string(entry.vlan)});
        }
    }
    return rows.size() == 1 ? "" : text_table(rows);
}

std::string link_table(const std::vector<const Link*>& links) {
    std::vector<TableRow> rows{{"link", "layer", "state", "rate", "latency", "packets >", "bytes >",
                                "< packets", "< bytes"}};
    for (const Link* const link : links) {
        TableRow row{link->name(), std::string(to_string(link->end(0).attributes().link_layer)),
                     std::string(to_string(link->state())), rate_of(link->end(0)),
                     fabric::yaml::duration_text(link->latency())};
        for (const std::size_t end : {0U, 1U}) {
            const PortCounters& counters = link->end(end).counters();
            row.push_back(std::to_string(counters.xmit_packets));
            row.push_back(std::to_string(counters.xmit_data_bytes));
        }
        rows.push_back(std::move(row));
    }
    return text_table(rows);
}

Json json_of(const Node& node) {
    return {{"name", node.name()},
            {"kind", to_string(node.kind())},
            {"host", node.host()},
            {"ports", node.port_count()},
            {"guid", guid_text(node.guid())},
            {"description", node.description()}};
}

Json json_of(const fabric::GidEntry& entry) {
    Json json{{"gid", gid_text(entry.gid)}, {"type", gid_type_name(entry.type)}};
    if (entry.vlan != 0) {
        json["vlan"] = entry.vlan;
    }
    return json;
}

Json json_of(const Port& port) {
    const fabric::PortAttributes& attributes = port.attributes();
    Json json{{"node", port.node().name()},
              {"port", port.number().value()},
              {"guid", guid_text(attributes.guid)},
              {"lid", attributes.lid.value()},
              {"lmc", attributes.lmc},
              {"sm_lid", attributes.sm_lid.value()},
              {"pkeys", Json::array()},
              {"gids", Json::array()}};
    for (const std::uint16_t pkey : attributes.pkeys) {
        json["pkeys"].push_back(pkey);
    }
    for (const fabric::GidEntry& entry : gids_of(port)) {
        json["gids"].push_back(json_of(entry));
    }
    if (port.link() != nullptr) {
        json.update({{"link", port.link()->name()},
                     {"state", to_string(port.state())},
                     {"physical_state", to_string(port.physical_state())},
                     {"rate", rate_of(port)},
                     {"mtu", attributes.link_mtu_bytes()},
                     {"peer", port_name(*port.peer())}});
    }
    return json;
}

Json json_of(const Link& link) {
    Json json{{"name", link.name()},
              {"layer", to_string(link.end(0).attributes().link_layer)},
              {"state", to_string(link.state())},
              {"rate", rate_of(link.end(0))},
              {"bits_per_second", link.rate().bits_per_second()},
              {"latency_ps", link.latency().count()},
              {"from", Json::array()}};
    for (const std::size_t end : {0U, 1U}) {
        const PortCounters& counters = link.end(end).counters();
        json["from"].push_back({{"port", port_name(link.end(end))},
                                {"packets", counters.xmit_packets},
                                {"bytes", counters.xmit_data_bytes}});
    }
    return json;
}

Json json_of(const Counted& counted) {
    Json json = Json::object();
    for (const auto& [counter, value] : counted) {
        json[std::string(counter)] = value;
    }
    return json;
}

template <class Things>
Json json_of_all(const Things& things) {
    Json json = Json::array();
    for (const auto* const thing : things) {
        json.push_back(json_of(*thing));
    }
    return json;
}

}  // namespace

std::string rate_of(const Port& port) {
    const fabric::PortAttributes& attributes = port.attributes();
    return fabric::yaml::spoken_rate({attributes.width, attributes.speed},
                                     attributes.link_layer == fabric::LinkLayer::kEthernet);
}

std::string port_name(const Port& port) {
    return fmt::format("{}:{}", port.node().name(), port.number().value());
}

std::vector<const Port*> ports_of(const Node& node) {
    std::vector<const Port*> ports;
    const bool is_switch = node.kind() == NodeKind::kSwitch;
    for (std::uint16_t number = is_switch ? 0 : 1; number <= node.port_count(); ++number) {
        const Port& port = node.port(PortNumber{number});
        if (number == 0 ? port.attributes().link_layer == fabric::LinkLayer::kInfiniband
                        : port.link() != nullptr) {
            ports.push_back(&port);
        }
    }
    return ports;
}

FabricPart whole_fabric(const fabric::Network& network) {
    FabricPart all;
    for (std::size_t i = 0; i < network.node_count(); ++i) {
        const Node& node = network.node(fabric::NodeId{static_cast<std::uint32_t>(i)});
        all.nodes.push_back(&node);
        const std::vector<const Port*> ports = ports_of(node);
        all.ports.insert(all.ports.end(), ports.begin(), ports.end());
    }
    for (std::size_t i = 0; i < network.link_count(); ++i) {
        all.links.push_back(&network.link(i));
    }
    return all;
}

std::string show_fabric(Simulation& simulation, const FabricPart& part, bool as_json) {
    if (!as_json) {
        std::string text = part.nodes.empty() ? "" : node_table(part.nodes);
        for (const bool of_links : {false, true}) {
            if (of_links ? !part.links.empty() : !part.ports.empty()) {
                text += text.empty() ? "" : "\n";
                text += of_links ? link_table(part.links) : port_table(part.ports);
            }
            const std::string addresses = of_links ? "" : address_table(part.ports);
            text += addresses.empty() ? "" : "\n" + addresses;
        }
        return text;
    }
    return text_of({{"topology", simulation.topology()},
                    {"time_ps", to_picoseconds(simulation.loop().now())},
                    {"nodes", json_of_all(part.nodes)},
                    {"ports", json_of_all(part.ports)},
                    {"links", json_of_all(part.links)}});
}

std::string show_counters(Simulation& simulation, const std::vector<const Port*>& ports,
                          const CounterChoice& choice) {
    Json of_ports = Json::array();
    std::vector<TableRow> rows{{"port", "counter", "value"}};
    std::size_t left_out = 0;
    for (const Port* const port : ports) {
        const Counted counted = counters_of(simulation, *port);
        const Counted hardware =
            choice.of_hardware ? hardware_counters_of(simulation, *port) : Counted{};
        Json json{{"node", port->node().name()},
                  {"port", port->number().value()},
                  {"counters", json_of(counted)}};
        if (choice.of_hardware) {
            json["hw_counters"] = json_of(hardware);
        }
        of_ports.push_back(std::move(json));
        for (const Counted* const some : {&counted, &hardware}) {
            for (const auto& [name, value] : *some) {
                if (choice.with_zeros || value != 0) {
                    rows.push_back({port_name(*port), std::string(name), std::to_string(value)});
                } else {
                    ++left_out;
                }
            }
        }
    }
    if (choice.as_json) {
        return text_of({{"ports", std::move(of_ports)}});
    }
    const std::string rest = left_out == 0
                                 ? ""
                                 : fmt::format("left out: {} of value 0 (--zeros shows them)\n",
                                               fabric::counted(left_out, "counter"));
    return text_table(rows) + rest;
}

bool reset_counters(Simulation& simulation, const Port& port) {
    fabric::ManagedNode* const managed = managed_node_of(simulation, port);
    if (managed == nullptr) {
        return false;
    }
    for (std::size_t i = 0; i < fabric::kPerformanceCounters; ++i) {
        managed->performance().set_value(port.number(), static_cast<fabric::PerformanceCounter>(i),
                                         0);
    }
    return true;
}

}  // namespace simverbs
