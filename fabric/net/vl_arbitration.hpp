// Virtual lanes of a port: which one a frame takes (IBA 7.6.6) and which may send next (7.6.9).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace fabric {

// VL0 to VL14 carry data; VL15 has rules of its own (management.hpp).
inline constexpr std::uint8_t kMaxDataVls = 15;
inline constexpr std::uint8_t kServiceLevels = 16;

// [service level] is the lane; 15, or one that is not operational, discards the frame.
using SlToVl = std::array<std::uint8_t, kServiceLevels>;

// How much a lane may send in its turn, in units of 64 bytes; 0 skips the entry.
struct VlWeight {
    std::uint8_t vl = 0;
    std::uint8_t weight = 0;

    friend bool operator==(const VlWeight&, const VlWeight&) = default;
};

// Empty tables: the operational lanes take turns of a packet each.
struct VlArbitrationTables {
    static constexpr std::uint8_t kNoHighLimit = 255;

    std::vector<VlWeight> high;
    std::vector<VlWeight> low;
    // The amount that lanes of high priority may send while one of low priority waits, in units of
    // 4096 bytes; 0: one packet.
    std::uint8_t high_limit = 0;
};

class VlArbiter {
  public:
    // The lane to send a frame, of those in `ready` (not empty, bit n: VL n); `blocks_of(vl)` is
    // the length of its first frame in units of 64 bytes.
    template <class F>
    std::uint8_t choose(const VlArbitrationTables& tables, std::uint32_t ready, F&& blocks_of) {
        const int high = find(tables.high, high_, ready);
        const int low = find(tables.low, low_, ready);
        if (high >= 0 && (low < 0 || high_may_go_on(tables))) {
            const std::uint8_t vl = tables.high[static_cast<std::size_t>(high)].vl;
            const std::uint32_t blocks = blocks_of(vl);
            spend(tables.high, high_, high, blocks);
            high_sent_ = low < 0 ? 0 : high_sent_ + blocks;
            return vl;
        }
        high_sent_ = 0;
        if (low >= 0) {
            const std::uint8_t vl = tables.low[static_cast<std::size_t>(low)].vl;
            spend(tables.low, low_, low, blocks_of(vl));
            return vl;
        }
        return next_in_turn(ready);
    }

  private:
    static constexpr std::uint32_t kBlocksOfLimit = 4096 / 64;

    // Where a table's turn has come to; `left` 0: the entry has all its weight.
    struct Turn {
        std::size_t entry = 0;
        std::uint32_t left = 0;
    };

    [[nodiscard]] bool high_may_go_on(const VlArbitrationTables& tables) const {
        return tables.high_limit == VlArbitrationTables::kNoHighLimit || high_sent_ == 0 ||
               high_sent_ < tables.high_limit * kBlocksOfLimit;
    }
    static int find(const std::vector<VlWeight>& table, const Turn& turn, std::uint32_t ready);
    static void spend(const std::vector<VlWeight>& table, Turn& turn, int entry,
                      std::uint32_t blocks);
    std::uint8_t next_in_turn(std::uint32_t ready);

    Turn high_;
    Turn low_;
    std::uint32_t high_sent_ = 0;  // blocks, since a lane of low priority could not send
    std::uint8_t last_vl_ = kMaxDataVls;
};

}  // namespace fabric
