// A sum over all ranks by a ring: each rank writes to its right neighbour only. A rank that loses a
// neighbour tells the others, so that every rank ends. Connecting is left to the caller.
#ifndef RING_ALL_REDUCE_HPP
#define RING_ALL_REDUCE_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "verbs_objects.hpp"

namespace ring {

// Names the memory of a rank into which its left neighbour writes.
struct Landing {
    std::uint64_t address;
    std::uint32_t rkey;
};

enum class Outcome {
    kDone,
    kPeerLost  // a neighbour does not answer, or another rank said so; this ring is of no more use
};

struct RingOptions {
    std::size_t chunk = 1024;  // the most elements that a step carries
    bool tell_peers = true;    // false: something else ends the other ranks, a job launcher, say
};

class Rank {
  public:
    // `ranks` is 2 or more.
    Rank(ibv_context* device, std::size_t rank, std::size_t ranks, const RingOptions& options = {});

    // Before begin(): connect `right` of each rank with `left` of the next one, and tell it where
    // that one's landing is.
    [[nodiscard]] ibv_qp* left() const { return left_.get(); }
    [[nodiscard]] ibv_qp* right() const { return right_.get(); }
    [[nodiscard]] Landing landing() const;
    void set_right_landing(const Landing& landing) { right_landing_ = landing; }

    // Posts the receives. No rank may call all_reduce() before both neighbours have begun.
    void begin();

    // Replaces `values` by the sums over all ranks. All ranks pass as many, at most
    // ranks * chunk. After kPeerLost `values` are as they were.
    Outcome all_reduce(std::span<std::int64_t> values);

  private:
    [[nodiscard]] std::size_t steps() const { return 2 * (ranks_ - 1); }
    // Chunks are numbered modulo the number of ranks.
    std::span<std::int64_t> chunk(std::size_t number);
    std::span<std::int64_t> landed(std::size_t step);
    // Writes a chunk to the right, and waits until it is there and the left one's has come.
    bool exchange(std::size_t step, std::size_t sent_chunk);
    bool poll();
    void abort();

    std::size_t rank_;
    std::size_t ranks_;
    RingOptions options_;
    std::vector<std::int64_t> memory_;  // chunks of this rank, then a place for each step
    std::size_t steps_sent_ = 0;
    std::size_t steps_received_ = 0;
    bool is_lost_ = false;
    Landing right_landing_{};
    Owned<ibv_pd> pd_;
    Owned<ibv_cq> cq_;
    Owned<ibv_mr> mr_;
    Owned<ibv_qp> left_;
    Owned<ibv_qp> right_;
};

}  // namespace ring

#endif
