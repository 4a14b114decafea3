// The facts of a trace about the fabric, its queue pairs and its packets, put together: each packet
// with the hops that its frame made and its end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simverbs/model/completion_faults.hpp"

#include "viz/trace_file.hpp"

namespace simverbs::viz {

struct QpName {
    std::uint32_t node = 0;
    std::uint32_t qpn = 0;
    friend constexpr auto operator<=>(const QpName&, const QpName&) = default;
};

struct RunNode {
    std::string label;
    bool is_switch = false;
};

struct RunLink {
    std::string name;
    std::uint32_t node = 0;
    std::uint32_t port = 0;
    std::uint32_t peer = 0;
    std::uint32_t peer_port = 0;
    std::string layer;
    std::uint64_t bits_per_second = 0;
    bool up = false;

    // Picoseconds for which one direction is busy with so many bytes. 0: its rate is not known.
    [[nodiscard]] std::int64_t wire_time(std::uint64_t bytes) const;
};

struct Hop {
    std::uint32_t node = 0;  // that sent
    std::uint32_t port = 0;
    std::int64_t start = 0;    // first bit, ps
    std::int64_t arrival = 0;  // last bit at the other end, ps
    std::uint64_t wire_bytes = 0;
};

// A copy of a packet at a queue pair: one, unless it was multicast or a fault doubled it.
struct Arrival {
    QpName at;
    std::int64_t time = 0;
    std::uint64_t seq = 0;  // of the record that tells it
    std::string discarded;  // why it was not taken; "": it was

    // Returns true if both came to the same end, whenever they came.
    [[nodiscard]] bool ends_like(const Arrival& other) const {
        return at == other.at && discarded == other.discarded;
    }
};

struct RunPacket {
    QpName from;
    std::uint32_t dest_qpn = 0;
    std::uint8_t bth_opcode = 0;
    std::string opcode;
    std::uint32_t psn = 0;
    std::uint32_t payload = 0;
    std::uint32_t dma_length = 0;  // of a request that has a RETH
    bool retransmission = false;
    bool is_management = false;  // of the communication manager: has no PSN
    std::uint8_t syndrome = 0;
    std::int64_t sent = 0;       // given to the port
    std::uint64_t sent_seq = 0;  // number of that record
    std::vector<Hop> hops;
    std::vector<Arrival> arrivals;
    std::string lost;        // why; "": it was not
    std::string lost_where;  // "s0 port 1"
    std::string lost_fault;  // "fault 2: drop"; "" where no fault did it
    std::optional<std::uint32_t> lost_at;
    std::int64_t lost_time = 0;
    std::uint64_t lost_seq = 0;

    // Its ends: arrivals, then the loss; at least one, which may still be to come.
    [[nodiscard]] std::size_t ends() const;
    // nullptr: lost, or under way.
    [[nodiscard]] const Arrival* arrival(std::size_t end) const;
    [[nodiscard]] std::int64_t end_time(std::size_t end) const;
    [[nodiscard]] std::uint64_t end_seq(std::size_t end) const;
    // "fault "cut": drop, lost at s0 port 1".
    [[nodiscard]] std::string loss_words() const;
    // "ACK", "RNR NAK", "NAK: invalid request"; "" of packets without an AETH.
    [[nodiscard]] std::string answer() const;
};

// nullptr: a cause that the model does not have.
const CompletionFault* cause_named(std::string_view name);

// "12 B", "64 KiB".
std::string size_text(std::uint64_t bytes);

struct PortUse {
    std::uint64_t frames = 0;  // sent
    std::uint64_t bytes = 0;   // likewise, as on the wire
    std::uint64_t lost = 0;    // dropped here
};

struct Run {
    std::map<std::uint32_t, RunNode> nodes;
    std::vector<RunLink> links;
    std::map<QpName, std::string> services;  // of queue pairs that the trace describes
    std::map<QpName, std::uint32_t> places;  // of each among those of its node, from 1
    std::map<std::int64_t, std::string> fault_names;
    std::vector<RunPacket> packets;                                    // in order of sending
    std::map<std::pair<std::uint32_t, std::uint32_t>, PortUse> ports;  // node, port
    std::int64_t begin = 0;
    std::int64_t end = 0;

    [[nodiscard]] std::string label(std::uint32_t node) const;
    // "h0 QP 0x10001"; "h0 GSI" of queue pair 1, which has the messages of the communication
    // manager.
    [[nodiscard]] std::string label(const QpName& qp) const;
    // "fault "cut": drop"; without a name: "fault 2: drop".
    [[nodiscard]] std::string fault_text(const Record& fired) const;
    // Returns the queue pair that a packet was meant for, the first of several; nothing where no
    // packet of the trace tells.
    [[nodiscard]] std::optional<QpName> destination(const RunPacket& packet) const;
    // "h0:65537", "h0:0x10001": that queue pair; "h0": all of the host that the trace describes or
    // that send. Nothing where the trace has none.
    [[nodiscard]] std::vector<QpName> find_qps(std::string_view text) const;

    // Who packets that arrived were for.
    std::map<std::pair<QpName, std::uint32_t>, QpName> peers;  // sender, destination number
};

Run read_run(const Trace& trace);

}  // namespace simverbs::viz
