#include "fabric/net/network.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "fabric/core/assert.hpp"
#include "fabric/net/credit_loop.hpp"
#include "fabric/net/ethernet_routes.hpp"
#include "fabric/net/net_events.hpp"

namespace fabric {

namespace {
template <class Owned>
Owned* find_by_name(const std::vector<std::unique_ptr<Owned>>& all, std::string_view name) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [name](const auto& one) { return one->name() == name; });
    return found == all.end() ? nullptr : found->get();
}

// "s0-h0#2" for "h0-s0#2"; empty when the name has no two ends.
std::string with_ends_swapped(std::string_view name) {
    const std::size_t dash = name.find('-');
    if (dash == std::string_view::npos) {
        return {};
    }
    const std::string_view first = name.substr(0, dash);
    const std::string_view rest = name.substr(dash + 1);
    const std::size_t ordinal = std::min(rest.find('#'), rest.size());
    return fmt::format("{}-{}{}", rest.substr(0, ordinal), first, rest.substr(ordinal));
}

// As Linux computes a RoCE port's MTU from that of its Ethernet interface: what is left beside GRH,
// UDP, BTH, the XRC and atomic headers and the ICRC.
Mtu mtu_within(std::uint32_t ethernet_mtu) {
    constexpr std::uint32_t kHeaders = 40 + 8 + 12 + 4 + 28 + 4;
    return largest_mtu_within(ethernet_mtu - std::min(ethernet_mtu, kHeaders)).value_or(Mtu::k256);
}

LinkProperties properties_of(const LinkSpec& spec) {
    const bool is_ethernet = spec.layer == LinkLayer::kEthernet;
    LinkProperties properties{.rate = effective_rate(spec.width, spec.speed),
                              .latency = spec.latency,
                              .buffer_bytes = is_ethernet ? 0 : spec.buffer_bytes,
                              .queueing = std::nullopt};
    if (is_ethernet) {
        properties.queueing = spec.queueing.at(properties.rate);
    }
    return properties;
}

// `subnet`: see ipv4_address().
void add_addresses(PortAttributes& attributes, NodeId host, const LinkSpec& spec,
                   std::uint16_t vlan, std::uint32_t subnet) {
    for (const Gid& gid :
         {link_local_gid(attributes.mac), ipv4_mapped(ipv4_address(host, subnet))}) {
        if (spec.has_roce_v1) {
            attributes.gids.push_back({gid, GidType::kRoceV1, vlan});
        }
        attributes.gids.push_back({gid, GidType::kRoceV2, vlan});
    }
}

// `vlans`: of the whole fabric.
void set_up_port(Port& port, const LinkSpec& spec, const std::vector<std::uint16_t>& vlans) {
    PortAttributes& attributes = port.mutable_attributes();
    attributes.link_layer = spec.layer;
    attributes.width = spec.width;
    attributes.speed = spec.speed;
    if (spec.layer == LinkLayer::kInfiniband) {
        attributes.max_mtu = spec.mtu;
        attributes.active_mtu = spec.mtu;
        attributes.vl_cap = spec.vls;
        attributes.operational_vls = spec.vls;
        return;
    }
    SlToVl priorities;
    for (std::uint8_t sl = 0; sl < kServiceLevels; ++sl) {
        priorities[sl] = sl % kPriorities;
    }
    attributes.sl_to_vl = {priorities};
    attributes.vl_cap = attributes.operational_vls = kPriorities;
    attributes.ethernet_mtu = spec.ethernet_mtu.value_or(kDefaultEthernetMtu);
    attributes.active_mtu = mtu_within(attributes.ethernet_mtu);
    attributes.gids.clear();
    attributes.vlans = spec.vlans;
    if (port.node().kind() != NodeKind::kHca) {
        return;
    }
    const NodeId host = port.node().id();
    add_addresses(attributes, host, spec, 0, 0);
    for (std::size_t i = 0; i < vlans.size(); ++i) {
        if (spec.vlans && std::binary_search(spec.vlans->begin(), spec.vlans->end(), vlans[i])) {
            add_addresses(attributes, host, spec, vlans[i], static_cast<std::uint32_t>(i + 1));
        }
    }
}

void identify(Node& node, const NodeSpec& spec) {
    node.set_label({node_guid(spec, node.id()), description_of(spec), host_of(spec)});
    const std::uint16_t first = node.kind() == NodeKind::kSwitch ? 0 : 1;
    for (std::uint16_t number = first; number <= node.port_count(); ++number) {
        PortAttributes& attributes = node.port(PortNumber{number}).mutable_attributes();
        attributes.guid = port_guid(spec, node.id(), PortNumber{number});
        attributes.gids.at(0).gid = make_gid(kDefaultSubnetPrefix, attributes.guid);
    }
}
}  // namespace

Network::Network(EventLoop& loop, trace::Bus& bus, Topology topology)
    : deferred_(loop), services_{loop, bus, deferred_} {
    const std::optional<std::string> error = topology.error();
    SIMVERBS_ASSERT(!error, "a network is built from a wrong topology: {}", *error);
    topology.sort();
    build_nodes(topology);
    build_links(topology);
    set_up_ethernet();
    bus.tell_before_packets([this] { cut_trains(); });
}

Network::~Network() {
    services_.bus.tell_before_packets({});
    services_.observer = nullptr;
    services_.ethernet_observer = nullptr;
    // Frames in a switch know the port whose buffer they are in: while all of them are there.
    for (const auto& link : links_) {
        link->drop_all(DropReason::kTeardown);
    }
}

