// Which queue pairs of a device are attached to which multicast group (IBA 10.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
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

class MulticastTable {
  public:
    // An errno: ENOMEM where the device takes no more. Attaching again changes nothing.
    int attach(const fabric::Gid& group, fabric::Lid lid, QueuePair& qp,
               const DeviceLimits& limits);
    // EINVAL where it is not attached.
    int detach(const fabric::Gid& group, fabric::Lid lid, QueuePair& qp);
    [[nodiscard]] bool is_attached(const QueuePair& qp) const;
    void forget(const QueuePair& qp);
    // In the order in which they were attached.
    [[nodiscard]] std::span<QueuePair* const> members(const fabric::Gid& group,
                                                      fabric::Lid lid) const;

  private:
    using Group = std::pair<fabric::Gid, fabric::Lid>;
    std::map<Group, std::vector<QueuePair*>> groups_;
    std::size_t attachments_ = 0;
};

}  // namespace simverbs
