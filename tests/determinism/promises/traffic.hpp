// Keeps threads of the programs busy between two of their waits.
#pragma once

#include <random>
#include <thread>

#include "ends.hpp"

namespace promises {

inline constexpr int kRounds = 40;

// Uses some processor time, another amount each time.
inline void dawdle() {
    thread_local std::random_device entropy;
    volatile unsigned sink = 0;
    for (unsigned left = entropy() % 30'000; left > 0; --left) {
        sink = sink + left;
    }
    if (entropy() % 4 == 0) {
        std::this_thread::yield();
    }
}

inline void traffic(Pair& pair, int rounds = kRounds, unsigned salt = 1) {
    for (int round = 0; round < rounds; ++round) {
        dawdle();
        pair.near.write(pair.far, 1 + (salt * 997U + static_cast<unsigned>(round) * 331U) % 9000U);
        pair.near.wait();
    }
}

}  // namespace promises
