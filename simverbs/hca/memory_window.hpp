// Memory windows: rkeys for a part of a region, given and taken back by requests of a send queue.
//
// Type 2 windows are of kind 2B: bound, they serve the queue pair that bound them and no other
// (IBA 10.6.7.2).
#pragma once

#include <cstdint>

#include "simverbs/hca/memory_region.hpp"

namespace simverbs {

// Values of enum ibv_mw_type.
enum class WindowType : std::uint32_t { kType1 = 1, kType2 = 2 };

struct MemoryWindow : KeyedMemory {
    MemoryWindow() { is_window = true; }

    WindowType type = WindowType::kType1;
    std::uint32_t key = 0;           // `rkey` while it is bound, and what it was or will be
    MemoryRegion* region = nullptr;  // null: not bound
};

}  // namespace simverbs
