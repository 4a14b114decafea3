#include "fabric/topology/ibnetdiscover_text.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fabric/topology/generators.hpp"
#include "fabric/topology/text_file.hpp"

#include "tests/support/outcome.hpp"

namespace fabric {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kExamples = "/usr/share/doc/ibsim-utils/net-examples";

Topology read(const std::string& text) {
    Outcome<Topology> result = read_ibnetdiscover(text, "net");
    EXPECT_TRUE(result) << error_of(result);
    return result.value_or(make_pair());
}

std::string error_in(const std::string& text) {
    return error_of(read_ibnetdiscover(text, "net"));
}

// clang-format off
// The output of ibnetdiscover of infiniband-diags 44 on two hosts, and -f on the switch.
constexpr const char* kPrinted = R"(#
# Topology file: generated on Sat Nov 21 21:16:41 2026
#
# Initiated from node 0002c90300a1b2c3 port 0002c90300a1b2c4

vendid=0x2c9
devid=0xc738
sysimgguid=0x2c90300000001
switchguid=0x2c90300000001(2c90300000001)
Switch	36 "S-0002c90300000001"		# "MF0;rack-1:SX6036/U1" enhanced port 0 lid 2 lmc 0
[1]	"H-0002c90300a1b2c3"[1](2c90300a1b2c4) 		# "node7 mlx5_0" lid 4 4xFDR s=4 w=2 v=3
[17][ext 9]	"H-0002c90300a1b2d3"[2][ext 3](2c90300a1b2ff) 		# "node-8 mlx5_1" lid 5 1xEDR

vendid=0x2c9
devid=0x1013
sysimgguid=0x2c90300a1b2c3
caguid=0x2c90300a1b2c3
Ca	1 "H-0002c90300a1b2c3"		# "node7 mlx5_0"
[1](2c90300a1b2c4) 	"S-0002c90300000001"[1]		# lid 4 lmc 0 "MF0;rack-1:SX6036/U1" lid 2 4xFDR s=4 w=2 v=4

caguid=0x2c90300a1b2d3
Ca	2 "H-0002c90300a1b2d3"		# "node-8 mlx5_1"
[2](2c90300a1b2ff) 	"S-0002c90300000001"[17]		# lid 5 lmc 0 "MF0;rack-1:SX6036/U1" lid 2 1xEDR
)";
// clang-format on

TEST(IbnetdiscoverText, IsReadAsItWasPrinted) {
    const Topology topology = read(kPrinted);
    ASSERT_EQ(topology.nodes.size(), 3U);
    EXPECT_EQ(topology.nodes[0].name, "node7");
    EXPECT_EQ(topology.nodes[0].description, "node7 mlx5_0");
    EXPECT_EQ(topology.nodes[0].guid, Guid{0x2c90300a1b2c3});
    EXPECT_THAT(topology.nodes[0].port_guids, ElementsAre()) << "the node's and the port's number";
    EXPECT_EQ(topology.nodes[1].name, "node_8");
    EXPECT_THAT(topology.nodes[1].port_guids, ElementsAre(Guid{}, Guid{0x2c90300a1b2ff}));
    EXPECT_EQ(topology.nodes[2].name, "MF0_rack_1_SX6036_U1");
    EXPECT_EQ(topology.nodes[2].port_count, 36U);
    ASSERT_EQ(topology.links.size(), 2U);
    EXPECT_EQ(topology.links[0].speed, LinkSpeed::kFdr) << "the comment knows better than s=4";
    EXPECT_EQ(topology.links[0].vls, 4U) << "the fewer of both ends";
    EXPECT_EQ(topology.links[1].b.port, PortNumber{17});
    EXPECT_EQ(topology.links[1].width, LinkWidth::k1x);
}

