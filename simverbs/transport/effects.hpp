// The effects that a protocol engine may cause: the one interface through which its effects leave.
//
// Engines hold no clock, no lock and no global. A queue pair of the device implements this, and a
// test implements it with vectors. Parts of an engine that need less take less.
#pragma once

#include "simverbs/transport/engine_result.hpp"
#include "simverbs/transport/memory_effects.hpp"
#include "simverbs/transport/queue_effects.hpp"
#include "simverbs/transport/receive_effects.hpp"
#include "simverbs/transport/timer_effects.hpp"
#include "simverbs/transport/wire_effects.hpp"

namespace simverbs {

class Effects : public ReceiveEffects,
                public WireEffects,
                public MemoryEffects,
                public QueueEffects,
                public TimerEffects {
  public:
    using QueueEffects::complete;
    using ReceiveEffects::complete;

  protected:
    Effects() = default;
    ~Effects() = default;
};

}  // namespace simverbs
