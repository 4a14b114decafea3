// Memory of a walk: slots that regions lie in, each between two guards that nothing may write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace walk {

class Arena {
  public:
    static constexpr std::uint32_t kSlots = 24;
    static constexpr std::uint32_t kReadOnlySlots = 6;  // the last ones: never registered to write
    static constexpr std::uint32_t kSlotBytes = 8192;
    static constexpr std::uint32_t kGuardBytes = 256;  // at either end of a slot
    static constexpr std::uint32_t kUsableBytes = kSlotBytes - 2 * kGuardBytes;

    Arena();

    [[nodiscard]] static bool writable(std::uint32_t slot) {
        return slot < kSlots - kReadOnlySlots;
    }
    // Where the usable bytes of a slot begin.
    [[nodiscard]] std::uint8_t* usable(std::uint32_t slot) const {
        return bytes_.get() + std::size_t{slot} * kSlotBytes + kGuardBytes;
    }
    // Every guard and every read-only slot is as it was made.
    void check() const;

  private:
    struct Free {
        void operator()(std::uint8_t* block) const;
    };
    std::unique_ptr<std::uint8_t, Free> bytes_;
};

}  // namespace walk
