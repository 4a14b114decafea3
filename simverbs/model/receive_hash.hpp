// Receive side scaling: which fields of a frame choose its work queue, and what may be asked for
// together (ibv_create_qp_ex(3)).
#pragma once

#include <array>
#include <cstdint>

#include "simverbs/model/enum_set.hpp"

namespace simverbs {

// Same bits as enum ibv_rx_hash_fields; the fields within a tunnel are not modelled.
enum class HashField : std::uint64_t {
    kIpv4Source = 1U << 0,
    kIpv4Destination = 1U << 1,
    kIpv6Source = 1U << 2,
    kIpv6Destination = 1U << 3,
    kTcpSourcePort = 1U << 4,
    kTcpDestinationPort = 1U << 5,
    kUdpSourcePort = 1U << 6,
    kUdpDestinationPort = 1U << 7,
};
template <>
inline constexpr bool kIsSetMember<HashField> = true;
using HashFields = EnumSet<HashField>;

inline constexpr HashFields kIpv4Hash = HashField::kIpv4Source | HashField::kIpv4Destination;
inline constexpr HashFields kIpv6Hash = HashField::kIpv6Source | HashField::kIpv6Destination;
inline constexpr HashFields kTcpHash = HashField::kTcpSourcePort | HashField::kTcpDestinationPort;
inline constexpr HashFields kUdpHash = HashField::kUdpSourcePort | HashField::kUdpDestinationPort;
inline constexpr HashFields kEveryHash = kIpv4Hash | kIpv6Hash | kTcpHash | kUdpHash;

// A frame has one network and one transport header at most (verbs.h, at ibv_rx_hash_fields).
constexpr bool can_be_of_one_frame(HashFields fields) {
    return !(fields.intersects(kIpv4Hash) && fields.intersects(kIpv6Hash)) &&
           !(fields.intersects(kTcpHash) && fields.intersects(kUdpHash));
}

// Same bits as enum ibv_rx_hash_function_flags.
inline constexpr std::uint8_t kToeplitzHash = 1U << 0;

// 320 bits: as many as 36 bytes of input, the most there are, can use, and Linux mlx5 asks for.
inline constexpr std::size_t kHashKeyBytes = 40;

struct ReceiveHash {
    HashFields fields;
    std::array<std::uint8_t, kHashKeyBytes> key{};
    std::uint8_t function = 0;
    std::uint8_t key_bytes = 0;  // that were given
};

}  // namespace simverbs