TEST(IbnetdiscoverText, HcasOfOneHostAreCalledAfterTheirDevices) {
    const Topology topology = read(R"(
Ca 1 "H-0000000000000010" # "n1 mlx5_0"
[1] "H-0000000000000020"[1]
Ca 1 "H-0000000000000020" # "n1 mlx5_1"
[1] "H-0000000000000010"[1]
)");
    EXPECT_EQ(topology.nodes[0].name, "n1.mlx5_0");
    EXPECT_EQ(topology.nodes[1].name, "n1.mlx5_1");
    EXPECT_EQ(host_of(topology.nodes[1]), "n1");
}

TEST(IbnetdiscoverText, NodesThatAreDescribedAlikeAreCalledAfterTheirIds) {
    const Topology topology = read(R"(
Ca 1 "H-0000000000000010" # "a ConnectX adapter"
[1] "H-0000000000000020"[1]
Ca 1 "H-0000000000000020" # "a ConnectX adapter"
[1] "H-0000000000000010"[1]
)");
    EXPECT_EQ(topology.nodes[0].name, "H_0000000000000010");
    EXPECT_EQ(topology.nodes[0].description, "a ConnectX adapter");
    EXPECT_EQ(topology.nodes[0].guid, Guid{0x10});
}

TEST(IbnetdiscoverText, GuidsCountUpFromABase) {
    const Topology topology = read(R"(
switchguids=0x1000
hcaguids=0x2000
Switch 3 "s0"
[1] "h0"[1]
[2] "h1"[1]
[3] "s1"[1]
Switch 1 "s1"
[1] "s0"[3]
Hca 2 "h0"
[1] "s0"[1]
Hca 1 "h1"
[1] "s0"[2]
hcaguids+0x100
Hca 1 "h2"
)");
    EXPECT_EQ(topology.nodes[0].guid, Guid{0x2000});
    EXPECT_EQ(topology.nodes[1].guid, Guid{0x2003});
    EXPECT_EQ(topology.nodes[2].guid, Guid{0x2100});
    EXPECT_EQ(topology.nodes[4].guid, Guid{0x1001});
}

TEST(IbnetdiscoverText, IbsimsWidthsAndSpeedsAreMasks) {
    const Topology topology = read(R"(
width=3
Switch 2 "s0"
[1] "h0"[1] w=12 s=3
[2] "h1"[1]
width=15
Hca 1 "h0"
[1] "s0"[1]
Hca 1 "h1"
[1] "s0"[2] s=4
)");
    EXPECT_EQ(topology.links[0].width, LinkWidth::k12x);
    EXPECT_EQ(topology.links[0].speed, LinkSpeed::kDdr);
    EXPECT_EQ(topology.links[1].width, LinkWidth::k4x);
    EXPECT_EQ(topology.links[1].speed, LinkSpeed::kQdr);
}

