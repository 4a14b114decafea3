// The order in which threads take turns, where a number (SIMVERBS_ORDER) asks for another one than
// the order of actors.
//
// Threads have random priorities, and so has the fabric: it moves time while a thread waits for its
// turn, as it would if the machine gave that thread no processor. At a few random turns the one
// with the highest priority gets the lowest. That is probabilistic concurrency testing (S.
// Burckhardt and others, ASPLOS 2010), but for the places of these turns, which are distributed
// evenly over the logarithm of their number: so nobody has to know how many turns a run has.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/core/hash.hpp"

#include "simverbs/threads/actor.hpp"

namespace simverbs {

// Not thread-safe: its owner asks with the world held.
class TurnOrder {
  public:
    explicit TurnOrder(std::uint64_t seed);

    // Gives a new actor its priority.
    void take(Actor& actor) const;
    // Returns whose turn it is: one of `candidates` (at least one); nullptr: the fabric, which is
    // a candidate if `fabric_may_act`.
    Actor* choose(std::span<Actor* const> candidates, bool fabric_may_act);
    // Returns a digest of who got each turn so far that had more than one candidate; 0: none had.
    [[nodiscard]] std::uint64_t turns_digest() const { return digest_.value(); }

  private:
    static constexpr std::size_t kMostChanges = 3;

    [[nodiscard]] Actor* highest(std::span<Actor* const> candidates, bool fabric_may_act) const;

    std::uint64_t seed_;
    std::uint64_t fabric_;                // its priority
    std::uint64_t lowest_ = 1ULL << 32U;  // all priorities but those after a change are higher
    std::uint64_t turns_ = 0;             // so far with more than one candidate
    fabric::WordsHash digest_;
    std::array<std::uint64_t, kMostChanges> changes_{};  // turns; 0: none
};

}  // namespace simverbs
