// Which handles of a tag list are free. A handle is in use until every completion of its tag that
// is still to come has been polled: of the ADD and the DEL where they are signaled, and of the
// message, unless the tag was taken out of the list (as rdma-core's mlx5 counts them).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simverbs/transport/work_queue.hpp"

namespace simverbs::driver {

struct TagHandle {
    std::uint8_t number = 0;
    std::uint8_t generation = 0;  // how often it was given out, modulo 2^8
};

// Guarded by the lock of the list's operations.
class TagHandles {
  public:
    explicit TagHandles(std::uint32_t count);

    [[nodiscard]] std::uint32_t count() const {
        return static_cast<std::uint32_t>(handles_.size());
    }
    [[nodiscard]] bool is_free(std::uint32_t handle) const { return handles_[handle].pending == 0; }
    // The one that has been free for the longest time, for an ADD.
    std::optional<TagHandle> take(bool signaled);
    // A DEL of it was posted. Without a completion it counts as done.
    TagHandle begin_delete(std::uint32_t handle, bool signaled);
    // A completion of the list was polled.
    void settle(const Cqe& entry);

  private:
    struct State {
        std::uint8_t pending = 0;  // completions
        std::uint8_t generation = 0;
    };
    void release(std::uint8_t handle);

    std::vector<State> handles_;
    std::vector<std::uint8_t> free_;  // a ring
    std::size_t first_free_ = 0;
    std::size_t free_count_ = 0;
};

}  // namespace simverbs::driver
