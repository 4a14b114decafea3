#include "tests/walk/arena.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/walk/failure.hpp"

namespace walk {
namespace {

constexpr std::uint8_t kPattern = 0xA5;
constexpr std::size_t kPageBytes = 4096;

void check_range(const std::uint8_t* begin, const std::uint8_t* end, std::uint32_t slot,
                 const std::uint8_t* base) {
    const std::uint8_t* changed = std::find_if(begin, end, [](auto b) { return b != kPattern; });
    if (changed != end) {
        fail("byte " + std::to_string(changed - base) + " of slot " + std::to_string(slot) +
             " changed, which no region gave the right to write");
    }
}

}  // namespace

void Arena::Free::operator()(std::uint8_t* block) const {
    std::free(block);
}

Arena::Arena()
    : bytes_(static_cast<std::uint8_t*>(
          std::aligned_alloc(kPageBytes, std::size_t{kSlots} * kSlotBytes))) {
    std::memset(bytes_.get(), kPattern, std::size_t{kSlots} * kSlotBytes);
}

void Arena::check() const {
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
        const std::uint8_t* begin = usable(slot) - kGuardBytes;
        const std::uint8_t* end = begin + kSlotBytes;
        if (writable(slot)) {
            check_range(begin, begin + kGuardBytes, slot, begin);
            check_range(end - kGuardBytes, end, slot, begin);
        } else {
            check_range(begin, end, slot, begin);
        }
    }
}

}  // namespace walk