void Network::cut_trains() {
    for (const auto& link : links_) {
        for (const NodeId end : {link->end(0).node().id(), link->end(1).node().id()}) {
            link->direction_from(end).cut_trains();
        }
    }
}

void Network::build_nodes(const Topology& topology) {
    for (const NodeSpec& spec : topology.nodes) {
        const NodeId id{static_cast<std::uint32_t>(nodes_.size())};
        if (spec.kind == NodeKind::kHca) {
            auto host = std::make_unique<EndNode>(id, spec.name, spec.port_count, services_);
            hosts_.push_back(host.get());
            nodes_.push_back(std::move(host));
        } else {
            auto made =
                std::make_unique<Switch>(id, spec.name, spec.port_count,
                                         spec.forwarding == Forwarding::kCutThrough, services_);
            made->set_forwarding_delay(spec.forwarding_delay);
            switches_.push_back(made.get());
            nodes_.push_back(std::move(made));
        }
        identify(*nodes_.back(), spec);
    }
}

void Network::build_links(const Topology& topology) {
    std::map<std::string_view, Node*> by_name;
    for (const auto& node : nodes_) {
        by_name.emplace(node->name(), node.get());
    }
    const std::vector<std::uint16_t> vlans = topology.vlans_of_hosts();
    std::map<std::string, int> links_between;
    for (const LinkSpec& spec : topology.links) {
        Port& a = by_name.at(spec.a.node)->port(spec.a.port);
        Port& b = by_name.at(spec.b.node)->port(spec.b.port);
        for (Port* const port : {&a, &b}) {
            set_up_port(*port, spec, vlans);
        }
        std::string name = fmt::format("{}-{}", a.node().name(), b.node().name());
        if (const int ordinal = ++links_between[name]; ordinal > 1) {
            name += fmt::format("#{}", ordinal);
        }
        links_.push_back(std::make_unique<Link>(links_.size(), std::move(name),
                                                std::array<Port*, 2>{&a, &b}, properties_of(spec),
                                                services_));
        links_.back()->set_state(LinkState::kUp);
    }
}

void Network::set_up_ethernet() {
    bool any = false;
    for (Switch* const one : switches_) {
        for (std::uint16_t number = 1; number <= one->port_count(); ++number) {
            const Port& port = one->port(PortNumber{number});
            if (port.link() != nullptr && port.attributes().link_layer == LinkLayer::kEthernet) {
                one->port(PortNumber{0}).mutable_attributes().link_layer = LinkLayer::kEthernet;
                any = true;
            }
        }
    }
    if (any) {
        route_ethernet(*this);
        services_.ethernet_observer = this;
    }
}

// Switches with hosts stay where they are.
void Network::link_changed(Link& link) {
    if (link.end(0).node().kind() == NodeKind::kSwitch &&
        link.end(1).node().kind() == NodeKind::kSwitch) {
        route_ethernet(*this);
    }
}

void Network::describe() const {
    const SimTime now = services_.loop.now();
    for (const auto& node : nodes_) {
        bus().emit(now, NodeDescribed{node->id(), node->name(), node->host(), node->kind(),
                                      node->port_count()});
        for (std::uint16_t number = 1; number <= node->port_count(); ++number) {
            const Port& port = node->port(PortNumber{number});
            if (port.link() != nullptr) {
                bus().emit(now, PortDescribed{node->id(), port.number(), port.attributes().lid,
                                              port.state()});
            }
        }
    }
    for (const auto& link : links_) {
        link->describe();
    }
}

const Port* Network::find_neighbour(const Gid& gid, std::uint16_t vlan) const {
    for (const EndNode* const host : hosts_) {
        for (std::uint16_t number = 1; number <= host->port_count(); ++number) {
            const Port& port = host->port(PortNumber{number});
            const std::vector<GidEntry>& gids = port.attributes().gids;
            if (port.attributes().link_layer == LinkLayer::kEthernet &&
                std::any_of(gids.begin(), gids.end(), [&gid, vlan](const GidEntry& entry) {
                    return entry.gid == gid && entry.vlan == vlan;
                })) {
                return &port;
            }
        }
    }
    return nullptr;
}

std::string Network::report_credit_loop() {
    cut_trains();
    if (frames_.live() == 0) {
        return {};
    }
    const std::vector<const LinkDirection*> found = find_credit_loop(*this);
    std::string ports = fabric::describe(found);
    if (!found.empty()) {
        services_.bus.emit(services_.loop.now(),
                           CreditLoopFound{found.front()->from().node().id(), ports});
    }
    return ports;
}

Node& Network::node(NodeId id) const {
    return *nodes_.at(id.value());
}

Node* Network::find_node(std::string_view name) const {
    return find_by_name(nodes_, name);
}

EndNode* Network::find_host(std::string_view name) const {
    const auto found = std::find_if(hosts_.begin(), hosts_.end(),
                                    [name](const EndNode* hca) { return hca->host() == name; });
    return found == hosts_.end() ? nullptr : *found;
}

Link* Network::find_link(std::string_view name) const {
    Link* const found = find_by_name(links_, name);
    return found != nullptr ? found : find_by_name(links_, with_ends_swapped(name));
}

Link& Network::link(std::string_view name) const {
    Link* const found = find_link(name);
    SIMVERBS_ASSERT(found != nullptr, "there is no link {}", name);
    return *found;
}

}  // namespace fabric
