// The opcode byte of the base transport header: which operation, where in its message, and which
// extended headers follow.
//
// Rows describe an operation once (IBA 9.2.1, table 38); the transport in bits 7..5 adds its own
// headers. Reliable datagram is listed so that a dissector can name it; nobody sends it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "simverbs/model/enum_set.hpp"
#include "simverbs/model/services.hpp"

namespace simverbs {

// In the order in which they follow one another in a packet.
enum class WireHeader : std::uint16_t {
    kBth = 1U << 0,
    kRdeth = 1U << 1,
    kDeth = 1U << 2,
    kXrceth = 1U << 3,
    kFeth = 1U << 4,
    kReth = 1U << 5,
    kAtomicEth = 1U << 6,
    kAeth = 1U << 7,
    kAtomicAckEth = 1U << 8,
    kImmDt = 1U << 9,
    kIeth = 1U << 10,
};
template <>
inline constexpr bool kIsSetMember<WireHeader> = true;
using WireHeaders = EnumSet<WireHeader>;

struct WireHeaderSize {
    WireHeader header;
    std::string_view name;
    std::uint8_t bytes;
    std::string_view source;
};
inline constexpr auto kWireHeaderSizes = std::to_array<WireHeaderSize>({
    {WireHeader::kBth, "BTH", 12, "IBA 9.2"},
    {WireHeader::kRdeth, "RDETH", 4, "IBA 9.3.1"},
    {WireHeader::kDeth, "DETH", 8, "IBA 9.3.2"},
    {WireHeader::kXrceth, "XRCETH", 4, "IBA A14"},
    {WireHeader::kFeth, "FETH", 4, "IBA A19"},
    {WireHeader::kReth, "RETH", 16, "IBA 9.3.3"},
    {WireHeader::kAtomicEth, "AtomicETH", 28, "IBA 9.3.4"},
    {WireHeader::kAeth, "AETH", 4, "IBA 9.3.5"},
    {WireHeader::kAtomicAckEth, "AtomicAckETH", 8, "IBA 9.5.3"},
    {WireHeader::kImmDt, "ImmDt", 4, "IBA 9.3.6"},
    {WireHeader::kIeth, "IETH", 4, "IBA 9.3.7"},
});
constexpr std::string_view to_string(WireHeader header) {
    for (const WireHeaderSize& row : kWireHeaderSizes) {
        if (row.header == header) {
            return row.name;
        }
    }
    return "unknown";
}

constexpr std::uint32_t header_bytes(WireHeaders headers) {
    std::uint32_t bytes = 0;
    for (const WireHeaderSize& row : kWireHeaderSizes) {
        bytes += headers.contains(row.header) ? row.bytes : 0U;
    }
    return bytes;
}

// The kind of message that a packet is part of.
enum class MessageKind : std::uint8_t {
    kNone,  // nothing on the wire: a local operation
    kSend,
    kWrite,
    kRead,
    kReadResponse,
    kAck,
    kAtomicAck,
    kCompareSwap,
    kFetchAdd,
    kFlush,
    kAtomicWrite,
    kResync,
    kCongestionNotification,
};

// Requests that change the memory of the responder's program.
constexpr bool writes_memory(MessageKind kind) {
    return kind == MessageKind::kWrite || kind == MessageKind::kAtomicWrite ||
           kind == MessageKind::kCompareSwap || kind == MessageKind::kFetchAdd;
}
inline constexpr auto kMessageKindNames = std::to_array<std::string_view>({
    "none",
    "SEND",
    "RDMA WRITE",
    "RDMA READ",
    "RDMA READ response",
    "ACK",
    "ATOMIC ACK",
    "CMP_SWAP",
    "FETCH_ADD",
    "FLUSH",
    "ATOMIC WRITE",
    "RESYNC",
    "CNP",
});
static_assert(kMessageKindNames.size() ==
              static_cast<std::size_t>(MessageKind::kCongestionNotification) + 1);
constexpr std::string_view to_string(MessageKind kind) {
    return kMessageKindNames[static_cast<std::size_t>(kind)];
}

// Returns the kind of answer to a request of this kind; a FLUSH and an ATOMIC WRITE get a READ
// response without data (IBA A19.4.2).
constexpr MessageKind response_to(MessageKind request) {
    switch (request) {
        case MessageKind::kRead:
        case MessageKind::kFlush:
        case MessageKind::kAtomicWrite:
            return MessageKind::kReadResponse;
        case MessageKind::kCompareSwap:
        case MessageKind::kFetchAdd:
            return MessageKind::kAtomicAck;
        default:
            return MessageKind::kAck;
    }
}

// Returns true if a request is answered by more than an acknowledgment, and takes room for that.
constexpr bool initiates(MessageKind request) {
    return response_to(request) != MessageKind::kAck;
}

// Returns true if a request changes eight bytes at once.
constexpr bool is_atomic(MessageKind request) {
    return request == MessageKind::kCompareSwap || request == MessageKind::kFetchAdd ||
           request == MessageKind::kAtomicWrite;
}

enum class PacketPosition : std::uint8_t { kFirst, kMiddle, kLast, kOnly };
inline constexpr auto kPacketPositionNames =
    std::to_array<std::string_view>({"first", "middle", "last", "only"});
constexpr std::string_view to_string(PacketPosition position) {
    return kPacketPositionNames[static_cast<std::size_t>(position)];
}

// The data beside the payload in the last packet of a message.
enum class Trailer : std::uint8_t { kNone, kImmediate, kInvalidate };
inline constexpr auto kTrailerNames =
    std::to_array<std::string_view>({"none", "immediate", "invalidate"});
constexpr std::string_view to_string(Trailer trailer) {
    return kTrailerNames[static_cast<std::size_t>(trailer)];
}

// An operation: bits 4..0 of the opcode, and what they mean whatever the transport.
struct WireOperation {
    std::uint8_t code;
    std::string_view name;
    MessageKind kind;
    PacketPosition position;
    Trailer trailer;
    bool request;
    bool payload;
    WireHeaders headers;  // beyond the BTH and those of the transport
    std::string_view transports;
    std::string_view source;
};

namespace detail {
inline constexpr std::string_view kAcked = "RC RD XRC";
inline constexpr std::string_view kAllButUd = "RC UC RD XRC";
inline constexpr std::string_view kAllWire = "RC UC RD UD XRC";
inline constexpr std::string_view kOpcodes = "IBA 9.2.1";
}  // namespace detail

// clang-format off
inline constexpr auto kWireOperations = [] {
    using namespace detail;  // NOLINT(google-build-using-namespace): a table wants short words
    using enum MessageKind;
    using enum PacketPosition;
    using enum WireHeader;
    constexpr Trailer kNo = Trailer::kNone;
    constexpr Trailer kImm = Trailer::kImmediate;
    constexpr Trailer kInv = Trailer::kInvalidate;
    return std::to_array<WireOperation>({
        // code  name                        kind           position trailer request payload headers            transports     source
        {0x00, "SEND_FIRST",                 kSend,         kFirst,  kNo,    true,  true,  {},                  kAllButUd,     kOpcodes},
        {0x01, "SEND_MIDDLE",                kSend,         kMiddle, kNo,    true,  true,  {},                  kAllButUd,     kOpcodes},
        {0x02, "SEND_LAST",                  kSend,         kLast,   kNo,    true,  true,  {},                  kAllButUd,     kOpcodes},
        {0x03, "SEND_LAST_IMM",              kSend,         kLast,   kImm,   true,  true,  kImmDt,              kAllButUd,     kOpcodes},
        {0x04, "SEND_ONLY",                  kSend,         kOnly,   kNo,    true,  true,  {},                  kAllWire,      kOpcodes},
        {0x05, "SEND_ONLY_IMM",              kSend,         kOnly,   kImm,   true,  true,  kImmDt,              kAllWire,      kOpcodes},
        {0x06, "RDMA_WRITE_FIRST",           kWrite,        kFirst,  kNo,    true,  true,  kReth,               kAllButUd,     kOpcodes},
        {0x07, "RDMA_WRITE_MIDDLE",          kWrite,        kMiddle, kNo,    true,  true,  {},                  kAllButUd,     kOpcodes},
        {0x08, "RDMA_WRITE_LAST",            kWrite,        kLast,   kNo,    true,  true,  {},                  kAllButUd,     kOpcodes},
        {0x09, "RDMA_WRITE_LAST_IMM",        kWrite,        kLast,   kImm,   true,  true,  kImmDt,              kAllButUd,     kOpcodes},
        {0x0A, "RDMA_WRITE_ONLY",            kWrite,        kOnly,   kNo,    true,  true,  kReth,               kAllButUd,     kOpcodes},
        {0x0B, "RDMA_WRITE_ONLY_IMM",        kWrite,        kOnly,   kImm,   true,  true,  kReth|kImmDt,        kAllButUd,     kOpcodes},
        {0x0C, "RDMA_READ_REQUEST",          kRead,         kOnly,   kNo,    true,  false, kReth,               kAcked,        kOpcodes},
        {0x0D, "RDMA_READ_RESPONSE_FIRST",   kReadResponse, kFirst,  kNo,    false, true,  kAeth,               kAcked,        kOpcodes},
        {0x0E, "RDMA_READ_RESPONSE_MIDDLE",  kReadResponse, kMiddle, kNo,    false, true,  {},                  kAcked,        kOpcodes},
        {0x0F, "RDMA_READ_RESPONSE_LAST",    kReadResponse, kLast,   kNo,    false, true,  kAeth,               kAcked,        kOpcodes},
        {0x10, "RDMA_READ_RESPONSE_ONLY",    kReadResponse, kOnly,   kNo,    false, true,  kAeth,               kAcked,        kOpcodes},
        {0x11, "ACKNOWLEDGE",                kAck,          kOnly,   kNo,    false, false, kAeth,               kAcked,        kOpcodes},
        {0x12, "ATOMIC_ACKNOWLEDGE",         kAtomicAck,    kOnly,   kNo,    false, false, kAeth|kAtomicAckEth, kAcked,        kOpcodes},
        {0x13, "CMP_SWAP",                   kCompareSwap,  kOnly,   kNo,    true,  false, kAtomicEth,          kAcked,        kOpcodes},
        {0x14, "FETCH_ADD",                  kFetchAdd,     kOnly,   kNo,    true,  false, kAtomicEth,          kAcked,        kOpcodes},
        {0x15, "RESYNC",                     kResync,       kOnly,   kNo,    true,  false, {},                  "RD",          kOpcodes},
        // The specification has SEND with invalidate on RC and XRC; UC is this project's choice, since
        // ibv_post_send(3) offers it there: same code, UC prefix.
        {0x16, "SEND_LAST_INV",              kSend,         kLast,   kInv,   true,  true,  kIeth,               "RC UC XRC",   kOpcodes},
        {0x17, "SEND_ONLY_INV",              kSend,         kOnly,   kInv,   true,  true,  kIeth,               "RC UC XRC",   kOpcodes},
        {0x1C, "FLUSH",                      kFlush,        kOnly,   kNo,    true,  false, kFeth|kReth,         kAcked,        "IBA A19"},
        {0x1D, "ATOMIC_WRITE",               kAtomicWrite,  kOnly,   kNo,    true,  true,  kReth,               kAcked,        "IBA A19"},
    });
}();
// clang-format on

inline constexpr std::uint8_t kCnpOpcode = 0x81;  // RoCEv2 congestion notification, IBA A17.9.3
inline constexpr std::uint32_t kCnpPayloadBytes = 16;

// An opcode byte with everything that follows from it.
struct WireOpcode {
    std::uint8_t opcode = 0;
    bool known = false;
    WireTransport transport = WireTransport::kNone;
    std::string_view operation = "reserved";
    MessageKind kind = MessageKind::kNone;
    Trailer trailer = Trailer::kNone;
    bool starts_message = false;
    bool ends_message = false;
    bool request = false;
    bool payload = false;
    WireHeaders headers;
    std::uint8_t header_bytes = 0;  // BTH and extended headers, without payload and ICRC

