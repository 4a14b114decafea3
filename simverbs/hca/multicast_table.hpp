// Which queue pairs of a device are attached to which multicast group (IBA 10.5).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "fabric/net/gid.hpp"
#include "fabric/net/lid.hpp"

#include "simverbs/model/limits.hpp"

namespace simverbs {

class QueuePair;

inline constexpr std::uint32_t kMulticastQpn = 0xFFFFFF;
inline constexpr std::uint16_t kFirstMulticastLid = 0xC000;
inline constexpr std::uint16_t kPermissiveLid = 0xFFFF;

constexpr bool is_multicast_lid(std::uint16_t lid) {
    return lid >= kFirstMulticastLid && lid != kPermissiveLid;
}

// Who is spoken to: on InfiniBand a GID with a LID, on Ethernet a GID alone (`lid` is 0).
struct MulticastGroup {
    fabric::Gid gid;
    fabric::Lid lid;
    friend constexpr auto operator<=>(const MulticastGroup&, const MulticastGroup&) = default;
};

class MulticastTable {
  public:
    // An errno: ENOMEM where the device takes no more. Attaching again changes nothing.
    int attach(const MulticastGroup& group, QueuePair& qp, const DeviceLimits& limits);
    // EINVAL where it is not attached.
    int detach(const MulticastGroup& group, QueuePair& qp);
    // Returns the number of groups that it is attached to.
    [[nodiscard]] std::size_t groups_of(const QueuePair& qp) const;
    [[nodiscard]] bool is_attached(const QueuePair& qp) const { return groups_of(qp) > 0; }
    void forget(const QueuePair& qp);
    // In the order in which they were attached.
    [[nodiscard]] std::span<QueuePair* const> members(const MulticastGroup& group) const;

  private:
    std::map<MulticastGroup, std::vector<QueuePair*>> groups_;
    std::size_t attachments_ = 0;
};

}  // namespace simverbs
