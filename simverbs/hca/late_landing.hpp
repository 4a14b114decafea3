// Payloads that reach memory later than their packets were dealt with, because a fault has it so: a
// write that is under way between the device and memory.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <vector>

#include "fabric/core/timer.hpp"

#include "simverbs/hca/snapshot.hpp"
#include "simverbs/wire/payload.hpp"

namespace simverbs {

class Hca;

class LateLandings final : private fabric::EventHandler {
  public:
    explicit LateLandings(Hca& hca) : hca_(hca) {}
    ~LateLandings();
    LateLandings(const LateLandings&) = delete;
    LateLandings& operator=(const LateLandings&) = delete;

    // The bytes are taken now, so what it says of the source holds; the destination's faults are
    // nobody's any more.
    CopyOutcome add(const Payload& from, AddressSpace& space, std::span<const MemorySpan> spans,
                    std::uint64_t offset, fabric::SimDuration delay);
    // All of them, before a region or a context ends: what a device has begun to write, it writes.
    void finish();

  private:
    // A port has no such number, and no other timer of a device has it in the place of one.
    static constexpr fabric::PortNumber kTimerPlace{0xFE2};

    struct Landing {
        Landing(fabric::EventLoop& loop, fabric::EventKey key, fabric::EventHandler& handler,
                std::uint32_t its_number)
            : number(its_number), timer(loop, key, handler, its_number) {}

        std::uint32_t number;
        Snapshot* snapshot = nullptr;
        Payload from;
        AddressSpace* space = nullptr;
        std::vector<MemorySpan> spans;
        std::uint64_t offset = 0;
        fabric::Timer timer;
    };

    void handle(const fabric::Event& event) override;
    void land(std::list<Landing>::iterator landing);

    Hca& hca_;
    std::list<Landing> landings_;
    std::uint32_t last_ = 0;
};

}  // namespace simverbs
