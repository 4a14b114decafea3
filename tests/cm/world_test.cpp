// Connections in a whole world: their messages as stock tshark reads them in a capture, and lost by
// faults as programs ask for them.
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fabric/trace/memory_sink.hpp"

#include "simverbs/faults/fault_board.hpp"
#include "simverbs/faults/fault_request.hpp"
#include "simverbs/outlets/capture.hpp"
#include "simverbs/world/simulation.hpp"

#include "tests/cm/cm_fabric.hpp"

namespace simverbs::cm {
namespace {

using test::Host;
using testing::ElementsAre;
using testing::Pair;
using namespace fabric::literals;

class CmWorld {
  public:
    CmWorld(const std::string& topology, std::optional<std::uint8_t> gid_index)
        : simulation(std::move(*Simulation::make({.topology = topology}))), gid_index_(gid_index) {
        for (std::size_t i = 0; i < simulation->hca_count(); ++i) {
            hosts.push_back(std::make_unique<Host>(simulation->managed_network(),
                                                   simulation->network().host(i)));
        }
        hosts[1]->listen();
    }
    Connection& connect(std::uint32_t qpn = test::kActiveQpn) {
        const fabric::Port& peer = simulation->hca(1).port(1);
        return hosts[0]->connect(test::address_of(peer, gid_index_), qpn);
    }
    void run() {
        while (simulation->step() != 0) {
        }
    }

    std::unique_ptr<Simulation> simulation;
    std::vector<std::unique_ptr<Host>> hosts;

  private:
    std::optional<std::uint8_t> gid_index_;
};

// Bits of a frame that count as ones in its invariant CRC since they change on the way (IBA 7.8.1,
// A16.4.5, A17.4.4): byte of the frame, bits.
using Masks = std::vector<std::pair<std::size_t, std::uint8_t>>;

struct Layer {
    std::string name;
    std::string topology;
    std::optional<std::uint8_t> gid_index;
    std::string filter;    // fields that tshark finds in each frame
    std::size_t ethernet;  // bytes of the header
    std::size_t behind;    // bytes after the invariant CRC
    Masks masks;
};

std::vector<std::string> tshark(const std::string& capture, const std::string& rest) {
    std::string text;
    const std::string command = "tshark -r '" + capture + "' " + rest + " 2>/dev/null";
    FILE* const pipe = popen(command.c_str(), "r");
    std::array<char, 4096> buffer;
    for (std::size_t got = 0; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
        text.append(buffer.data(), got);
    }
    EXPECT_EQ(pclose(pipe), 0) << "tshark (package of that name) does not run";
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
    }
    return lines;
}

class CmCaptures : public testing::TestWithParam<Layer> {
  protected:
    // Captures a connection from REQ to DREP.
    void SetUp() override {
        CmWorld world(GetParam().topology, GetParam().gid_index);
        Capture capture(*world.simulation, path);
        Connection& active = world.connect();
        world.run();
        ASSERT_EQ(active.send_dreq({}), 0);
        world.run();
        capture.flush();
        ASSERT_TRUE(capture.ok());
    }
    void TearDown() override { std::remove(path.c_str()); }

    const std::string path =
        testing::TempDir() + "cm_" + std::to_string(getpid()) + GetParam().name + ".pcapng";
};
INSTANTIATE_TEST_SUITE_P(
    On, CmCaptures,
    testing::Values(
        Layer{"Infiniband", "star:2", std::nullopt, "infiniband.lrh", 0, 2,
              Masks{{0, 0xF0}, {12, 0xFF}}},
        Layer{"RoceV1", "eth-star:2", 2, "eth.type == 0x8915 && infiniband.grh", 14, 0,
              Masks{{14, 0x0F}, {15, 0xFF}, {16, 0xFF}, {17, 0xFF}, {21, 0xFF}, {58, 0xFF}}},
        Layer{"RoceV2", "eth-star:2", 3, "ip && udp.dstport == 4791", 14, 0,
              Masks{{15, 0xFF},
                    {22, 0xFF},
                    {24, 0xFF},
                    {25, 0xFF},
                    {40, 0xFF},
                    {41, 0xFF},
                    {46, 0xFF}}}),
    [](const auto& layer) { return layer.param.name; });

TEST_P(CmCaptures, TsharkReadsTheMessages) {
    EXPECT_THAT(tshark(path,
                       "-Y 'frame.packet_flags_direction == 2 && infiniband.mad.mgmtclass == "
                       "7 && infiniband.bth.opcode == 0x64 && infiniband.bth.destqp == 1 && "
                       "infiniband.deth.q_key == 0x80010000 && " +
                           GetParam().filter +
                           "' -T fields -e frame.interface_name -e infiniband.mad.attributeid"),
                ElementsAre("h0:1\t0x0010", "h1:1\t0x0013", "h0:1\t0x0014", "h0:1\t0x0015",
                            "h1:1\t0x0016"));
    EXPECT_THAT(tshark(path, "-Y _ws.malformed"), testing::IsEmpty());
}

TEST_P(CmCaptures, TsharkReadsTheFieldsOfARequest) {
    EXPECT_THAT(tshark(path,
                       "-Y 'frame.packet_flags_direction == 1 && infiniband.cm.req' -T fields -e "
                       "infiniband.cm.req.serviceid -e infiniband.cm.req.localqpn -e "
                       "infiniband.cm.req.startpsn"),
                ElementsAre("0x0000000001061234\t0x000100\t0x123456"));
}

// Written anew from the clauses, not with the code under test.
std::uint32_t invariant_crc_of(std::vector<std::uint8_t> frame, const Layer& layer) {
    constexpr std::size_t kIcrc = 4;
    constexpr std::size_t kLrh = 8;
    for (const auto& [place, bits] : layer.masks) {
        frame.at(place) |= bits;
    }
    std::vector<std::uint8_t> covered(layer.ethernet == 0 ? 0 : kLrh, 0xFF);
    covered.insert(covered.end(), frame.begin() + static_cast<std::ptrdiff_t>(layer.ethernet),
                   frame.end() - static_cast<std::ptrdiff_t>(kIcrc + layer.behind));
    std::uint32_t crc = 0xFFFFFFFF;
    for (const std::uint8_t byte : covered) {
        crc ^= byte;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
        }
    }
    return ~crc;
}

