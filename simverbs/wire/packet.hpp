// A transport packet as its parsed headers: what travels in a frame's transport slot.
//
// Bytes are built from it only for a capture, a corruption or a test. A field means something only
// where the opcode has its header (model/wire_opcodes.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "fabric/core/sim_time.hpp"
#include "fabric/core/strong_id.hpp"

#include "simverbs/model/access.hpp"
#include "simverbs/model/aeth.hpp"
#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/psn.hpp"
#include "simverbs/model/wire_opcodes.hpp"
#include "simverbs/wire/payload.hpp"

namespace simverbs {

// Names a shared receive queue (ibv_get_srq_num(3)); kNoSrq where nothing names one.
using SrqNumber = fabric::StrongId<struct SrqNumberTag, std::uint32_t>;
inline constexpr SrqNumber kNoSrq{};

struct Packet {
    // BTH
    std::uint8_t opcode = 0;
    bool solicited = false;
    bool ack_request = false;
    bool migration_request = true;
    std::uint16_t pkey = 0xFFFF;
    // Bits of one of its bytes, from the BTH on, that a fault has flipped: the invariant CRC says
    // so to who receives it.
    std::uint16_t corrupted_byte = 0;
    Psn psn{0};
    std::uint32_t dest_qpn = 0;
    // DETH; on connected services the frame's flow, which no header carries
    std::uint32_t source_qpn = 0;
    std::uint32_t qkey = 0;
    // AETH
    AethSyndrome syndrome;
    std::uint8_t corrupted_bits = 0;  // see corrupted_byte
    // FETH
    PlacementTypes placement;
    FlushReach reach = FlushReach::kRange;
    // AETH
    std::uint32_t msn = 0;
    // RETH, AtomicETH
    std::uint64_t remote_address = 0;
    std::uint32_t rkey = 0;
    std::uint32_t dma_length = 0;
    std::uint64_t swap_add = 0;
    // AtomicETH: compare; AtomicAckETH: the value that was there
    std::uint64_t compare = 0;
    // XRCETH: the shared receive queue that the request is for
    SrqNumber srq = kNoSrq;
    // ImmDt (network order) or IETH
    std::uint32_t immediate = 0;
    // More than one: a train, packets in a row that are written as one. The opcode says where in
    // the message they begin and end, as if one packet could hold them all; `psn` is the first
    // one's, and the payload what they carry together, all but the last `train_mtu` bytes. The last
    // one alone asks for an acknowledgment, or for a solicited event.
    std::uint16_t packets = 1;
    std::uint16_t train_mtu = 0;
    // Which transmission of this PSN it is; for the trace and for faults, on no wire.
    std::uint16_t attempt = 1;
    // Why a NAK was sent; on no wire either, so that a completion can name its cause.
    FaultCause cause = FaultCause::kSuccess;
    // Its payload has been placed (Node::take_ahead()).
    bool is_placed = false;
    // A fault hides the posted receives from it.
    bool finds_no_receive = false;
    // A fault lets the payload reach memory later by this.
    fabric::SimDuration landing_delay{};

    Payload payload;

    [[nodiscard]] const WireOpcode& operation() const { return wire_opcode(opcode); }
};
static_assert(std::is_trivially_copyable_v<Packet> && std::is_trivially_destructible_v<Packet>);

inline constexpr std::uint32_t kLrhBytes = 8;
inline constexpr std::uint32_t kGrhBytes = 40;
inline constexpr std::uint32_t kIcrcBytes = 4;
inline constexpr std::uint32_t kVcrcBytes = 2;

// Payloads are padded to four bytes (IBA 9.2.5).
constexpr std::uint32_t padded(std::uint32_t payload_bytes) {
    return (payload_bytes + 3U) & ~3U;
}

// Bytes of an InfiniBand packet on the wire, both CRCs included.
constexpr std::uint32_t infiniband_wire_bytes(const WireOpcode& operation,
                                              std::uint32_t payload_bytes, bool global) {
    return kLrhBytes + (global ? kGrhBytes : 0U) + operation.header_bytes + padded(payload_bytes) +
           kIcrcBytes + kVcrcBytes;
}

// Bytes of a RoCE packet behind the Ethernet header: GRH (IBA A16) or IP and UDP (IBA A17), then
// the transport's and the ICRC.
constexpr std::uint32_t roce_packet_bytes(const WireOpcode& operation, std::uint32_t payload_bytes,
                                          bool over_udp, bool over_ipv4) {
    constexpr std::uint32_t kIpv4Bytes = 20;
    constexpr std::uint32_t kIpv6Bytes = 40;
    constexpr std::uint32_t kUdpBytes = 8;
    const std::uint32_t network =
        over_udp ? (over_ipv4 ? kIpv4Bytes : kIpv6Bytes) + kUdpBytes : kGrhBytes;
    return network + operation.header_bytes + padded(payload_bytes) + kIcrcBytes;
}

// The opcode byte of a packet without a search; 0xFF where the transport has none.
class OpcodeEncoder {
  public:
    consteval OpcodeEncoder() {
        for (auto& row : table_) {
            row.fill(0xFF);
        }
        for (const WireOpcode& row : kWireOpcodes) {
            if (!row.known || row.transport == WireTransport::kNone) {
                continue;
            }
            const PacketPosition position =
                row.starts_message
                    ? (row.ends_message ? PacketPosition::kOnly : PacketPosition::kFirst)
                    : (row.ends_message ? PacketPosition::kLast : PacketPosition::kMiddle);
            table_[row_index(row.transport)][cell(row.kind, position, row.trailer)] = row.opcode;
        }
    }

    [[nodiscard]] constexpr std::uint8_t operator()(WireTransport transport, MessageKind kind,
                                                    PacketPosition position,
                                                    Trailer trailer) const {
        return table_[row_index(transport)][cell(kind, position, trailer)];
    }

  private:
    static constexpr std::size_t kKinds =
        static_cast<std::size_t>(MessageKind::kCongestionNotification) + 1;
    static constexpr std::size_t row_index(WireTransport transport) {
        return static_cast<std::size_t>(transport) >> 5U;
    }
    static constexpr std::size_t cell(MessageKind kind, PacketPosition position, Trailer trailer) {
        return (static_cast<std::size_t>(kind) * 4 + static_cast<std::size_t>(position)) * 3 +
               static_cast<std::size_t>(trailer);
    }

    std::array<std::array<std::uint8_t, kKinds * 4 * 3>, 8> table_{};
};
inline constexpr OpcodeEncoder kEncodeOpcode{};

}  // namespace simverbs
