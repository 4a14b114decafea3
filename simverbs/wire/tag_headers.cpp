#include "simverbs/wire/tag_headers.hpp"

#include <algorithm>

namespace simverbs {
namespace {

constexpr std::size_t kContextAt = 4;
constexpr std::size_t kTagAt = 8;
constexpr std::size_t kRkeyAt = 8;
constexpr std::size_t kLengthAt = 12;

template <class Number>
Number read_big_endian(std::span<const std::byte> bytes, std::size_t at) {
    Number value = 0;
    for (const std::byte byte : bytes.subspan(at, sizeof value)) {
        value = static_cast<Number>(value << 8U) | std::to_integer<Number>(byte);
    }
    return value;
}

template <class Number>
void write_big_endian(std::span<std::byte> bytes, std::size_t at, Number value) {
    for (std::size_t i = sizeof value; i > 0; --i) {
        bytes[at + i - 1] = static_cast<std::byte>(value & 0xFFU);
        value >>= 8U;
    }
}

}  // namespace

TagHeader parse_tag_header(std::span<const std::byte, TagHeader::kBytes> bytes) {
    return {static_cast<TagOpcode>(bytes[0]), read_big_endian<std::uint32_t>(bytes, kContextAt),
            read_big_endian<std::uint64_t>(bytes, kTagAt)};
}

RendezvousHeader parse_rendezvous_header(
    std::span<const std::byte, RendezvousHeader::kBytes> bytes) {
    return {read_big_endian<std::uint64_t>(bytes, 0),
            read_big_endian<std::uint32_t>(bytes, kRkeyAt),
            read_big_endian<std::uint32_t>(bytes, kLengthAt)};
}

void build(const TagHeader& header, std::span<std::byte, TagHeader::kBytes> bytes) {
    std::ranges::fill(bytes, std::byte{0});
    bytes[0] = static_cast<std::byte>(header.opcode);
    write_big_endian(bytes, kContextAt, header.context);
    write_big_endian(bytes, kTagAt, header.tag);
}

}  // namespace simverbs
