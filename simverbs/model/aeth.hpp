// The syndrome byte of the ACK extended transport header: ACK with credits, RNR NAK with a timer
// code, NAK with a code (IBA 9.7.5.1.1, 9.7.5.2).
//
// Bit 7 is zero and the class 10 is reserved: both decode to nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace simverbs {

enum class NakCode : std::uint8_t {
    kPsnSequenceError = 0,
    kInvalidRequest = 1,
    kRemoteAccessError = 2,
    kRemoteOperationalError = 3,
    kInvalidRdRequest = 4,
};
inline constexpr auto kNakCodeNames = std::to_array<std::string_view>({
    "PSN sequence error",
    "invalid request",
    "remote access error",
    "remote operational error",
    "invalid RD request",
});
constexpr std::string_view to_string(NakCode code) {
    return kNakCodeNames[static_cast<std::size_t>(code)];
}

enum class AethKind : std::uint8_t { kAck = 0, kRnrNak = 1, kNak = 3 };  // bits 6..5
constexpr std::string_view to_string(AethKind kind) {
    switch (kind) {
        case AethKind::kAck:
            return "ACK";
        case AethKind::kRnrNak:
            return "RNR NAK";
        case AethKind::kNak:
            break;
    }
    return "NAK";
}

// Credit code of a responder that does not count receives (an SRQ, or no flow control).
inline constexpr std::uint8_t kCreditsUnlimited = 31;

struct AethSyndrome {
    AethKind kind = AethKind::kAck;
    std::uint8_t value = kCreditsUnlimited;  // credit code, RNR timer code or NAK code; 5 bits

    [[nodiscard]] static constexpr AethSyndrome ack(std::uint8_t credit_code) {
        return {AethKind::kAck, credit_code};
    }
    // The code that announces `receives` receives posted and not yet used, rounded down.
    [[nodiscard]] static constexpr AethSyndrome ack_with_receives(std::uint32_t receives);
    [[nodiscard]] static constexpr AethSyndrome rnr_nak(std::uint8_t timer_code) {
        return {AethKind::kRnrNak, timer_code};
    }
    [[nodiscard]] static constexpr AethSyndrome nak(NakCode code) {
        return {AethKind::kNak, static_cast<std::uint8_t>(code)};
    }

    [[nodiscard]] constexpr std::uint8_t encoded() const {
        return static_cast<std::uint8_t>((static_cast<unsigned>(kind) << 5U) | (value & 0x1FU));
    }
    // The NAK code, where this is a NAK with a code that is not reserved.
    [[nodiscard]] constexpr std::optional<NakCode> nak_code() const {
        if (kind != AethKind::kNak || value >= kNakCodeNames.size()) {
            return std::nullopt;
        }
        return static_cast<NakCode>(value);
    }

    friend constexpr bool operator==(AethSyndrome, AethSyndrome) = default;
};

constexpr std::optional<AethSyndrome> decode_aeth_syndrome(std::uint8_t byte) {
    if ((byte & 0x80U) != 0) {
        return std::nullopt;
    }
    const std::uint8_t kind = (byte >> 5U) & 0x3U;
    if (kind == 2) {
        return std::nullopt;
    }
    return AethSyndrome{static_cast<AethKind>(kind), static_cast<std::uint8_t>(byte & 0x1FU)};
}

// Receives announced by credit codes 0..30 (IBA 9.7.7.2.4, table 46); 31 is kCreditsUnlimited.
inline constexpr auto kReceivesByCreditCode = std::to_array<std::uint16_t>({
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
});
static_assert(kReceivesByCreditCode.size() == kCreditsUnlimited);

constexpr AethSyndrome AethSyndrome::ack_with_receives(std::uint32_t receives) {
    std::uint8_t code = kCreditsUnlimited - 1;
    while (kReceivesByCreditCode[code] > receives) {
        --code;
    }
    return ack(code);
}

}  // namespace simverbs
