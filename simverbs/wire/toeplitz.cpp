#include "simverbs/wire/toeplitz.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace simverbs {
namespace {

// Addresses of IPv6 and two ports.
constexpr std::size_t kMostInput = 36;
static_assert(kMostInput + 4 <= kHashKeyBytes);

class Input {
  public:
    template <std::size_t N>
    void take(bool wanted, const std::array<std::uint8_t, N>& field) {
        if (wanted) {
            std::copy_n(field.begin(), N, bytes_.begin() + static_cast<std::ptrdiff_t>(size_));
            size_ += N;
        }
    }
    [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {bytes_.data(), size_}; }

  private:
    std::array<std::uint8_t, kMostInput> bytes_{};
    std::size_t size_ = 0;
};

}  // namespace

std::uint32_t toeplitz(std::span<const std::uint8_t> key, std::span<const std::uint8_t> input) {
    std::uint32_t hash = 0;
    // The 32 bits of the key that begin at the bit of the input that is looked at.
    std::uint32_t window = static_cast<std::uint32_t>(key[0]) << 24U |
                           static_cast<std::uint32_t>(key[1]) << 16U |
                           static_cast<std::uint32_t>(key[2]) << 8U | key[3];
    for (std::size_t i = 0; i < input.size(); ++i) {
        for (unsigned bit = 8; bit-- > 0;) {
            if ((input[i] >> bit & 1U) != 0) {
                hash ^= window;
            }
            window = window << 1U | (static_cast<std::uint32_t>(key[i + 4]) >> bit & 1U);
        }
    }
    return hash;
}

std::uint32_t hash_of(const ReceiveHash& hash, const FrameHeaders& headers) {
    const HeaderFields& fields = headers.fields.outer;
    const auto wants = [&hash, &headers](FrameLayer layer, HashField field) {
        return headers.layers.contains(layer) && hash.fields.contains(field);
    };
    Input input;
    input.take(wants(FrameLayer::kIpv4, HashField::kIpv4Source), fields.ipv4_source);
    input.take(wants(FrameLayer::kIpv4, HashField::kIpv4Destination), fields.ipv4_destination);
    input.take(wants(FrameLayer::kIpv6, HashField::kIpv6Source), fields.ipv6_source);
    input.take(wants(FrameLayer::kIpv6, HashField::kIpv6Destination), fields.ipv6_destination);
    input.take(wants(FrameLayer::kTcp, HashField::kTcpSourcePort), fields.source_port);
    input.take(wants(FrameLayer::kTcp, HashField::kTcpDestinationPort), fields.destination_port);
    input.take(wants(FrameLayer::kUdp, HashField::kUdpSourcePort), fields.source_port);
    input.take(wants(FrameLayer::kUdp, HashField::kUdpDestinationPort), fields.destination_port);
    return toeplitz(hash.key, input.bytes());
}

}  // namespace simverbs
