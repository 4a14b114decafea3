#include "fabric/core/random.hpp"

#include <bit>

#include "fabric/core/assert.hpp"
#include "fabric/core/hash.hpp"

namespace fabric {

namespace {
// SplitMix64 (Steele, Lea, Flood 2014): fills a state from one word, never with zeros only.
std::uint64_t split_mix(std::uint64_t& state) {
    state += 0x9E37'79B9'7F4A'7C15U;
    std::uint64_t word = state;
    word = (word ^ word >> 30) * 0xBF58'476D'1CE4'E5B9U;
    word = (word ^ word >> 27) * 0x94D0'49BB'1331'11EBU;
    return word ^ word >> 31;
}
}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view component,
                           std::string_view purpose) {
    std::uint64_t word = mix_words(mix_words(seed, hash_name(component)), hash_name(purpose));
    for (std::uint64_t& part : state_) {
        part = split_mix(word);
    }
}

std::uint64_t RandomStream::next() {
    const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
    SIMVERBS_ASSERT(bound != 0, "no number lies below zero");
    const std::uint64_t biased = (0 - bound) % bound;  // 2^64 mod bound
    for (;;) {
        const detail::Uint128 product = static_cast<detail::Uint128>(next()) * bound;
        if (static_cast<std::uint64_t>(product) >= biased) {
            return static_cast<std::uint64_t>(product >> 64);
        }
    }
}

std::uint64_t RandomStream::between(std::uint64_t lowest, std::uint64_t highest) {
    SIMVERBS_ASSERT(lowest <= highest, "no number lies between {} and {}", lowest, highest);
    const std::uint64_t span = highest - lowest + 1;
    return span == 0 ? next() : lowest + below(span);  // span 0: all of 64 bits
}

bool RandomStream::chance(Ratio probability) {
    return below(probability.denominator) < probability.numerator;
}

}  // namespace fabric
