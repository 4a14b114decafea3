// The hash that spreads received frames (Microsoft, "RSS hashing functions").
#pragma once

#include <cstdint>
#include <span>

#include "simverbs/model/receive_hash.hpp"
#include "simverbs/wire/ethernet_headers.hpp"

namespace simverbs {

// Of bytes in network order; the key is as long as they are and four bytes more, at least.
std::uint32_t toeplitz(std::span<const std::uint8_t> key, std::span<const std::uint8_t> input);

// Of those of the wanted fields that the frame has: source before destination, addresses before
// ports. 0 where it has none.
std::uint32_t hash_of(const ReceiveHash& hash, const FrameHeaders& headers);

}  // namespace simverbs
