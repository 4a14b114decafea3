// The list of tags of a shared receive queue, and the count of messages that matched none of them.
//
// A message takes the oldest tag that it matches. Software matches messages that the device found
// no tag for ("unexpected" ones); until it has reported how many it has seen, a tag that was added
// meanwhile is not used, because an older message may be due for it (rdma-core,
// Documentation/tag_matching.md).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simverbs/transport/work_queue.hpp"

namespace simverbs {

// A buffer that waits for a message with a tag.
struct TaggedBuffer {
    std::uint64_t wr_id = 0;  // of the receive's completion
    std::uint64_t tag = 0;
    std::uint64_t mask = 0;  // a message matches where its tag, masked, is `tag`
    Segment segment;         // of length 0: takes empty messages only
    std::uint8_t handle = 0;
    std::uint8_t generation = 0;  // of the handle
};

class TagList {
  public:
    explicit TagList(std::uint32_t capacity) : capacity_(capacity) { tags_.reserve(capacity); }

    // Getters.
    [[nodiscard]] std::uint32_t capacity() const { return capacity_; }
    [[nodiscard]] std::size_t size() const { return tags_.size(); }
    // Software has seen every unexpected message.
    [[nodiscard]] bool synchronized() const { return reported_ == unexpected_; }
    // Software is so far behind that the counts, of 16 bits, might be mistaken for each other.
    [[nodiscard]] bool is_far_behind() const {
        return static_cast<std::uint16_t>(unexpected_ - reported_) > kMostUnreported;
    }
    // A tag that is not in use yet would have matched.
    [[nodiscard]] bool would_match(std::uint64_t tag) const;

    // Operations that software asks for.
    // Software has seen this many unexpected messages since the list was made, modulo 2^16.
    void report(std::uint16_t seen);
    // False where the list is full, or the handle is beyond its end.
    bool add(const TaggedBuffer& buffer);
    // False where no such tag is in the list (any more).
    bool remove(std::uint8_t handle);

    // Takes the oldest tag in use that matches out of the list.
    std::optional<TaggedBuffer> match(std::uint64_t tag);
    // A message matched none; it goes to software.
    void count_unexpected() { ++unexpected_; }
    // That message failed before software could see it.
    void discount_unexpected();

  private:
    static constexpr std::uint16_t kMostUnreported = 0x3FFF;  // rdma-core mlx5
    void use_all_if_synchronized();

    std::uint32_t capacity_;
    std::vector<TaggedBuffer> tags_;  // in the order in which they were added
    std::size_t in_use_ = 0;          // the first so many take part in matching
    std::uint16_t unexpected_ = 0;
    std::uint16_t reported_ = 0;
};

}  // namespace simverbs