TEST(IbnetdiscoverText, SaysWhereAMistakeIs) {
    const std::string h1 = "\nHca 1 \"h1\"\n[1] \"h0\"[1]\n";
    EXPECT_EQ(error_in("# x\nSwitch x \"s0\"\n"), "net:2:8: expected the number of ports");
    EXPECT_EQ(error_in("Hca 1 h0\n"), "net:1:7: expected the node's id in quotes");
    EXPECT_EQ(error_in("Hca 1 \"h0\n"), "net:1:8: expected an id and a closing quote");
    EXPECT_THAT(error_in("Hca 1 \"h0\"\n[2] \"h1\"[1]" + h1),
                HasSubstr("net:2:1: expected a port from [1] to [1], as h0 has"));
    EXPECT_THAT(error_in("Hca 1 \"h0\"\n[1] h1[1]" + h1), HasSubstr("net:2:5: expected the id"));
    EXPECT_THAT(error_in("Hca 1 \"h0\"\n[1] \"h1\"[0]" + h1), HasSubstr("net:2:11: expected the"));
    EXPECT_EQ(error_in("Hca 1 \"h0\"\n[1] \"h7\"[1]\n"), "net:2:1: there is no node \"h7\"");
    EXPECT_EQ(error_in("Hca 1 \"h0\"\n[1] \"h1\"[1]\nHca 1 \"h1\"\n"),
              "net:2:1: port 1 of h1 does not lead back to port 1 of h0");
    EXPECT_EQ(error_in("Hca 1 \"h0\"\n[1] \"h1\"[1]\n[1] \"h1\"[1]" + h1),
              "net:3:1: port 1 of h0 has two links");
    EXPECT_EQ(error_in("Hca 1 \"h0\"\n\nHca 1 \"h0\"\n"),
              "net:3:1: a second node \"h0\": the first is in line 1");
    EXPECT_EQ(error_in("Hca 1 \"h0\"\n\n[1] \"h1\"[1]" + h1),
              "net:3:1: a port outside of a node's record");
    EXPECT_THAT(error_in("Hca 1 \"h0\"\n[1] \"h1\"[1] z=4" + h1), HasSubstr("net:2:13: \"z=4\": "));
    EXPECT_THAT(error_in("Hca 1 \"h0\"\n[1] \"h1\"[1] w=1\nHca 1 \"h1\"\n[1] \"h0\"[1] w=2\n"),
                HasSubstr("net:2:1: the ends of this link have no width and speed in common"));
    EXPECT_THAT(
        error_in("Hca 1 \"h0\"\n[1] \"h1\"[1] # 4xEDR\nHca 1 \"h1\"\n[1] \"h0\"[1] # 4xHDR"),
        HasSubstr("have no width and speed in common"));
    EXPECT_THAT(error_in("Swich 1 \"s0\"\n"), HasSubstr("net:1:1: expected a node (Switch or Ca)"));
    EXPECT_THAT(error_in("Rt 2 \"r0\"\n"), HasSubstr("routers are not modelled"));
    EXPECT_THAT(error_in("do unlink\n"), HasSubstr("console are not carried out"));
    EXPECT_THAT(error_in("width=0\n"), HasSubstr("net:1:7: expected = and a mask from 1 to 31"));
    EXPECT_THAT(error_in("speed 8\n"), HasSubstr("mask from 1 to 7"));
    EXPECT_THAT(error_in("caguid=\n"), HasSubstr("net:1:8: expected a GUID"));
    EXPECT_THAT(error_in(""), HasSubstr("net: a topology has at least one node"));
}

class IncludedFiles : public testing::Test {
  protected:
    void SetUp() override { std::filesystem::create_directories(folder_); }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    void write(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ + name) << text;
    }
    const std::string folder_ =
        testing::TempDir() + "simverbs_included_" + std::to_string(getpid()) + "/";
};

TEST_F(IncludedFiles, LieBesideTheOneThatNamesThem) {
    write("host", "module \"rack1\"\nHca 1 \"h0\"\n[1] \"main#s0\"[1]\n");
    const Outcome<Topology> result = read_ibnetdiscover(
        "module \"main\"\nSwitch 1 \"s0\"\n[1] \"rack1#h0\"[1]\n"
        "include \"host\"\n",
        folder_ + "net");
    ASSERT_TRUE(result) << error_of(result);
    EXPECT_EQ(result->nodes[0].name, "rack1_h0");
    EXPECT_EQ(result->links[0].b.node, "main_s0");
}

TEST_F(IncludedFiles, ThatAreNotThereOrIncludeThemselvesAreNamed) {
    write("loop", "include \"loop\"\n");
    EXPECT_EQ(error_of(read_ibnetdiscover("include \"none\"\n", folder_ + "net")),
              folder_ + "net:1:8: " + folder_ + "none: No such file or directory");
    EXPECT_THAT(error_of(read_ibnetdiscover("include \"loop\"\n", folder_ + "net")),
                HasSubstr("loop:1:8: 9 files include one another"));
}

