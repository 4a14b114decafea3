// The hash that spreads received frames (Microsoft, "RSS hashing functions").
#pragma once

#include <cstdint>
#include <span>

#include "simverbs/model/receive_hash.hpp"
#include "simverbs/wire/ethernet_headers.hpp"

namespace simverbs {

// Hashes bytes in network order; the key is at least four bytes longer than they are.
std::uint32_t toeplitz(std::span<const std::uint8_t> key, std::span<const std::uint8_t> input);

// Hashes those of the wanted fields that the frame has: source before destination, addresses before
// ports. 0 where it has none.
std::uint32_t hash_of(const ReceiveHash& hash, const FrameHeaders& headers);

}  // namespace simverbs
