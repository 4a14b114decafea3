// Random numbers that any compiler draws alike: xoshiro256++ (Blackman, Vigna 2018) seeded from a
// *name*, so that a new component does not shift the draws of another. Integers only; refuses to
// be a UniformRandomBitGenerator, since std::*_distribution differ between libraries.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace fabric {

// A probability as an exact ratio, for example {1, 1000}. The denominator is not zero.
struct Ratio {
    std::uint64_t numerator = 0;
    std::uint64_t denominator = 1;

    friend constexpr bool operator==(Ratio, Ratio) = default;
};

class RandomStream {
  public:
    // One stream for each (component, purpose): RandomStream(seed, "h0", "backoff").
    RandomStream(std::uint64_t seed, std::string_view component, std::string_view purpose);

    std::uint64_t next();

    // Uniform in [0, bound); `bound` is not zero. Unbiased (Lemire 2019).
    std::uint64_t below(std::uint64_t bound);

    // Uniform in [lowest, highest].
    std::uint64_t between(std::uint64_t lowest, std::uint64_t highest);

    // True with this probability; draws even when the answer is certain, so that changing a
    // probability does not move later draws.
    bool chance(Ratio probability);

  private:
    std::array<std::uint64_t, 4> state_{};
};

}  // namespace fabric
