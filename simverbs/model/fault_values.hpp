// Members of faults that are enumerations: header fields, NAKs and directions of packets, with
// their words in scenarios.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <simverbs/fault.h>

#include "simverbs/model/aeth.hpp"
#include "simverbs/model/psn.hpp"
#include "simverbs/model/wire_opcodes.hpp"

namespace simverbs {

// A field of a packet's headers.
struct HeaderFieldRow {
    simverbs_header_field field;
    std::string_view name;
    WireHeader header;  // that it is in
    std::uint64_t most;
};
inline constexpr auto kHeaderFields = std::to_array<HeaderFieldRow>({
    {SIMVERBS_HEADER_OPCODE, "opcode", WireHeader::kBth, 0xFF},
    {SIMVERBS_HEADER_PSN, "psn", WireHeader::kBth, Psn::kModulus - 1},
    {SIMVERBS_HEADER_DEST_QP, "dest_qp", WireHeader::kBth, 0xFF'FFFF},
    {SIMVERBS_HEADER_PKEY, "pkey", WireHeader::kBth, 0xFFFF},
    {SIMVERBS_HEADER_QKEY, "qkey", WireHeader::kDeth, 0xFFFF'FFFF},
    {SIMVERBS_HEADER_SYNDROME, "syndrome", WireHeader::kAeth, 0x7F},
    {SIMVERBS_HEADER_MSN, "msn", WireHeader::kAeth, 0xFF'FFFF},
    {SIMVERBS_HEADER_RKEY, "rkey", WireHeader::kReth, 0xFFFF'FFFF},
    {SIMVERBS_HEADER_REMOTE_ADDRESS, "remote_address", WireHeader::kReth, UINT64_MAX},
    {SIMVERBS_HEADER_LENGTH, "length", WireHeader::kReth, 0xFFFF'FFFF},
    {SIMVERBS_HEADER_IMMEDIATE, "immediate", WireHeader::kImmDt, 0xFFFF'FFFF},
    {SIMVERBS_HEADER_ACK_REQUEST, "ack_request", WireHeader::kBth, 1},
    {SIMVERBS_HEADER_SOLICITED, "solicited", WireHeader::kBth, 1},
});
// nullptr: no field has that number.
constexpr const HeaderFieldRow* find_header_field(int number) {
    const auto* const found = std::ranges::find(kHeaderFields, number, &HeaderFieldRow::field);
    return found == kHeaderFields.end() ? nullptr : found;
}
constexpr const HeaderFieldRow& row_of(simverbs_header_field field) {
    return *find_header_field(static_cast<int>(field));
}

// A NAK that a fault can answer with.
struct FaultNakRow {
    simverbs_nak nak;
    std::string_view name;
    NakCode code;
};
inline constexpr auto kFaultNaks = std::to_array<FaultNakRow>({
    {SIMVERBS_NAK_PSN_SEQUENCE, "psn_sequence", NakCode::kPsnSequenceError},
    {SIMVERBS_NAK_INVALID_REQUEST, "invalid_request", NakCode::kInvalidRequest},
    {SIMVERBS_NAK_REMOTE_ACCESS, "remote_access", NakCode::kRemoteAccessError},
    {SIMVERBS_NAK_REMOTE_OPERATIONAL, "remote_operational", NakCode::kRemoteOperationalError},
});
// `nak` is one of the rows.
constexpr NakCode nak_code(std::uint64_t nak) {
    return std::ranges::find(
               kFaultNaks, nak,
               [](const FaultNakRow& row) { return static_cast<std::uint64_t>(row.nak); })
        ->code;
}

struct PacketDirectionRow {
    simverbs_direction direction;
    std::string_view name;
};
inline constexpr auto kPacketDirections = std::to_array<PacketDirectionRow>({
    {SIMVERBS_EITHER_WAY, "either"},
    {SIMVERBS_REQUESTS, "requests"},
    {SIMVERBS_RESPONSES, "responses"},
});
// nullptr: no direction has that number.
constexpr const PacketDirectionRow* find_packet_direction(int number) {
    const auto* const found =
        std::ranges::find(kPacketDirections, number, &PacketDirectionRow::direction);
    return found == kPacketDirections.end() ? nullptr : found;
}

}  // namespace simverbs
