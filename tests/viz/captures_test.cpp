// The fields that stock tshark reads in a capture, beside the trace of the same run.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "simverbs/model/wire_opcodes.hpp"

#include "recorded_run.hpp"
#include "viz/run.hpp"

namespace viz_test {
namespace {

using nlohmann::json;
using simverbs::WireHeader;
using simverbs::viz::Record;
using simverbs::viz::Trace;
using verbs_test::Request;

std::string tshark(const std::string& capture, const std::string& rest) {
    return "tshark -r '" + capture + "' " + rest + " 2>/dev/null";
}

// A packet in words, as tshark has it and as the trace has it: the same, if all is well.
struct Words {
    std::map<std::string, std::vector<std::string>> by_port;  // what each HCA's port sent, in order
};

std::string number(const std::string& text) {
    return text.empty() ? "" : std::to_string(std::stoull(text, nullptr, 0));
}

Words of_capture(const std::string& capture) {
    Words words;
    const Output output = run_program(tshark(
        capture,
        "-Y 'frame.packet_flags_direction == 2 && infiniband.bth' -T fields -E separator='|' -E "
        "occurrence=f -e frame.interface_name -e infiniband.bth.opcode -e infiniband.bth.psn -e "
        "infiniband.bth.destqp -e infiniband.bth.a -e infiniband.aeth.syndrome -e "
        "infiniband.aeth.msn -e infiniband.reth.r_key -e infiniband.reth.dmalen"));
    EXPECT_EQ(output.status, 0) << "tshark (package of that name) does not run";
    for (const std::string& line : output.lines()) {
        std::vector<std::string> fields;
        std::istringstream in(line + "|");
        for (std::string field; std::getline(in, field, '|');) {
            fields.push_back(field);
        }
        if (fields.size() < 9) {
            ADD_FAILURE() << line;
            continue;
        }
        std::string text;
        for (std::size_t i = 1; i < 9; ++i) {
            text += (i == 4 ? (fields[i] == "1" || fields[i] == "True" ? "1" : "0")
                            : number(fields[i])) +
                    " ";
        }
        words.by_port[fields[0]].push_back(text);
    }
    return words;
}

Words of_trace(const Trace& trace) {
    const simverbs::viz::Run run = simverbs::viz::read_run(trace);
    Words words;
    for (const Record& record : trace.records) {
        if (record.name != "packet_sent") {
            continue;
        }
        const auto& opcode =
            simverbs::wire_opcode(static_cast<std::uint8_t>(record.number("bth_opcode")));
        const auto word = [&record](const char* field) {
            return std::to_string(record.number(field)) + " ";
        };
        // tshark 4.0 knows the opcodes of XRC, and no header behind them.
        const bool decoded = opcode.transport != simverbs::WireTransport::kXrc;
        const bool answers = decoded && opcode.has(WireHeader::kAeth);
        const bool reaches = decoded && opcode.has(WireHeader::kReth);
        std::string text =
            word("bth_opcode") + word("psn") + word("dest_qpn") + word("ack_request");
        text += answers ? word("syndrome") + word("msn") : "  ";
        // AtomicETH has a key in the same field, and no length.
        const bool is_atomic = decoded && opcode.has(WireHeader::kAtomicEth);
        text += reaches ? word("rkey") + word("dma_length") : is_atomic ? word("rkey") + " " : "  ";
        words.by_port[run.label(record.node) + ":1"].push_back(text);
    }
    return words;
}

std::size_t count_of(const std::string& capture, const std::string& filter) {
    return run_program(tshark(capture, "-Y '" + filter + "'")).lines().size();
}

class Captures : public RecordedRun, public testing::WithParamInterface<const char*> {
  protected:
    void SetUp() override {
        RecordedRun::SetUp();
        ASSERT_EQ(simverbs_set_topology(GetParam()), 0) << simverbs_last_error();
    }
    void record() {
        open_trace();
        open_capture();
    }
    void expect_agreement() {
        close_capture();
        close_trace();
        expect_agreement(file(".jsonl"), file(".pcapng"));
    }
    static void expect_agreement(const std::string& traced, const std::string& captured) {
        const auto read = simverbs::viz::read_trace(traced);
        ASSERT_TRUE(read) << read.error();
        const Words expected = of_trace(*read);
        const Words found = of_capture(captured);
        EXPECT_GT(expected.by_port.size(), 0U);
        EXPECT_EQ(found.by_port, expected.by_port);
        EXPECT_EQ(count_of(captured, "_ws.malformed"), 0U);
        EXPECT_EQ(count_of(captured, "!infiniband && !arp"), 0U) << "not taken for InfiniBand";
    }
};
INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, Captures, testing::Values("star:2", "eth-star:2"),
                         [](const auto& link_layer) {
                             return std::string(link_layer.param) == "star:2" ? "InfiniBand"
                                                                              : "RoceV2";
                         });

TEST_P(Captures, OfReliableTrafficAreWhatWasSent) {
    record();
    reliable_traffic();
    expect_agreement();
    const std::string capture = file(".pcapng");
    EXPECT_EQ(count_of(capture, "frame.comment contains \"drop\""), 1U);
    EXPECT_GE(count_of(capture, "infiniband.aeth.syndrome.opcode == 1"), 1U) << "RNR NAK";
    EXPECT_GE(count_of(capture, "infiniband.aeth.syndrome.error_code == 2"), 1U)
        << "remote access error";
    EXPECT_GE(count_of(capture, "infiniband.atomiceth"), 2U);
    // No trace has addresses, which are not the same twice; the program knows what it asked for.
    const Output reached = run_program(
        tshark(capture, "-Y infiniband.reth.va -T fields -E occurrence=f -e infiniband.reth.va"));
    EXPECT_GE(reached.lines().size(), 2U * 5U) << "two WRITEs, a READ and two atomics, seen twice";
    for (const std::string& address : reached.lines()) {
        EXPECT_EQ(number(address), std::to_string(b->address(131072)));
    }
}

TEST_P(Captures, OfUnreliableTrafficAreWhatWasSent) {
    record();
    unreliable_traffic();
    expect_agreement();
}

TEST_P(Captures, OfDatagramsAreWhatWasSent) {
    record();
    datagrams();
    expect_agreement();
    EXPECT_GE(count_of(file(".pcapng"), "infiniband.deth"), 1U);
}

TEST_P(Captures, ChangeNoRun) {
    reliable_traffic();
    pass(1000);
    const std::uint64_t unseen = run_digest();
    a.reset();
    b.reset();
    ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
    ASSERT_EQ(simverbs_set_topology(GetParam()), 0);
    open_capture();
    reliable_traffic();
    pass(1000);
    EXPECT_EQ(run_digest(), unseen);
    EXPECT_EQ(simverbs_capture_close(), 0);
}

TEST_P(Captures, HaveEachPacketWhereItIsSentAndWhereItComes) {
    open_capture();
    unreliable_traffic();
    close_capture();
    const std::string capture = file(".pcapng");
    const std::size_t sent = count_of(capture, "frame.packet_flags_direction == 2");
    EXPECT_EQ(sent, 5U);
    EXPECT_EQ(count_of(capture, "frame.packet_flags_direction == 1"), sent);
}

TEST_F(RecordedRun, ACaptureOfAVlanHasItsTagInEachFrame) {
    ASSERT_EQ(simverbs_set_topology("eth-star:2,vlans=100"), 0) << simverbs_last_error();
    open_capture();
    verbs_test::Connection with;
    with.gid_index = 7;
    connect(with);
    expect_works();
    close_capture();
    const std::string capture = file(".pcapng");
    const std::size_t all = count_of(capture, "infiniband.bth");
    EXPECT_GE(all, 4U);
    EXPECT_EQ(count_of(capture, "infiniband.bth && vlan.id == 100 && vlan.priority == 0"), all);
    EXPECT_EQ(count_of(capture, "_ws.malformed"), 0U);
}

TEST_P(Captures, OfXrcProgramsAreWhatWasSent) {
    const std::string environment = "SIMVERBS_TOPOLOGY=" + std::string(GetParam()) +
                                    " SIMVERBS_TRACE='" + file(".jsonl") + "' SIMVERBS_PCAP='" +
                                    file(".pcapng") + "' ";
    ASSERT_EQ(run_program(environment + SIMVERBS_XRC_EXAMPLE).status, 0);
    expect_agreement(file(".jsonl"), file(".pcapng"));
    EXPECT_GE(count_of(file(".pcapng"), "infiniband.bth.opcode >= 0xa0"), 1U);
}

// Written anew from IBA A17.3.3 and the bit order of IBA 7.8.1, not with the code under test: over
// IPv4, fields that change on the way count as ones.
std::uint32_t invariant_crc_of(std::vector<std::uint8_t> frame) {
    constexpr std::size_t kEthernet = 14;
    constexpr std::size_t kIcrc = 4;
    constexpr std::size_t kTypeOfService = kEthernet + 1;
    constexpr std::size_t kTimeToLive = kEthernet + 8;
    constexpr std::size_t kIpChecksum = kEthernet + 10;
    constexpr std::size_t kUdpChecksum = kEthernet + 20 + 6;
    constexpr std::size_t kReserved8a = kEthernet + 20 + 8 + 4;
    for (const std::size_t changes : {kTypeOfService, kTimeToLive, kIpChecksum, kIpChecksum + 1,
                                      kUdpChecksum, kUdpChecksum + 1, kReserved8a}) {
        frame.at(changes) = 0xFF;
    }
    std::vector<std::uint8_t> covered(8, 0xFF);  // where InfiniBand has its LRH
    covered.insert(covered.end(), frame.begin() + kEthernet, frame.end() - kIcrc);
    std::uint32_t crc = 0xFFFFFFFF;
    for (const std::uint8_t byte : covered) {
        crc ^= byte;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
        }
    }
    return ~crc;
}

