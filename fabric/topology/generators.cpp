#include "fabric/topology/generators.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "fabric/core/assert.hpp"
#include "fabric/net/lid.hpp"

namespace fabric {

namespace {

class Builder {
  public:
    explicit Builder(LinkLayer layer) : layer_(layer) {}

    std::string add_host() {
        std::string name = fmt::format("h{}", hosts_++);
        topology_.nodes.push_back({name, NodeKind::kHca, 1});
        return name;
    }
    void add_switch(std::string name, std::uint32_t ports) {
        topology_.nodes.push_back(
            {std::move(name), NodeKind::kSwitch, static_cast<std::uint16_t>(ports)});
    }
    void link(std::string a, std::uint32_t port_a, std::string b, std::uint32_t port_b) {
        LinkSpec link;
        link.a = {std::move(a), PortNumber{static_cast<std::uint16_t>(port_a)}};
        link.b = {std::move(b), PortNumber{static_cast<std::uint16_t>(port_b)}};
        link.layer = layer_;
        topology_.links.push_back(std::move(link));
    }
    // New hosts on ports 1..count of a switch.
    void add_hosts_on(const std::string& name, std::uint32_t count) {
        for (std::uint32_t port = 1; port <= count; ++port) {
            link(add_host(), 1, name, port);
        }
    }
    Topology take() {
        topology_.sort();
        return std::move(topology_);
    }

