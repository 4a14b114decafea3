// 64-bit hashes that are equal on every platform: names (streams, event kinds) and the order-
// sensitive digest of a run. Fast and well diffusing; no defence against somebody who wants a
// collision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fabric {

namespace detail {
__extension__ using Uint128 = unsigned __int128;

// The 128-bit product folded to 64 bits: one multiplication spreads every bit of both factors.
constexpr std::uint64_t fold_multiply(std::uint64_t a, std::uint64_t b) {
    const Uint128 product = static_cast<Uint128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Odd, no short runs of equal bits, about half of the bits set (the fractions of pi and e).
inline constexpr std::uint64_t kMixA = 0x243F'6A88'85A3'08D3U;
inline constexpr std::uint64_t kMixB = 0xB7E1'5162'8AED'2A6BU;
}  // namespace detail

// Both words matter, and so does which is which.
constexpr std::uint64_t mix_words(std::uint64_t first, std::uint64_t second) {
    return detail::fold_multiply(first ^ detail::kMixA, second ^ detail::kMixB) ^ first;
}

// The hash of a name: FNV-1a, finished so that short names differ in every bit.
constexpr std::uint64_t hash_name(std::string_view name) {
    std::uint64_t hash = 0xCBF2'9CE4'8422'2325U;
    for (const char c : name) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x0000'0100'0000'01B3U;
    }
    return detail::fold_multiply(hash ^ detail::kMixA, detail::kMixB);
}

// A few words as one: their products do not wait for each other, so this is several times faster
// than mixing word by word. A word counts by its value and its position.
//
// A word that counts up makes value() an evenly spaced sequence. Numbers that stand for chance are
// drawn with draw(), which finishes the sum as SplitMix64 does.
class WordsHash {
  public:
    constexpr void add(std::uint64_t word) {
        sum_ += detail::fold_multiply(word ^ position_, detail::kMixB);
        position_ += detail::kMixA;
    }
    [[nodiscard]] constexpr std::uint64_t value() const { return sum_; }
    [[nodiscard]] constexpr std::uint64_t draw() const {
        std::uint64_t drawn = sum_;
        drawn = (drawn ^ drawn >> 30U) * 0xBF58'476D'1CE4'E5B9U;
        drawn = (drawn ^ drawn >> 27U) * 0x94D0'49BB'1331'11EBU;
        return drawn ^ drawn >> 31U;
    }

  private:
    std::uint64_t sum_ = 0;
    std::uint64_t position_ = detail::kMixA;
};

// One number for what happened, in order.
class Digest {
  public:
    constexpr void mix(std::uint64_t word) {
        state_ = detail::fold_multiply(state_ ^ word, detail::kMixB) + detail::kMixA;
    }
    constexpr void mix(std::string_view text) { mix(hash_name(text)); }

    [[nodiscard]] constexpr std::uint64_t value() const {
        return detail::fold_multiply(state_ ^ detail::kMixA, detail::kMixB);
    }

    friend constexpr bool operator==(const Digest&, const Digest&) = default;

  private:
    std::uint64_t state_ = detail::kMixB;
};

}  // namespace fabric
