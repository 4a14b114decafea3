#include "fabric/net/vl_arbitration.hpp"

#include <bit>
#include <cstddef>

namespace fabric {

// The entry whose turn it is, or the next that has a frame. -1: none.
int VlArbiter::find(const std::vector<VlWeight>& table, const Turn& turn, std::uint32_t ready) {
    for (std::size_t step = 0; step < table.size(); ++step) {
        const std::size_t entry = (turn.entry + step) % table.size();
        if (table[entry].weight != 0 && (ready >> table[entry].vl & 1U) != 0) {
            return static_cast<int>(entry);
        }
    }
    return -1;
}

// A frame may be longer than what is left: the entry had some.
void VlArbiter::spend(const std::vector<VlWeight>& table, Turn& turn, int entry,
                      std::uint32_t blocks) {
    const auto chosen = static_cast<std::size_t>(entry);
    const bool goes_on = chosen == turn.entry && turn.left > 0;
    const std::uint32_t left = goes_on ? turn.left : table[chosen].weight;
    turn = left > blocks ? Turn{chosen, left - blocks} : Turn{(chosen + 1) % table.size(), 0};
}

// Lanes that no table names, or no tables at all.
std::uint8_t VlArbiter::next_in_turn(std::uint32_t ready) {
    const std::uint32_t later = ready & ~((2U << last_vl_) - 1U);
    last_vl_ = static_cast<std::uint8_t>(std::countr_zero(later != 0 ? later : ready));
    return last_vl_;
}

}  // namespace fabric
