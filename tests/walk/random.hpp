// A walk's own random numbers: the same on every machine, from the seed alone (SplitMix64).
#pragma once

#include <cstdint>

namespace walk {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
        return z ^ (z >> 31);
    }
    // From 0 to end - 1.
    std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(next() % end); }
    // Both ends included.
    std::uint32_t within(std::uint32_t first, std::uint32_t last) {
        return first + below(last - first + 1);
    }
    bool one_in(std::uint32_t n) { return below(n) == 0; }

  private:
    std::uint64_t state_;
};

}  // namespace walk
