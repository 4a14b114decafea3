#include <algorithm>
#include <array>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/topology/generators.hpp"
#include "fabric/topology/load.hpp"
#include "fabric/topology/name_ranges.hpp"
#include "fabric/topology/yaml_text.hpp"

#include "tests/support/outcome.hpp"

namespace fabric {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kPersonalities = std::to_array<std::string_view>({"spec", "connectx6", "rxe"});

Topology read(const std::string& text) {
    Outcome<Topology> result = read_yaml(text, "t.yaml", kPersonalities);
    EXPECT_TRUE(result) << error_of(result);
    return result.value_or(make_pair());
}

std::string error_in(const std::string& text) {
    return error_of(read_yaml(text, "t.yaml", kPersonalities));
}

TEST(NameRanges, CountUpwardsTheLastFirst) {
    EXPECT_THAT(*expand_ranges("h8..11"), ElementsAre("h8", "h9", "h10", "h11"));
    EXPECT_THAT(*expand_ranges("g0..1.s0..1"), ElementsAre("g0.s0", "g0.s1", "g1.s0", "g1.s1"));
    EXPECT_THAT(*expand_ranges("n08..10"), ElementsAre("n08", "n09", "n10"));
    EXPECT_THAT(*expand_ranges("plain1.2"), ElementsAre("plain1.2"));
    EXPECT_EQ(error_of(expand_ranges("h5..2")), "\"h5..2\": a range counts upwards");
    EXPECT_THAT(error_of(expand_ranges("h0..999.0..999")), HasSubstr("more than 65535 names"));
    EXPECT_THAT(error_of(expand_ranges("h0..")), HasSubstr("a number before and after"));
    EXPECT_FALSE(expand_ranges("h0..18446744073709551615"));
}

TEST(TopologyYaml, SaysTheSameAsAGenerator) {
    EXPECT_EQ(read("hosts: {h0..4: }\nswitches: {s0: }\nlinks: [{ends: [h0..4, s0]}]"),
              make_star(5));
    EXPECT_EQ(read("generator: torus:3x3"), generate_topology("torus:3x3").value());
    EXPECT_EQ(read(R"(
hosts: {h0..7: }
switches: {leaf0..3: , spine0..1: }
links:
  - {ends: [h0..7, leaf0..3]}
  - {ends: [leaf0..3, spine0..1], pattern: all}
)"),
              generate_topology("fat-tree2:4x2").value());
}

TEST(TopologyYaml, LinksHaveWhatIsSaidOfThem) {
    const Topology topology = read(R"(
defaults:
  link: {latency: 1us, vls: 8}
  switch: {forwarding: cut-through}
hosts:
  a: {guid: 0x10, port_guids: [0x11], description: "the first"}
  b: {hcas: 2, personality: rxe}
switches:
  s: {delay: 5ns, ports: 9}
links:
  - {ends: [a, s:7], rate: 2x HDR, mtu: 2048B, buffer: 16KiB, vls: 1}
  - {ends: [b.0..1, s], count: 1}
)");
    EXPECT_EQ(topology.nodes[0].guid, Guid{0x10});
    EXPECT_EQ(topology.nodes[0].description, "the first");
    EXPECT_EQ(topology.nodes[2].name, "b.1");
    EXPECT_EQ(topology.nodes[2].personality, "rxe");
    EXPECT_EQ(host_of(topology.nodes[2]), "b");
    EXPECT_EQ(topology.nodes[3].forwarding, Forwarding::kCutThrough);
    EXPECT_EQ(topology.nodes[3].forwarding_delay, 5_ns);
    EXPECT_EQ(topology.nodes[3].port_count, 9U);
    const LinkSpec& first = topology.links[0];
    EXPECT_EQ(first.b.port, PortNumber{7});
    EXPECT_EQ(first.width, LinkWidth::k2x);
    EXPECT_EQ(first.speed, LinkSpeed::kHdr);
    EXPECT_EQ(first.latency, 1_us);
    EXPECT_EQ(first.mtu, Mtu::k2048);
    EXPECT_EQ(first.vls, 1U);
    EXPECT_EQ(first.buffer_bytes, 16U * 1024);
    EXPECT_EQ(topology.links[1].vls, 8U);
    EXPECT_EQ(topology.links[2].b.port, PortNumber{2}) << "the first that is free";
}

TEST(TopologyYaml, AnMtuIsItsLayers) {
    const Topology topology =
        read("hosts: {h0: , h1: }\nlinks: [{ends: [h0, h1], layer: ethernet, mtu: 9000B}]");
    EXPECT_EQ(topology.links[0].ethernet_mtu, 9000U);
    EXPECT_EQ(topology.links[0].mtu, Mtu::k4096);
    EXPECT_THAT(error_in("hosts: {h0: , h1: }\nlinks: [{ends: [h0, h1], mtu: 9000B}]"),
                HasSubstr("t.yaml:2:31: 9000B: an MTU of InfiniBand is 256B, 512B"));
}

TEST(TopologyYaml, NamesThePrioritiesThatArePaused) {
    const auto paused = [](std::string_view value) {
        const Topology topology = read(fmt::format(
            "hosts: {{h0: , h1: }}\nlinks: [{{ends: [h0, h1], layer: ethernet{}}}]", value));
        EXPECT_EQ(read(write_yaml(topology)), topology) << value;
        return topology.links[0].queueing.paused_priorities;
    };
    EXPECT_EQ(paused(""), 0xff);
    EXPECT_EQ(paused(", pfc: all"), 0xff);
    EXPECT_EQ(paused(", pfc: none"), 0);
    EXPECT_EQ(paused(", pfc: [3, 4]"), 0x18);
    EXPECT_EQ(paused(", pfc: 3"), 0x08);
    EXPECT_THAT(error_in("defaults: {link: {pfc: [8]}}"), HasSubstr("t.yaml:1:25: "));
    EXPECT_THAT(error_in("defaults: {link: {pfc: 8}}"), HasSubstr("t.yaml:1:24: "));
    EXPECT_THAT(error_in("defaults: {link: {pfc: some}}"), HasSubstr("none, all, a priority"));
}

TEST(TopologyYaml, NamesTheVlansOfALink) {
    using Vlans = std::vector<std::uint16_t>;
    const auto vlans = [](std::string_view value) {
        const Topology topology = read(fmt::format(
            "hosts: {{h0: , h1: }}\nlinks: [{{ends: [h0, h1], layer: ethernet{}}}]", value));
        EXPECT_EQ(read(write_yaml(topology)), topology) << value;
        return topology.links[0].vlans;
    };
    EXPECT_EQ(vlans(""), std::nullopt);
    EXPECT_EQ(vlans(", vlans: all"), std::nullopt);
    EXPECT_EQ(vlans(", vlans: []"), Vlans());
    EXPECT_EQ(vlans(", vlans: 100"), Vlans({100}));
    EXPECT_EQ(vlans(", vlans: [4094, 1]"), Vlans({1, 4094}));
    EXPECT_THAT(error_in("defaults: {link: {vlans: 0}}"), HasSubstr("t.yaml:1:26: "));
    EXPECT_THAT(error_in("defaults: {link: {vlans: [4095]}}"), HasSubstr("1 to 4094"));
    EXPECT_THAT(error_in("defaults: {link: {vlans: [7, 7]}}"),
                HasSubstr("t.yaml:1:30: VLAN 7 a second time"));
    EXPECT_THAT(error_in("hosts: {h0: , h1: }\nlinks: [{ends: [h0, h1], vlans: 7}]"),
                HasSubstr("those are Ethernet's"));
    EXPECT_EQ(load_topology("eth-star:2,vlans=7").value().links[1].vlans, Vlans({7}));
    EXPECT_THAT(error_of(load_topology("star:2,vlans=7")), HasSubstr("those are Ethernet's"));
    EXPECT_THAT(error_of(load_topology("eth-pair,vlans=some")), HasSubstr("valid: all, a VLAN"));
}

TEST(TopologyYaml, ListsStandInBracketsBehindAGenerator) {
    const Outcome<Topology> made =
        load_topology("eth-dragonfly:a=4,p=2,h=2,vlans=[200,100],mtu=1500B,pfc=[3, 4]");
    ASSERT_TRUE(made) << error_of(made);
    const LinkSpec& link = made->links.back();
    EXPECT_EQ(link.vlans, std::vector<std::uint16_t>({100, 200}));
    EXPECT_EQ(link.ethernet_mtu, 1500U);
    EXPECT_EQ(link.queueing.paused_priorities, 0b11000);
    EXPECT_EQ(load_topology("eth-pair,vlans=[]").value().links[0].vlans,
              std::vector<std::uint16_t>());
    EXPECT_THAT(error_of(load_topology("eth-pair,vlans=[1,x]")), HasSubstr(":1:19: "));
    EXPECT_THAT(error_of(load_topology("eth-pair,vlans=[1,")), HasSubstr(":1:16: "));
    EXPECT_THAT(error_of(load_topology("eth-pair,vlans=[1],")), HasSubstr(":1:20: "));
    EXPECT_THAT(error_of(load_topology("eth-pair,vlans=[1]2")), HasSubstr(":1:16: "));
}

TEST(TopologyYaml, AGeneratorMayHaveAttributesOfItsLinks) {
    for (const std::string_view shape :
         {"eth-pair", "eth-star:3", "eth-torus:2x3", "eth-dragonfly:a=4,p=2,h=2"}) {
        const Outcome<Topology> made =
            load_topology(std::string(shape) + ",mtu=1500B,pfc=none,latency=1.5us,rate=25Gb/s");
        ASSERT_TRUE(made) << error_of(made);
        for (const LinkSpec& link : made->links) {
            EXPECT_EQ(link.ethernet_mtu, 1500U);
            EXPECT_EQ(link.queueing.paused_priorities, 0);
            EXPECT_EQ(link.latency, SimDuration(1'500'000));
            EXPECT_EQ(effective_rate(link.width, link.speed).bits_per_second(), 25'000'000'000U);
        }
    }
    EXPECT_EQ(load_topology("star:3,mtu=2048B").value().links[0].mtu, Mtu::k2048);
    EXPECT_THAT(error_of(load_topology("eth-star:3,mtuu=1500B")),
                HasSubstr("eth-star:3,mtuu=1500B:1:12: "));
    EXPECT_THAT(error_of(load_topology("eth-star:3,mtuu=1500B")), HasSubstr("\"mtu\""));
    EXPECT_THAT(error_of(load_topology("eth-star:3,mtu=1")), HasSubstr(":1:16: "));
    EXPECT_THAT(error_of(load_topology("eth-star:3,")), HasSubstr(":1:12: "));
    EXPECT_THAT(error_of(load_topology("eth-star:3,mtu")), HasSubstr(":1:15: "));
    EXPECT_THAT(error_of(load_topology("star:3,mtu=1500B")), HasSubstr("4096B"));
    EXPECT_THAT(error_of(load_topology("eth-star,mtu=1500B")), HasSubstr("\"eth-star\""));
}

TEST(TopologyYaml, ChangesWhatAGeneratorMade) {
    const Topology topology = read(R"(
generator: star:4
defaults: {link: {rate: 4x HDR}}
hosts: {h2: {personality: connectx6}}
links: [{ends: [s0:1, h0], latency: 7ns}]
)");
    EXPECT_EQ(topology.nodes[2].personality, "connectx6");
    EXPECT_EQ(topology.links[0].latency, 7_ns);
    EXPECT_EQ(topology.links[1].speed, LinkSpeed::kHdr);
    EXPECT_EQ(topology.links[1].latency, LinkSpec{}.latency);
    EXPECT_EQ(error_in("generator: star:4\nhosts:\n  h9: {ports: 2}\n"),
              "t.yaml:3:3: unknown node \"h9\": did you mean \"h0\"?");
    EXPECT_EQ(error_in("generator: star:4\nlinks:\n  - ends: [h0, h1]\n"),
              "t.yaml:3:11: the generator has made no link between h0 and h1");
    EXPECT_EQ(error_in("generator: star:4\nlinks:\n  - ends: [h0, s0:3]\n"),
              "t.yaml:3:11: the generator has made no link between h0 and s0");
    EXPECT_THAT(error_in("generator: star:1\n"),
                HasSubstr("t.yaml:1:12: \"star:1\" is not valid; star:N"));
    EXPECT_THAT(error_in("generator: pair\nhosts: {h0: {hcas: 2}}"),
                HasSubstr("t.yaml:2:20: the generator has made an HCA a host"));
    EXPECT_THAT(error_in("generator: star:2\nswitches: {h0: }"),
                HasSubstr("t.yaml:2:12: h0 is a host"));
}

TEST(TopologyYaml, SaysHowToRoute) {
    const Topology topology = read("generator: ring:6\nrouting: up-down\n");
    EXPECT_EQ(topology.routing, RoutingEngine::kUpDown);
    EXPECT_EQ(read(write_yaml(topology)).routing, RoutingEngine::kUpDown);
    EXPECT_EQ(read("generator: ring:6\n").routing, RoutingEngine::kAutomatic);
    EXPECT_THAT(error_in("generator: ring:6\nrouting: up_down\n"),
                HasSubstr("t.yaml:2:10: \"up_down\""));
}

TEST(TopologyYaml, NamesEveryMistakeByItsPlace) {
    EXPECT_EQ(error_in("hosts: {h0: , h1: }\nlinks:\n  - {ends: [h0, h1], latncy: 5ns}\n"),
              "t.yaml:3:22: unknown key \"latncy\": did you mean \"latency\"? valid: ends, "
              "pattern, count, rate, latency, mtu, vls, buffer, layer, pfc, vlans");
    EXPECT_EQ(error_in("host: {h0: }\n"),
              "t.yaml:1:1: unknown key \"host\": did you mean \"hosts\"? valid: generator, "
              "routing, defaults, hosts, switches, links");
    EXPECT_THAT(error_in("hosts: {h0: , h1: }\nlinks: [{ends: [h0, h1], latency: 5}]"),
                HasSubstr("t.yaml:2:35: \"5\": a duration needs a unit"));
    EXPECT_EQ(error_in("hosts: {h0: }\nlinks: [{ends: [h0, lef0]}]"),
              "t.yaml:2:21: unknown node \"lef0\"");
    EXPECT_EQ(error_in("hosts: {h0: }\nswitches: {leaf0: }\nlinks: [{ends: [h0, lef0]}]"),
              "t.yaml:3:21: unknown node \"lef0\": did you mean \"leaf0\"?");
    EXPECT_THAT(error_in("hosts: {h0: {personality: conectx6}}"),
                HasSubstr("t.yaml:1:27: \"conectx6\": did you mean \"connectx6\"? valid: spec"));
    EXPECT_THAT(error_in("hosts: {h0..4: }\nswitches: {s0..1: }\nlinks: [{ends: [h0..4, s0..1]}]"),
                HasSubstr("t.yaml:3:16: 5 ends cannot be shared out evenly among 2"));
    EXPECT_THAT(error_in("hosts: {h0..1: {guid: 0x1}}"), HasSubstr("belong to one node"));
    EXPECT_THAT(error_in("hosts: {h0: {guid: 12}}"), HasSubstr("\"12\": expected a GUID"));
    EXPECT_THAT(error_in("hosts: {h0: {hcas: 99}}"), HasSubstr("a number from 1 to 16"));
    EXPECT_THAT(error_in("hosts: {h0: , h0: }"), HasSubstr("t.yaml:1:15: a second node \"h0\""));
    EXPECT_THAT(error_in("hosts: {h0: {ports: 1}, h1: }\nlinks: [{ends: [h0, h1], count: 2}]"),
                HasSubstr("t.yaml:2:16: h0 has ports 1 to 1: this link needs port 2"));
    EXPECT_THAT(error_in("hosts: {h0..2: }\nlinks: [{ends: [h0:1, h1]}, {ends: [h0:1, h2]}]"),
                HasSubstr("t.yaml:2:36: port 1 of h0 has two links"));
    EXPECT_THAT(error_in("hosts: {h0: , h1: }\nlinks: [{ends: [h0:x, h1]}]"),
                HasSubstr("the number of a port after the colon"));
    EXPECT_THAT(error_in("hosts: {h0: }\nlinks: [{ends: [h0]}]"), HasSubstr("has two ends"));
    EXPECT_THAT(error_in("hosts: {h0: }\nlinks: [{rate: 4x EDR}]"), HasSubstr("has two ends"));
    EXPECT_THAT(error_in("hosts: {h-0: }"), HasSubstr("t.yaml: node name \"h-0\""));
    EXPECT_THAT(error_in(""), HasSubstr("t.yaml: a topology has at least one node"));
    EXPECT_THAT(error_in("hosts: [h0]"), HasSubstr("t.yaml:1:8: expected a mapping, found a list"));
    EXPECT_THAT(error_in("hosts: {h0: {hcas: {a: {hcas: 1}}}}"), HasSubstr("unknown key \"hcas\""));
    EXPECT_THAT(error_in("hosts: {h0..1: {hcas: {a: }}}"), HasSubstr("belong to one host"));
}

TEST(TopologyYaml, AnythingReadsBackAsItWasWritten) {
    for (const char* const spec : {"pair", "vpi-pair", "eth-star:3", "ring:4", "fat-tree:4",
                                   "fat-tree2:3x2x4", "torus:2x3", "dragonfly:a=2,p=2,h=1"}) {
        const Topology topology = generate_topology(spec).value();
        EXPECT_EQ(read(write_yaml(topology)), topology) << spec;
    }
    Topology topology = make_star(3);
    topology.nodes[0] = {"x", NodeKind::kHca, 3, "it's \"x\"\n", Guid{5}, {Guid{}, Guid{7}}, "y"};
    topology.nodes[0].personality = "rxe";
    topology.nodes[1].name = "null";
    topology.nodes[2].host = "y";
    topology.nodes[3].forwarding = Forwarding::kStoreAndForward;
    topology.nodes[3].forwarding_delay = 1'001_ps;
    topology.links[0] = {{"x", PortNumber{2}}, topology.links[0].b, LinkWidth::k12x,
                         LinkSpeed::kFdr10,    12'345_ps,           Mtu::k256};
    topology.links[0].vls = 15;
    topology.links[0].buffer_bytes = 10'000;
    topology.links[1].a.node = "null";
    topology.sort();
    ASSERT_EQ(topology.error(), std::nullopt);
    EXPECT_EQ(read(write_yaml(topology)), topology) << write_yaml(topology);
}

TEST(TopologyYaml, EveryExampleLoads) {
    std::size_t examples = 0;
    for (const auto& entry : std::filesystem::directory_iterator(SIMVERBS_TOPOLOGIES)) {
        if (entry.path().extension() == ".yaml") {
            const Outcome<Topology> result = load_topology(entry.path().string(), kPersonalities);
            ASSERT_TRUE(result) << error_of(result);
            EXPECT_EQ(read(write_yaml(*result)), *result);
            ++examples;
        }
    }
    EXPECT_EQ(examples, 5U);
    const Topology thousand =
        load_topology(std::string(SIMVERBS_TOPOLOGIES) + "/thousand_hosts.yaml").value();
    EXPECT_EQ(thousand.nodes.size(), 1'035U);
    EXPECT_EQ(thousand.links.size(), 1'250U);
}

TEST(LoadTopology, TellsFilesFromGenerators) {
    EXPECT_TRUE(load_topology("star:3"));
    EXPECT_EQ(error_of(load_topology("./nowhere.yaml")),
              "./nowhere.yaml: No such file or directory");
    EXPECT_EQ(error_of(load_topology("nowhere.topo")), "nowhere.topo: No such file or directory");
    EXPECT_THAT(error_of(load_topology("nowhere")), HasSubstr("is no topology: say pair"));
}

}  // namespace
}  // namespace fabric
