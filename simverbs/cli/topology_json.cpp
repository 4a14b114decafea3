#include "simverbs/cli/topology_json.hpp"

#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fabric/topology/yaml_text.hpp"
#include "fabric/yaml/quantities.hpp"

#include "simverbs/cli/topology_summary.hpp"

namespace simverbs::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json routes_of(const fabric::Topology& topology) {
    const fabric::routing::NamedGraph named = fabric::routing::graph_of(topology);
    Json engines = Json::array();
    for (const RoutesOfEngine& each : check_routes(named)) {
        if (!each.report) {
            engines.push_back({{"engine", each.engine}, {"error", each.report.error()}});
            continue;
        }
        const fabric::routing::Report& report = *each.report;
        const bool has_loop = !report.credit_loop.empty();
        engines.push_back(
            {{"engine", each.engine},
             {"error", nullptr},
             {"pairs", report.pairs},
             {"unreachable", report.unreachable},
             {"longer_than_needed", report.longer_than_needed},
             {"longest", report.longest},
             {"diameter", report.diameter},
             {"most_routes_of_a_channel", report.most_routes},
             {"mean_routes_of_a_channel", report.mean_routes()},
             {"credit_loop",
              has_loop ? Json(describe(report.credit_loop, named.switches)) : Json(nullptr)}});
    }
    return engines;
}

Json end_of(const fabric::LinkEndSpec& end) {
    return {{"node", end.node}, {"port", end.port.value()}};
}

// Members of the other link layer are null.
Json link_of(const fabric::LinkSpec& link) {
    const bool is_ethernet = link.layer == fabric::LinkLayer::kEthernet;
    const Json none = nullptr;
    const Json ethernet_mtu = link.ethernet_mtu ? Json(*link.ethernet_mtu) : none;
    return {{"a", end_of(link.a)},
            {"b", end_of(link.b)},
            {"layer", to_string(link.layer)},
            {"rate", fabric::yaml::spoken_rate({link.width, link.speed}, is_ethernet)},
            {"latency_ps", link.latency.count()},
            {"mtu", is_ethernet ? ethernet_mtu : Json(to_bytes(link.mtu))},
            {"vls", is_ethernet ? none : Json(link.vls)},
            {"buffer_bytes", is_ethernet ? none : Json(link.buffer_bytes)},
            {"pfc", is_ethernet ? Json(pfc_text(link)) : none},
            {"vlans", is_ethernet && link.vlans ? Json(*link.vlans) : none}};
}

}  // namespace

std::string check_as_json(std::string_view spec, const fabric::Topology& topology,
                          bool has_routes) {
    const TopologySummary summary = summarize(topology);
    Json json{{"topology", spec},
              {"host_adapters", summary.host_adapters},
              {"switches", summary.switches},
              {"links", summary.links},
              {"links_between_switches", summary.links_between_switches},
              {"diameter", summary.diameter},
              {"unreachable_most", summary.unreachable_most}};
    if (has_routes) {
        json["routes"] = routes_of(topology);
    }
    return line_of(json);
}

std::string topology_as_json(const fabric::Topology& topology) {
    Json nodes = Json::array();
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        const fabric::NodeSpec& node = topology.nodes[i];
        const fabric::NodeId id{static_cast<std::uint32_t>(i)};
        const bool is_hca = node.kind == fabric::NodeKind::kHca;
        nodes.push_back({{"name", node.name},
                         {"kind", to_string(node.kind)},
                         {"host", is_hca ? Json(host_of(node)) : Json(nullptr)},
                         {"ports", node.port_count},
                         {"guid", fmt::format("{:#018x}", node_guid(node, id).value())},
                         {"description", description_of(node)}});
    }
    Json links = Json::array();
    for (const fabric::LinkSpec& link : topology.links) {
        links.push_back(link_of(link));
    }
    return line_of({{"nodes", std::move(nodes)}, {"links", std::move(links)}});
}

}  // namespace simverbs::cli
