// An event and its place in the order of everything: (time, class, source node, port, sequence).
// Nothing else may order events: no insertion order and no address.
#pragma once

#include <compare>
#include <cstdint>
#include <type_traits>

#include "fabric/core/sim_time.hpp"
#include "fabric/core/strong_id.hpp"

namespace fabric {

class EventHandler;

// Events of one instant run class by class.
enum class EventClass : std::uint8_t { kLinkState, kFrameArrival, kTimer, kApplication };

// The order within an instant as one integer. Values beyond the limits are refused by assertion
// where nodes, ports and timers are made; a wrapped sequence is harmless unless both numbers are
// pending at one instant, and that is asserted by the loop.
class EventKey {
  public:
    static constexpr unsigned kNodeBits = 20;
    static constexpr unsigned kPortBits = 12;
    static constexpr unsigned kSequenceBits = 30;
    static constexpr std::uint32_t kMaxNode = (1U << kNodeBits) - 1;
    static constexpr std::uint16_t kMaxPort = (1U << kPortBits) - 1;

    constexpr EventKey() = default;
    constexpr EventKey(EventClass event_class, NodeId node, PortNumber port, std::uint32_t sequence)
        : packed_(static_cast<std::uint64_t>(event_class) << kClassShift |
                  static_cast<std::uint64_t>(node.value() & kMaxNode) << kNodeShift |
                  static_cast<std::uint64_t>(port.value() & kMaxPort) << kSequenceBits |
                  (sequence & kMaxSequence)) {}

    [[nodiscard]] constexpr EventClass event_class() const {
        return static_cast<EventClass>(packed_ >> kClassShift);
    }
    [[nodiscard]] constexpr NodeId node() const {
        return NodeId(static_cast<std::uint32_t>(packed_ >> kNodeShift) & kMaxNode);
    }
    [[nodiscard]] constexpr PortNumber port() const {
        return PortNumber(static_cast<std::uint16_t>((packed_ >> kSequenceBits) & kMaxPort));
    }
    [[nodiscard]] constexpr std::uint32_t sequence() const {
        return static_cast<std::uint32_t>(packed_ & kMaxSequence);
    }
    [[nodiscard]] constexpr std::uint64_t packed() const { return packed_; }

    friend constexpr bool operator==(EventKey, EventKey) = default;
    // NOLINTNEXTLINE(modernize-use-nullptr): takes the defaulted comparison's 0 for a pointer
    friend constexpr auto operator<=>(EventKey, EventKey) = default;

  private:
    static constexpr unsigned kNodeShift = kPortBits + kSequenceBits;
    static constexpr unsigned kClassShift = kNodeShift + kNodeBits;
    static constexpr std::uint64_t kMaxSequence = (1U << kSequenceBits) - 1;
    static_assert(kClassShift == 62, "two bits are left for the class");

    std::uint64_t packed_ = 0;
};

struct Event {
    SimTime time;
    EventKey key;
    EventHandler* handler;
    std::uint64_t argument;  // the handler's own
};
static_assert(sizeof(Event) == 32 && std::is_trivially_copyable_v<Event>);

class EventHandler {
  public:
    virtual void handle(const Event& event) = 0;
    // Returns true if handle() itself tells followers what concerns them of `event`.
    [[nodiscard]] virtual bool tells_followers(const Event& /*event*/) const { return false; }

  protected:
    ~EventHandler() = default;
};

// Told of each event when its time has come, before it is handled.
class EventFollower {
  public:
    virtual void before(const Event& event) = 0;

  protected:
    ~EventFollower() = default;
};

}  // namespace fabric