  private:
    LinkLayer layer_;
    std::uint32_t hosts_ = 0;
    Topology topology_;
};

std::optional<std::uint32_t> number(std::string_view digits) {
    std::uint32_t value = 0;
    const auto [end, status] = std::from_chars(digits.begin(), digits.end(), value);
    return status == std::errc{} && end == digits.end() ? std::optional(value) : std::nullopt;
}

// The numbers of "4x3x2"; nothing where one is none.
std::optional<std::vector<std::uint32_t>> numbers(std::string_view text) {
    std::vector<std::uint32_t> all;
    while (true) {
        const std::size_t end = std::min(text.find('x'), text.size());
        const auto one = number(text.substr(0, end));
        if (!one) {
            return std::nullopt;
        }
        all.push_back(*one);
        if (end == text.size()) {
            return all;
        }
        text.remove_prefix(end + 1);
    }
}

// Hosts and switches need a LID each; counted on Ethernet too, which has IP addresses for more.
bool has_lids(std::uint64_t hosts, std::uint64_t switches) {
    return hosts <= kLastUnicastLid.value() && switches <= kLastUnicastLid.value() - hosts;
}

bool are_within(std::uint32_t least, std::uint32_t most,
                std::initializer_list<std::uint32_t> values) {
    return std::all_of(values.begin(), values.end(), [least, most](std::uint32_t value) {
        return value >= least && value <= most;
    });
}

std::optional<Topology> parse_star(std::string_view arguments, LinkLayer layer) {
    const auto n = number(arguments);
    const bool valid = n && are_within(2, kMaxStarHosts, {*n});
    return valid ? std::optional(make_star(*n, layer)) : std::nullopt;
}

std::optional<Topology> parse_ring(std::string_view arguments, LinkLayer layer) {
    const auto n = number(arguments);
    const bool valid = n && are_within(3, kMaxRingSwitches, {*n});
    return valid ? std::optional(make_ring(*n, layer)) : std::nullopt;
}

std::optional<Topology> parse_fat_tree(std::string_view arguments, LinkLayer layer) {
    const auto k = number(arguments);
    const bool valid = k && are_within(2, kMaxFatTreePorts, {*k}) && *k % 2 == 0;
    return valid ? std::optional(make_fat_tree(*k, layer)) : std::nullopt;
}

std::optional<Topology> parse_two_levels(std::string_view arguments, LinkLayer layer) {
    auto values = numbers(arguments);
    if (!values || values->size() < 2 || values->size() > 3) {
        return std::nullopt;
    }
    values->resize(3, values->at(1));
    const auto [leaves, spines, hosts] = std::array{values->at(0), values->at(1), values->at(2)};
    const bool valid = are_within(1, Topology::kMaxSwitchPorts, {leaves, spines, hosts}) &&
                       spines + hosts <= Topology::kMaxSwitchPorts && leaves * hosts >= 2 &&
                       has_lids(std::uint64_t{leaves} * hosts, leaves + spines);
    return valid ? std::optional(make_two_level_fat_tree(leaves, spines, hosts, layer))
                 : std::nullopt;
}

std::optional<Topology> parse_torus(std::string_view arguments, LinkLayer layer) {
    const auto sizes = numbers(arguments);
    if (!sizes || sizes->size() < 2 || sizes->size() > 3) {
        return std::nullopt;
    }
    std::uint64_t switches = 1;
    for (const std::uint32_t size : *sizes) {
        if (!are_within(2, kMaxRingSwitches, {size})) {
            return std::nullopt;
        }
        switches *= size;
    }
    return has_lids(switches, switches) ? std::optional(make_torus(*sizes, layer)) : std::nullopt;
}

// "a=4,p=2,h=2", in any order.
std::optional<Topology> parse_dragonfly(std::string_view arguments, LinkLayer layer) {
    std::array<std::optional<std::uint32_t>, 3> values;
    constexpr std::string_view kNames = "aph";
    while (!arguments.empty()) {
        const std::size_t end = std::min(arguments.find(','), arguments.size());
        const std::string_view one = arguments.substr(0, end);
        arguments.remove_prefix(std::min(end + 1, arguments.size()));
        const std::size_t which = one.empty() ? std::string_view::npos : kNames.find(one[0]);
        if (which == std::string_view::npos || values[which] || one.substr(1, 1) != "=") {
            return std::nullopt;
        }
        values[which] = number(one.substr(2));
        if (!values[which] || !are_within(1, Topology::kMaxSwitchPorts, {*values[which]})) {
            return std::nullopt;
        }
    }
    if (!values[0] || !values[1] || !values[2]) {
        return std::nullopt;
    }
    const auto [a, p, h] = std::array<std::uint64_t, 3>{*values[0], *values[1], *values[2]};
    const std::uint64_t switches = a * (a * h + 1);
    const bool valid =
        a - 1 + p + h <= Topology::kMaxSwitchPorts && has_lids(switches * p, switches);
    return valid ? std::optional(make_dragonfly(*values[0], *values[1], *values[2], layer))
                 : std::nullopt;
}

struct Generator {
    std::string_view name;
    std::string_view usage;
    std::optional<Topology> (*parse)(std::string_view arguments, LinkLayer layer);
    std::string_view rule;  // what the numbers are
};

constexpr auto kGenerators = std::to_array<Generator>({
    {"star", "star:N", parse_star, "N hosts, 2 to 1024"},
    {"ring", "ring:N", parse_ring, "N switches with a host each, 3 to 1024"},
    {"fat-tree", "fat-tree:K", parse_fat_tree,
     "K ports a switch, an even number from 2 to 36 (11,664 hosts)"},
    {"fat-tree2", "fat-tree2:LxS or fat-tree2:LxSxH", parse_two_levels,
     "L leaves, S spines, H hosts a leaf (as many as spines, unless given), S + H up to 1024 and "
     "no more than 49,151 hosts and switches"},
    {"torus", "torus:AxB or torus:AxBxC", parse_torus,
     "each dimension from 2 to 1024, no more than 24,575 switches with a host each"},
    {"dragonfly", "dragonfly:a=A,p=P,h=H", parse_dragonfly,
     "A switches a group, P hosts and H global links a switch; a switch has up to 1024 ports, "
     "hosts and switches are no more than 49,151"},
});
static_assert(kMaxStarHosts == 1024 && kMaxRingSwitches == 1024 && kMaxFatTreePorts == 36 &&
              kLastUnicastLid.value() == 49'151);

}  // namespace

std::string_view generators() {
    return "pair, star:N, ring:N, fat-tree:K, fat-tree2:LxS, torus:AxBxC, dragonfly:a=A,p=P,h=H, "
           "each with eth- before it for Ethernet, or vpi-pair; attributes of links may follow, as "
           "in eth-star:4,mtu=1500B,pfc=none";
}

Outcome<Topology> generate_topology(std::string_view spec) {
    constexpr std::string_view kEthernet = "eth-";
    if (spec == "vpi-pair") {
        return make_vpi_pair();
    }
    std::string_view shape = spec;
    LinkLayer layer = LinkLayer::kInfiniband;
    if (shape.starts_with(kEthernet)) {
        shape.remove_prefix(kEthernet.size());
        layer = LinkLayer::kEthernet;
    }
    if (shape == "pair") {
        return make_pair(layer);
    }
    const std::size_t colon = std::min(shape.find(':'), shape.size());
    const auto* const row = std::find_if(
        kGenerators.begin(), kGenerators.end(),
        [name = shape.substr(0, colon)](const Generator& one) { return one.name == name; });
    if (row == kGenerators.end()) {
        return Failure(fmt::format("\"{}\" is no topology: say {}, or the path of a file", spec,
                                   generators()));
    }
    auto made = row->parse(shape.substr(std::min(colon + 1, shape.size())), layer);
    if (!made) {
        return Failure(fmt::format("\"{}\" is not valid; {}: {}", spec, row->usage, row->rule));
    }
    return std::move(*made);
}

Topology make_pair(LinkLayer layer) {
    Builder builder(layer);
    std::string a = builder.add_host();
    std::string b = builder.add_host();
    builder.link(std::move(a), 1, std::move(b), 1);
    return builder.take();
}

Topology make_star(std::uint32_t hosts, LinkLayer layer) {
    SIMVERBS_ASSERT(are_within(2, kMaxStarHosts, {hosts}), "a star of {} hosts", hosts);
    Builder builder(layer);
    builder.add_switch("s0", hosts);
    builder.add_hosts_on("s0", hosts);
    return builder.take();
}

Topology make_vpi_pair() {
    Topology topology = make_pair();
    for (NodeSpec& node : topology.nodes) {
        node.port_count = 2;
    }
    LinkSpec ethernet = topology.links[0];
    ethernet.a.port = ethernet.b.port = PortNumber{2};
    ethernet.layer = LinkLayer::kEthernet;
    topology.links.push_back(ethernet);
    return topology;
}

Topology make_ring(std::uint32_t switches, LinkLayer layer) {
    SIMVERBS_ASSERT(are_within(3, kMaxRingSwitches, {switches}), "a ring of {}", switches);
    Builder builder(layer);
    const auto name = [switches](std::uint32_t i) { return fmt::format("s{}", i % switches); };
    for (std::uint32_t i = 0; i < switches; ++i) {
        builder.add_switch(name(i), 3);
        builder.add_hosts_on(name(i), 1);
        builder.link(name(i), 2, name(i + 1), 3);
    }
    return builder.take();
}

Topology make_fat_tree(std::uint32_t ports, LinkLayer layer) {
    SIMVERBS_ASSERT(are_within(2, kMaxFatTreePorts, {ports}) && ports % 2 == 0,
                    "a fat tree of switches with {} ports", ports);
    const std::uint32_t half = ports / 2;
    Builder builder(layer);
    for (std::uint32_t core = 0; core < half * half; ++core) {
        builder.add_switch(fmt::format("core{}", core), ports);
    }
    for (std::uint32_t pod = 0; pod < ports; ++pod) {
        const auto agg = [pod](std::uint32_t i) { return fmt::format("pod{}.agg{}", pod, i); };
        for (std::uint32_t i = 0; i < half; ++i) {
            builder.add_switch(agg(i), ports);
            for (std::uint32_t up = 0; up < half; ++up) {
                builder.link(agg(i), half + 1 + up, fmt::format("core{}", i * half + up), pod + 1);
            }
        }
        for (std::uint32_t i = 0; i < half; ++i) {
            const std::string edge = fmt::format("pod{}.edge{}", pod, i);
            builder.add_switch(edge, ports);
            builder.add_hosts_on(edge, half);
            for (std::uint32_t up = 0; up < half; ++up) {
                builder.link(edge, half + 1 + up, agg(up), i + 1);
            }
        }
    }
    return builder.take();
}

Topology make_two_level_fat_tree(std::uint32_t leaves, std::uint32_t spines,
                                 std::uint32_t hosts_per_leaf, LinkLayer layer) {
    SIMVERBS_ASSERT(leaves >= 1 && spines >= 1 && leaves <= Topology::kMaxSwitchPorts &&
                        spines + hosts_per_leaf <= Topology::kMaxSwitchPorts,
                    "{} leaves with {} hosts each and {} spines", leaves, hosts_per_leaf, spines);
    Builder builder(layer);
    for (std::uint32_t spine = 0; spine < spines; ++spine) {
        builder.add_switch(fmt::format("spine{}", spine), leaves);
    }
    for (std::uint32_t i = 0; i < leaves; ++i) {
        const std::string leaf = fmt::format("leaf{}", i);
        builder.add_switch(leaf, hosts_per_leaf + spines);
        builder.add_hosts_on(leaf, hosts_per_leaf);
        for (std::uint32_t spine = 0; spine < spines; ++spine) {
            builder.link(leaf, hosts_per_leaf + 1 + spine, fmt::format("spine{}", spine), i + 1);
        }
    }
    return builder.take();
}

Topology make_torus(std::span<const std::uint32_t> dimensions, LinkLayer layer) {
    SIMVERBS_ASSERT(dimensions.size() == 2 || dimensions.size() == 3, "a torus of {} dimensions",
                    dimensions.size());
    Builder builder(layer);
    const auto name = [](const std::vector<std::uint32_t>& at) {
        return fmt::format("s{}", fmt::join(at, "."));
    };
    const auto ports_of = [](std::uint32_t size) { return size == 2 ? 1U : 2U; };
    std::uint32_t ports = 1;
    for (const std::uint32_t size : dimensions) {
        ports += ports_of(size);
    }
    std::vector<std::uint32_t> at(dimensions.size(), 0);
    while (true) {
        builder.add_switch(name(at), ports);
        builder.add_hosts_on(name(at), 1);
        std::uint32_t port = 2;
        for (std::size_t d = 0; d < dimensions.size(); ++d) {
            std::vector<std::uint32_t> next = at;
            next[d] = (at[d] + 1) % dimensions[d];
            const std::uint32_t back = port + ports_of(dimensions[d]) - 1;
            if (dimensions[d] > 2 || next[d] != 0) {
                builder.link(name(at), port, name(next), back);
            }
            port = back + 1;
        }
        std::size_t d = dimensions.size();
        while (d > 0 && ++at[d - 1] == dimensions[d - 1]) {
            at[--d] = 0;
        }
        if (d == 0) {
            return builder.take();
        }
    }
}

Topology make_dragonfly(std::uint32_t routers, std::uint32_t hosts, std::uint32_t globals,
                        LinkLayer layer) {
    SIMVERBS_ASSERT(
        routers >= 1 && globals >= 1 && routers - 1 + hosts + globals <= Topology::kMaxSwitchPorts,
        "a dragonfly of a={}, p={}, h={}", routers, hosts, globals);
    const std::uint32_t per_group = routers * globals;
    const std::uint32_t first_local = hosts + 1;
    const std::uint32_t first_global = first_local + routers - 1;
    const auto name = [](std::uint32_t group, std::uint32_t router) {
        return fmt::format("g{}.s{}", group, router);
    };
    const auto global_port = [&](std::uint32_t k) { return first_global + k % globals; };
    Builder builder(layer);
    for (std::uint32_t group = 0; group <= per_group; ++group) {
        for (std::uint32_t router = 0; router < routers; ++router) {
            builder.add_switch(name(group, router), routers - 1 + hosts + globals);
            builder.add_hosts_on(name(group, router), hosts);
            for (std::uint32_t other = router + 1; other < routers; ++other) {
                builder.link(name(group, router), first_local + other - 1, name(group, other),
                             first_local + router);
            }
        }
        // Global link k of a group leads to the group k + 1 further on, where it is number -k - 1.
        for (std::uint32_t k = 0; group + k + 1 <= per_group; ++k) {
            const std::uint32_t back = per_group - 1 - k;
            builder.link(name(group, k / globals), global_port(k),
                         name(group + k + 1, back / globals), global_port(back));
        }
    }
    return builder.take();
}

}  // namespace fabric
