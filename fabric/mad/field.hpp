// A field of a management datagram or of one of its attributes, as IBA draws it: so many bits from
// the first bit of the first byte, most significant first. Attributes are tables of such fields.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/core/assert.hpp"
#include "fabric/net/gid.hpp"

namespace fabric::mad {

struct Field {
    std::uint16_t offset;  // bits
    std::uint8_t bits;     // 1..64
};

using Bytes = std::span<std::uint8_t>;
using ConstBytes = std::span<const std::uint8_t>;

// Returns field `index` of an array of equal fields without gaps, of which `first` is the first.
constexpr Field element(Field first, std::size_t index) {
    return {static_cast<std::uint16_t>(first.offset + first.bits * index), first.bits};
}

// `bytes` holds the field (asserted).
constexpr std::uint64_t get(ConstBytes bytes, Field field) {
    const std::size_t end = field.offset + field.bits;
    SIMVERBS_ASSERT((end + 7) / 8 <= bytes.size(), "a field ends at bit {} of {} bytes", end,
                    bytes.size());
    std::uint64_t value = 0;
    for (std::size_t bit = field.offset; bit < end;) {
        const std::size_t taken = std::min<std::size_t>(8 - bit % 8, end - bit);
        const unsigned below = static_cast<unsigned>(8 - bit % 8 - taken);
        value = value << taken | (bytes[bit / 8] >> below & ((1U << taken) - 1));
        bit += taken;
    }
    return value;
}

// The same; `value` fits (asserted). Neighbours in the same bytes stay as they are.
constexpr void set(Bytes bytes, Field field, std::uint64_t value) {
    SIMVERBS_ASSERT(field.bits == 64 || value >> field.bits == 0, "{} has more than {} bits", value,
                    static_cast<int>(field.bits));
    const std::size_t end = field.offset + field.bits;
    SIMVERBS_ASSERT((end + 7) / 8 <= bytes.size(), "a field ends at bit {} of {} bytes", end,
                    bytes.size());
    for (std::size_t bit = end; bit > field.offset;) {
        const std::size_t last = (bit - 1) % 8;
        const std::size_t taken = std::min<std::size_t>(last + 1, bit - field.offset);
        const unsigned below = static_cast<unsigned>(7 - last);
        const auto mask = static_cast<std::uint8_t>(((1U << taken) - 1) << below);
        std::uint8_t& byte = bytes[(bit - 1) / 8];
        byte = static_cast<std::uint8_t>((byte & ~mask) | (value << below & mask));
        value >>= taken;
        bit -= taken;
    }
}

// `offset` in bytes.
inline Gid get_gid(ConstBytes bytes, std::size_t offset) {
    Gid gid;
    std::copy_n(bytes.subspan(offset, 16).begin(), 16, gid.bytes.begin());
    return gid;
}
inline void set_gid(Bytes bytes, std::size_t offset, const Gid& gid) {
    std::copy(gid.bytes.begin(), gid.bytes.end(), bytes.subspan(offset, 16).begin());
}

}  // namespace fabric::mad