// Whatever the spelling, the same fabric: names, GUIDs, descriptions and links.
void expect_same_fabric(Topology a, Topology b) {
    a.sort();
    b.sort();
    ASSERT_EQ(a.nodes.size(), b.nodes.size());
    for (std::size_t i = 0; i < a.nodes.size(); ++i) {
        const NodeId id{static_cast<std::uint32_t>(i)};
        EXPECT_EQ(a.nodes[i].name, b.nodes[i].name);
        EXPECT_EQ(a.nodes[i].port_count, b.nodes[i].port_count);
        EXPECT_EQ(host_of(a.nodes[i]), host_of(b.nodes[i]));
        EXPECT_EQ(description_of(a.nodes[i]), description_of(b.nodes[i]));
        EXPECT_EQ(node_guid(a.nodes[i], id), node_guid(b.nodes[i], id));
        for (std::uint16_t port = 1; port <= a.nodes[i].port_count; ++port) {
            EXPECT_EQ(port_guid(a.nodes[i], id, PortNumber{port}),
                      port_guid(b.nodes[i], id, PortNumber{port}));
        }
    }
    EXPECT_EQ(a.links, b.links);
}

TEST(IbnetdiscoverText, IsReadBackAsItWasWritten) {
    for (const char* const spec :
         {"pair", "star:5", "fat-tree:4", "torus:3x3", "dragonfly:a=2,p=1,h=1"}) {
        const Topology topology = generate_topology(spec).value();
        const auto written = write_ibnetdiscover(topology);
        EXPECT_EQ(error_of(written), "no failure");
        expect_same_fabric(read(*written), topology);
    }
    Topology topology = make_star(3);
    topology.nodes[0].name = topology.links[0].a.node = "h0.0";
    topology.nodes[1].name = topology.links[1].a.node = "h0.1";
    topology.nodes[0].host = topology.nodes[1].host = "h0";
    topology.nodes[1].guid = Guid{0x55};
    topology.nodes[1].port_guids = {Guid{0x55}};
    topology.nodes[3].description = "the # of the rack";
    topology.links[1].width = LinkWidth::k12x;
    topology.links[1].speed = LinkSpeed::kSdr;
    topology.links[2].width = LinkWidth::k2x;
    topology.links[2].speed = LinkSpeed::kXdr;
    expect_same_fabric(read(write_ibnetdiscover(topology).value()), topology);
}

TEST(IbnetdiscoverText, HasNoEthernetAndNoQuotes) {
    EXPECT_THAT(error_of(write_ibnetdiscover(make_pair(LinkLayer::kEthernet))),
                HasSubstr("the link of h0 and h1 is Ethernet"));
    Topology topology = make_pair();
    topology.nodes[1].description = "a \"host\"";
    EXPECT_THAT(error_of(write_ibnetdiscover(topology)), HasSubstr("h1 has a quote"));
}

TEST(IbnetdiscoverText, DebiansExamplesLoadAsTheyAre) {
    if (!std::filesystem::exists(kExamples)) {
        GTEST_SKIP() << "ibsim-utils is not installed, or without its documents";
    }
    std::size_t examples = 0;
    for (const auto& entry : std::filesystem::directory_iterator(kExamples)) {
        if (entry.path().filename() == "examples.README") {
            continue;
        }
        const auto text = read_text_file(entry.path());
        ASSERT_TRUE(text) << error_of(text);
        const Outcome<Topology> result = read_ibnetdiscover(*text, entry.path());
        EXPECT_TRUE(result) << error_of(result);
        ++examples;
    }
    EXPECT_EQ(examples, 5U);
    const Topology net = read(*read_text_file(std::string(kExamples) + "/net"));
    EXPECT_EQ(net.nodes.size(), 4U);
    EXPECT_EQ(net.links.size(), 4U);
    EXPECT_EQ(net.nodes[1].name, "Hca2");
}

}  // namespace
}  // namespace fabric