// The bytes of each packet of a capture, as tshark read them.
std::vector<std::vector<std::uint8_t>> frames_of(const std::string& capture) {
    std::vector<std::vector<std::uint8_t>> frames;
    const json packets = json::parse(run_program(tshark(capture, "-T jsonraw")).text);
    for (const json& packet : packets) {
        const std::string digits = packet["_source"]["layers"]["frame_raw"][0];
        std::vector<std::uint8_t> bytes;
        for (std::size_t at = 0; at + 1 < digits.size(); at += 2) {
            bytes.push_back(
                static_cast<std::uint8_t>(std::stoul(digits.substr(at, 2), nullptr, 16)));
        }
        frames.push_back(std::move(bytes));
    }
    return frames;
}

// InfiniBand has no such packet: IBA 1.4 tells of congestion by datagrams of its own.
class CapturesOfCongestion : public Captures {};
INSTANTIATE_TEST_SUITE_P(OnEthernet, CapturesOfCongestion, testing::Values("eth-star:2"),
                         [](const auto& /*topology*/) { return "RoceV2"; });

TEST_P(CapturesOfCongestion, HaveTheMarksAndTheNotifications) {
    record();
    connect();
    simverbs_fault fault;
    simverbs_fault_init(&fault);
    fault.action = SIMVERBS_FAULT_MARK_CONGESTION;
    fault.match.from = "h0";
    fault.match.direction = SIMVERBS_REQUESTS;
    fault.nth = 3;
    ASSERT_EQ(simverbs_inject(&fault, nullptr), 0) << simverbs_last_error();
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .id(1)
                  .from(a->range(0, 5001))
                  .to(b->address(0), b->mr->rkey)
                  .post(*a),
              0);
    ASSERT_EQ(a->wait().status, IBV_WC_SUCCESS);
    expect_agreement();
    const std::string capture = file(".pcapng");
    EXPECT_EQ(count_of(capture, "ip.dsfield.ecn == 3"), 2U) << "sent, and come";
    // tshark 4.0 reads these packets, and has no name for their opcode.
    const std::string notified = "infiniband.bth.opcode == 129 && ip.dsfield.ecn != 3";
    EXPECT_EQ(count_of(capture, notified), 2U) << "sent, and come";
    std::size_t packets = 0;
    for (const std::vector<std::uint8_t>& frame : frames_of(capture)) {
        ++packets;
        std::uint32_t sent = 0;
        std::memcpy(&sent, frame.data() + frame.size() - sizeof sent, sizeof sent);
        EXPECT_EQ(invariant_crc_of(frame), sent) << "packet " << packets;
    }
    EXPECT_GE(packets, 2U * 7U) << "five of the WRITE, an acknowledgment, a notification";
}

class CaptureCalls : public RecordedRun {};

TEST_F(CaptureCalls, SayWhatIsWrong) {
    EXPECT_EQ(simverbs_capture_open(nullptr), EINVAL);
    EXPECT_EQ(simverbs_capture_open("/nowhere/at/all"), ENOENT);
    EXPECT_EQ(simverbs_capture_close(), ENOENT);
    open_capture();
    EXPECT_EQ(simverbs_capture_open(file(".pcapng").c_str()), EBUSY);
    EXPECT_EQ(simverbs_capture_close(), 0);
}

}  // namespace
}  // namespace viz_test
