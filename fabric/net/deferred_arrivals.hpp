// Trains whose first packet has arrived at a host, and which the host takes as a whole when the
// last one has: nothing else that happens until then can see the difference.
//
// Whoever can see it settles first: packets that have arrived by then are taken, and the next one
// comes by an event of its own. That is done before each event that is neither a frame nor a wake
// of a transmitter, and by those who look at a link or a port (LinkDirection::end_passages()). A
// host settles before it handles a frame that touches the memory of a deferred train, or sends what
// it reads there by a timer; and who runs the loop before anybody else has a turn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fabric/core/event_loop.hpp"

namespace fabric {

class LinkDirection;
class Node;

// A part of a memory, which the hosts tell from others by a pointer. Of no memory: nothing.
struct TouchedMemory {
    const void* memory = nullptr;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;

    [[nodiscard]] bool meets(const TouchedMemory& other) const {
        return memory != nullptr && memory == other.memory && begin < other.end &&
               other.begin < end;
    }
};

// The parts that packets are copied from and to.
struct TouchedMemories {
    TouchedMemory from;
    TouchedMemory to;

    // Returns true if it matters which of both comes first.
    [[nodiscard]] bool conflict_with(const TouchedMemories& other) const {
        return to.meets(other.to) || to.meets(other.from) || from.meets(other.to);
    }
};

// Names other work that a host has left for later, and does before anybody can notice.
class LeftForLater {
  public:
    virtual void settle() = 0;

  protected:
    LeftForLater() = default;
    ~LeftForLater() = default;
};

class DeferredArrivals final : private EventFollower {
  public:
    explicit DeferredArrivals(EventLoop& loop) : loop_(loop) {}
    ~DeferredArrivals() { loop_.follow(nullptr); }
    DeferredArrivals(const DeferredArrivals&) = delete;
    DeferredArrivals& operator=(const DeferredArrivals&) = delete;

    // Neither a train is deferred nor anything else left.
    [[nodiscard]] bool empty() const { return count_ == 0 && left_ == nullptr; }
    // Returns true if a train that touches these may be one of them.
    [[nodiscard]] bool has_room_for(const TouchedMemories& touched) const;

    // When the next packet of one arrives; SimTime::max(): none is deferred.
    [[nodiscard]] SimTime next_arrival() const;

    void add(LinkDirection& direction, const TouchedMemories& touched);
    void remove(LinkDirection& direction);
    // Settles it, once, when all trains are settled. There is one such thing.
    void add(LeftForLater& left);

    void settle() {
        if (!empty()) [[unlikely]] {
            settle_all();
        }
    }
    // Those towards `node`, and those that conflict.
    void settle(const Node& node, const TouchedMemories& touched);

  private:
    // Keeps the searches short. If more hosts receive at a time, their trains settle one another.
    static constexpr std::size_t kMost = 8;

    struct Deferred {
        LinkDirection* direction = nullptr;
        TouchedMemories touched;
    };

    void before(const Event& event) override;
    [[gnu::noinline]] void settle_all();

    EventLoop& loop_;
    std::array<Deferred, kMost> deferred_;
    std::size_t count_ = 0;
    LeftForLater* left_ = nullptr;
};

}  // namespace fabric
