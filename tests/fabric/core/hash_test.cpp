#include "fabric/core/hash.hpp"

#include <bit>
#include <initializer_list>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace fabric {
namespace {

std::uint64_t digest_of(std::initializer_list<std::uint64_t> words) {
    Digest digest;
    for (const std::uint64_t word : words) {
        digest.mix(word);
    }
    return digest.value();
}

// Computed by another program. A change of these numbers changes every recorded digest.
TEST(Digest, HasTheSameValuesOnEveryPlatform) {
    EXPECT_EQ(digest_of({}), 0xE273'3FFD'BE5D'A491U);
    EXPECT_EQ(digest_of({1, 2, 3}), 0x11C5'852C'44A1'D1E4U);
    EXPECT_EQ(hash_name("h0"), 0xBA6E'FE13'91DD'0DC4U);
}

TEST(Digest, KnowsOrderAndLength) {
    EXPECT_NE(digest_of({1, 2}), digest_of({2, 1}));
    EXPECT_NE(digest_of({0}), digest_of({0, 0}));
    EXPECT_NE(digest_of({}), digest_of({0}));
}

TEST(Digest, SpreadsEachBitOverTheWord) {
    for (unsigned bit = 0; bit < 64; ++bit) {
        const std::uint64_t a = digest_of({5, std::uint64_t{1} << bit, 9});
        const std::uint64_t b = digest_of({5, 0, 9});
        const int changed = std::popcount(a ^ b);
        EXPECT_GT(changed, 12) << "bit " << bit;
        EXPECT_LT(changed, 52) << "bit " << bit;
    }
}

TEST(WordsHash, KnowsValuesAndPositions) {
    const auto hash_of = [](std::initializer_list<std::uint64_t> words) {
        WordsHash hash;
        for (const std::uint64_t word : words) {
            hash.add(word);
        }
        return hash.value();
    };
    EXPECT_NE(hash_of({1, 2}), hash_of({2, 1}));
    EXPECT_NE(hash_of({1, 2}), hash_of({1, 3}));
    EXPECT_NE(hash_of({1, 2}), hash_of({0, 3}));
    EXPECT_NE(hash_of({0}), hash_of({0, 0}));
}

// A word that counts up, as the number of a decision does: runs and gaps are those of independent
// draws.
TEST(WordsHash, DrawsIndependentlyForWordsThatCountUp) {
    constexpr std::uint64_t kDraws = 100'000;
    for (const std::uint64_t denominator : {2ULL, 5ULL, 20ULL}) {
        std::uint64_t hits = 0;
        std::uint64_t pairs = 0;  // hits right behind a hit
        bool before = false;
        for (std::uint64_t i = 1; i <= kDraws; ++i) {
            WordsHash hash;
            hash.add(1);
            hash.add(7);
            hash.add(i);
            const bool hit = (hash.draw() >> 32U) * denominator < (1ULL << 32U);
            hits += hit ? 1 : 0;
            pairs += hit && before ? 1 : 0;
            before = hit;
        }
        const auto expected = static_cast<double>(kDraws) / static_cast<double>(denominator);
        EXPECT_NEAR(static_cast<double>(hits), expected, expected / 20) << denominator;
        const double doubled = expected / static_cast<double>(denominator);
        EXPECT_NEAR(static_cast<double>(pairs), doubled, doubled / 4) << denominator;
    }
}

TEST(HashName, KeepsNearNamesApart) {
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 10'000; ++i) {
        seen.insert(hash_name("h" + std::to_string(i)));
    }
    EXPECT_EQ(seen.size(), 10'000U);
}

TEST(MixWords, KnowsWhichIsWhich) {
    EXPECT_NE(mix_words(1, 2), mix_words(2, 1));
    EXPECT_NE(mix_words(0, 0), mix_words(0, 1));
}

}  // namespace
}  // namespace fabric
