#include "simverbs/driver/tag_handles.hpp"

#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/statuses.hpp"

namespace simverbs::driver {

TagHandles::TagHandles(std::uint32_t count) : handles_(count), free_(count), free_count_(count) {
    for (std::uint32_t i = 0; i < count; ++i) {
        free_[i] = static_cast<std::uint8_t>(i);
    }
}

std::optional<TagHandle> TagHandles::take(bool signaled) {
    if (free_count_ == 0) {
        return std::nullopt;
    }
    const std::uint8_t number = free_[first_free_];
    first_free_ = (first_free_ + 1) % free_.size();
    --free_count_;
    State& state = handles_[number];
    state.pending = signaled ? 2 : 1;
    return TagHandle{number, ++state.generation};
}

TagHandle TagHandles::begin_delete(std::uint32_t handle, bool signaled) {
    const auto number = static_cast<std::uint8_t>(handle);
    State& state = handles_[number];
    if (signaled) {
        ++state.pending;
    } else {
        release(number);
    }
    return {number, state.generation};
}

void TagHandles::release(std::uint8_t handle) {
    State& state = handles_[handle];
    if (state.pending == 0 || --state.pending > 0) {
        return;
    }
    free_[(first_free_ + free_count_) % free_.size()] = handle;
    ++free_count_;
}

// A handle that was deleted without a completion may serve another tag by now.
void TagHandles::settle(const Cqe& entry) {
    const std::uint8_t handle = tag_handle_of(entry);
    const auto opcode = static_cast<WcOpcode>(entry.opcode);
    if (opcode == WcOpcode::kTmSync || handle >= handles_.size() ||
        handles_[handle].generation != entry.tag_generation) {
        return;
    }
    const bool succeeded = entry.status == static_cast<std::uint8_t>(WcStatus::kSuccess);
    switch (opcode) {
        case WcOpcode::kTmAdd:
            release(handle);
            if (!succeeded) {
                release(handle);  // no message will match it
            }
            break;
        case WcOpcode::kTmDel:
            release(handle);
            if (succeeded) {
                release(handle);
            }
            break;
        default:
            if (!succeeded ||
                (entry.wc_flags & static_cast<std::uint32_t>(WcFlag::kTmDataValid)) != 0) {
                release(handle);
            }
            break;
    }
}

}  // namespace simverbs::driver
