// Identifiers that do not mix: a LID is not a QPN though both are integers. No arithmetic and no
// implicit conversion; order exists only so that an id can be a key.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace fabric {

template <class Tag, class Rep>
class StrongId {
  public:
    constexpr StrongId() = default;
    constexpr explicit StrongId(Rep value) : value_(value) {}

    [[nodiscard]] constexpr Rep value() const { return value_; }

    friend constexpr bool operator==(StrongId, StrongId) = default;
    // NOLINTNEXTLINE(modernize-use-nullptr): takes the defaulted comparison's 0 for a pointer
    friend constexpr auto operator<=>(StrongId, StrongId) = default;

  private:
    Rep value_ = 0;
};

// The rank of a node in the topology: hosts in the natural order of their names, then switches.
using NodeId = StrongId<struct NodeIdTag, std::uint32_t>;
inline constexpr NodeId kNoNode{0xFFFF'FFFFU};

// 1..n on an HCA; 1..n on a switch, whose port 0 is its management port (IBA 14.2.5.6).
using PortNumber = StrongId<struct PortNumberTag, std::uint16_t>;

}  // namespace fabric
