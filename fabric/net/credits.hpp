// Credits of one virtual lane of one direction of a link, as the sender counts them (IBA 7.9): free
// blocks of the receive buffer at the other end. What the receiver gives back is entered with the
// time at which the sender learns of it, so that a return is no event where nobody waits for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/core/sim_time.hpp"

namespace fabric {

// Buffers are counted in blocks of 64 bytes (IBA 7.9.4.1).
inline constexpr std::uint32_t kCreditBlockBytes = 64;
constexpr std::uint32_t blocks_of(std::uint32_t bytes) {
    return (bytes + kCreditBlockBytes - 1) / kCreditBlockBytes;
}
// A credit limit is up to 2048 blocks ahead of what was sent (IBA 7.9.4.3).
inline constexpr std::uint32_t kMaxBufferBytes = 2048 * kCreditBlockBytes;

class VlCredits {
  public:
    explicit VlCredits(std::uint32_t blocks) : available_(blocks), limit_(blocks) {}

    [[nodiscard]] std::uint32_t limit() const { return limit_; }
    // Those that are not used, be they still on their way back.
    [[nodiscard]] std::uint32_t unused() const;
    // Returns the blocks that come back later than `time`.
    [[nodiscard]] std::uint32_t returned_after(SimTime time) const;

    [[nodiscard]] bool suffice(std::uint32_t blocks, SimTime at) const {
        return available_ >= blocks || when(blocks, at) == at;
    }
    // When, not before `at`, that many are there; SimTime::max(): nobody knows yet.
    [[nodiscard]] SimTime when(std::uint32_t blocks, SimTime at) const;

    // Takes blocks that suffice at `at`, which never goes back.
    void take(std::uint32_t blocks, SimTime at) {
        while (first_ < returns_.size() && returns_[first_].time <= at) {
            available_ += returns_[first_++].blocks;
        }
        available_ -= blocks;
    }
    // Returns the blocks of a frame that did not go after all, or was lost on the wire.
    void put_back(std::uint32_t blocks) { available_ += blocks; }
    // The same where its return was entered, for `time`. Then rewind() before anything is taken.
    void undo(std::uint32_t blocks, SimTime time);
    // Credits were last taken at `time` after all, not later, as it seemed before undo() and
    // put_back().
    void rewind(SimTime time);

    // The sender learns at `time` that the receiver has room again. Not before `now` is time gone
    // back to.
    void add_return(std::uint32_t blocks, SimTime time, SimTime now) {
        if (first_ == returns_.size() && (first_ == 0 || returns_.back().time <= now)) {
            returns_.clear();
            first_ = 0;
        } else if (first_ >= kCompactAfter && returns_[first_ / 2].time <= now) {
            compact();
        }
        returns_.push_back({time, blocks});
        if (returns_.size() - first_ > 1 && returns_[returns_.size() - 2].time > time) {
            sort_last();
        }
    }

  private:
    struct Return {
        SimTime time;
        std::uint32_t blocks;
    };
    static constexpr std::size_t kCompactAfter = 16;

    void compact();
    void sort_last();

    std::uint32_t available_;
    std::uint32_t limit_;
    std::size_t first_ = 0;  // returns before this one are in `available_`
    std::vector<Return> returns_;
};

}  // namespace fabric
