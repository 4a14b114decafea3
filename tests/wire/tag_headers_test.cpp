// The headers of tag matching against the bytes of infiniband/tm_types.h.
#include "simverbs/wire/tag_headers.hpp"

#include <array>
#include <cstring>

#include <endian.h>
#include <gtest/gtest.h>

#include <infiniband/tm_types.h>

namespace simverbs {
namespace {

TEST(TagHeader, IsTheStructOfTmTypes) {
    ibv_tmh expected{};
    expected.opcode = IBV_TMH_FIN;
    expected.app_ctx = htobe32(0x01020304);
    expected.tag = htobe64(0x1112131415161718);
    std::array<std::byte, TagHeader::kBytes> bytes;
    bytes.fill(std::byte{0xEE});
    build({TagOpcode::kFinish, 0x01020304, 0x1112131415161718}, bytes);
    static_assert(sizeof expected == TagHeader::kBytes);
    EXPECT_EQ(std::memcmp(bytes.data(), &expected, sizeof expected), 0);
    const TagHeader parsed = parse_tag_header(bytes);
    EXPECT_EQ(parsed.opcode, TagOpcode::kFinish);
    EXPECT_EQ(parsed.context, 0x01020304U);
    EXPECT_EQ(parsed.tag, 0x1112131415161718U);
}

TEST(RendezvousHeader, IsTheStructOfTmTypes) {
    ibv_rvh given{};
    given.va = htobe64(0x2122232425262728);
    given.rkey = htobe32(0x31323334);
    given.len = htobe32(0x41424344);
    std::array<std::byte, RendezvousHeader::kBytes> bytes;
    static_assert(sizeof given == RendezvousHeader::kBytes);
    std::memcpy(bytes.data(), &given, sizeof given);
    const RendezvousHeader parsed = parse_rendezvous_header(bytes);
    EXPECT_EQ(parsed.address, 0x2122232425262728U);
    EXPECT_EQ(parsed.rkey, 0x31323334U);
    EXPECT_EQ(parsed.length, 0x41424344U);
}

TEST(TagOpcode, HasTheValuesOfTmTypes) {
    EXPECT_EQ(static_cast<int>(TagOpcode::kNoTag), IBV_TMH_NO_TAG);
    EXPECT_EQ(static_cast<int>(TagOpcode::kRendezvous), IBV_TMH_RNDV);
    EXPECT_EQ(static_cast<int>(TagOpcode::kFinish), IBV_TMH_FIN);
    EXPECT_EQ(static_cast<int>(TagOpcode::kEager), IBV_TMH_EAGER);
}

}  // namespace
}  // namespace simverbs