    [[nodiscard]] constexpr bool has(WireHeader header) const { return headers.contains(header); }
    [[nodiscard]] constexpr bool response() const { return known && !request; }
};

namespace detail {
// Headers that the transport adds: RDETH and DETH on reliable datagram (DETH on requests only),
// DETH on UD, XRCETH on XRC requests (all of them, middle and last packets too).
constexpr WireHeaders transport_headers(WireTransport transport, bool request) {
    switch (transport) {
        case WireTransport::kRd:
            return request ? WireHeader::kRdeth | WireHeader::kDeth
                           : WireHeaders(WireHeader::kRdeth);
        case WireTransport::kUd:
            return WireHeader::kDeth;
        case WireTransport::kXrc:
            return request ? WireHeaders(WireHeader::kXrceth) : WireHeaders();
        case WireTransport::kRc:
        case WireTransport::kUc:
        case WireTransport::kNone:
            break;
    }
    return {};
}

constexpr bool lists(std::string_view words, std::string_view word) {
    while (!words.empty()) {
        const std::size_t end = words.find(' ');
        if (words.substr(0, end) == word) {
            return true;
        }
        words = end == std::string_view::npos ? std::string_view() : words.substr(end + 1);
    }
    return false;
}

constexpr WireOpcode expand(const WireOperation& row, WireTransport transport) {
    const WireHeaders headers =
        WireHeader::kBth | row.headers | transport_headers(transport, row.request);
    return {
        .opcode = static_cast<std::uint8_t>(static_cast<unsigned>(transport) | row.code),
        .known = true,
        .transport = transport,
        .operation = row.name,
        .kind = row.kind,
        .trailer = row.trailer,
        .starts_message =
            row.position == PacketPosition::kFirst || row.position == PacketPosition::kOnly,
        .ends_message =
            row.position == PacketPosition::kLast || row.position == PacketPosition::kOnly,
        .request = row.request,
        .payload = row.payload,
        .headers = headers,
        .header_bytes = static_cast<std::uint8_t>(header_bytes(headers)),
    };
}

consteval std::array<WireOpcode, 256> expand_all() {
    std::array<WireOpcode, 256> table{};
    for (std::size_t i = 0; i < table.size(); ++i) {
        table[i].opcode = static_cast<std::uint8_t>(i);
    }
    for (const WireTransport transport :
         {WireTransport::kRc, WireTransport::kUc, WireTransport::kRd, WireTransport::kUd,
          WireTransport::kXrc}) {
        for (const WireOperation& row : kWireOperations) {
            if (lists(row.transports, to_string(transport))) {
                const WireOpcode entry = expand(row, transport);
                table[entry.opcode] = entry;
            }
        }
    }
    WireOpcode& cnp = table[kCnpOpcode];
    cnp.known = true;
    cnp.operation = "CNP";
    cnp.kind = MessageKind::kCongestionNotification;
    cnp.starts_message = cnp.ends_message = true;
    cnp.payload = true;
    cnp.headers = WireHeader::kBth;
    cnp.header_bytes = 12;
    return table;
}
}  // namespace detail

inline constexpr std::array<WireOpcode, 256> kWireOpcodes = detail::expand_all();

constexpr const WireOpcode& wire_opcode(std::uint8_t opcode) {
    return kWireOpcodes[opcode];
}

// The opcode of a packet, or nothing where the transport has none (a READ on UC, say).
constexpr std::optional<std::uint8_t> encode_opcode(WireTransport transport, MessageKind kind,
                                                    PacketPosition position,
                                                    Trailer trailer = Trailer::kNone) {
    for (const WireOperation& row : kWireOperations) {
        if (row.kind == kind && row.position == position && row.trailer == trailer &&
            detail::lists(row.transports, to_string(transport))) {
            return static_cast<std::uint8_t>(static_cast<unsigned>(transport) | row.code);
        }
    }
    return std::nullopt;
}

}  // namespace simverbs