// Returns the bytes of each frame of a capture, as tshark prints them: "0000  ff ff ...".
std::vector<std::vector<std::uint8_t>> frames_of(const std::string& capture) {
    std::vector<std::vector<std::uint8_t>> frames;
    for (const std::string& line : tshark(capture, "-x --hexdump noascii")) {
        std::istringstream words(line);
        std::string offset;
        if (!(words >> offset)) {
            continue;
        }
        if (offset == "0000") {
            frames.emplace_back();
        }
        for (std::string byte; words >> byte;) {
            frames.back().push_back(static_cast<std::uint8_t>(std::stoul(byte, nullptr, 16)));
        }
    }
    return frames;
}

TEST_P(CmCaptures, InvariantCrcsAreRight) {
    const auto frames = frames_of(path);
    EXPECT_EQ(frames.size(), 2U * 5U) << "sent, and come";
    for (const std::vector<std::uint8_t>& frame : frames) {
        const std::size_t at = frame.size() - GetParam().behind - 4;
        std::uint32_t sent = 0;
        for (std::size_t i = 4; i-- > 0;) {
            sent = sent << 8U | frame[at + i];
        }
        EXPECT_EQ(invariant_crc_of(frame, GetParam()), sent);
    }
}

class CmFaults : public testing::TestWithParam<const char*> {
  protected:
    // Drops the `nth` frame of that name.
    void drop(const char* opcode, std::uint64_t nth) {
        simverbs_fault asked{};
        asked.size = sizeof asked;
        asked.action = SIMVERBS_FAULT_DROP;
        asked.match.opcode = opcode;
        asked.nth = nth;
        FaultRequest request(*world.simulation, board, asked);
        ASSERT_EQ(request.read(), 0) << request.why();
        board.inject(request.spec());
    }
    std::vector<std::string> hit() {
        std::vector<std::string> operations;
        for (const fabric::trace::TraceRecord* record : fired.named("fault_fired")) {
            operations.emplace_back(record->text("operation"));
        }
        return operations;
    }

    CmWorld world{GetParam(), GetParam() == std::string("star:2") ? std::nullopt
                                                                  : std::optional<std::uint8_t>(3)};
    FaultBoard board{*world.simulation};
    fabric::trace::MemorySink fired;
};
INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, CmFaults, testing::Values("star:2", "eth-star:2"),
                         [](const auto& topology) {
                             return topology.param == std::string("star:2") ? "InfiniBand"
                                                                            : "Ethernet";
                         });

TEST_P(CmFaults, TakeTheMessageThatTheyName) {
    world.simulation->bus().attach(fired,
                                   fabric::trace::CategorySet{fabric::trace::Category::kFault});
    drop("CM_REQ", 2);
    drop("CM_REP", 1);
    const Connection& first = world.connect();
    world.run();
    EXPECT_EQ(first.state(), CmState::kEstablished);
    const Connection& second = world.connect(test::kActiveQpn + 1);
    world.run();
    EXPECT_EQ(second.state(), CmState::kEstablished);
    EXPECT_THAT(hit(), ElementsAre("CM_REP", "CM_REQ"));
}

TEST_P(CmFaults, TakeEveryMessageByTheNameOfTheClass) {
    world.simulation->bus().attach(fired,
                                   fabric::trace::CategorySet{fabric::trace::Category::kFault});
    drop("CM", 3);
    const Connection& active = world.connect();
    world.run();
    EXPECT_EQ(active.state(), CmState::kEstablished);
    EXPECT_THAT(hit(), ElementsAre("CM_RTU"));
}

}  // namespace
}  // namespace simverbs::cm
