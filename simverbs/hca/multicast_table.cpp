#include "simverbs/hca/multicast_table.hpp"

#include <algorithm>
#include <cerrno>

namespace simverbs {

int MulticastTable::attach(const MulticastGroup& group, QueuePair& qp, const DeviceLimits& limits) {
    const auto found = groups_.find(group);
    if (found == groups_.end() &&
        groups_.size() >= static_cast<std::size_t>(limits.max_mcast_grp)) {
        return ENOMEM;
    }
    if (found != groups_.end() && std::ranges::count(found->second, &qp) > 0) {
        return 0;
    }
    const std::size_t members = found == groups_.end() ? 0 : found->second.size();
    if (members >= static_cast<std::size_t>(limits.max_mcast_qp_attach) ||
        attachments_ >= static_cast<std::size_t>(limits.max_total_mcast_qp_attach)) {
        return ENOMEM;
    }
    groups_[group].push_back(&qp);
    ++attachments_;
    return 0;
}

int MulticastTable::detach(const MulticastGroup& group, QueuePair& qp) {
    const auto found = groups_.find(group);
    if (found == groups_.end() || std::erase(found->second, &qp) == 0) {
        return EINVAL;
    }
    --attachments_;
    if (found->second.empty()) {
        groups_.erase(found);
    }
    return 0;
}

std::size_t MulticastTable::groups_of(const QueuePair& qp) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        groups_, [&qp](const auto& group) { return std::ranges::count(group.second, &qp) > 0; }));
}

void MulticastTable::forget(const QueuePair& qp) {
    for (auto group = groups_.begin(); group != groups_.end();) {
        attachments_ -= std::erase(group->second, &qp);
        group = group->second.empty() ? groups_.erase(group) : std::next(group);
    }
}

std::span<QueuePair* const> MulticastTable::members(const MulticastGroup& group) const {
    const auto found = groups_.find(group);
    return found == groups_.end() ? std::span<QueuePair* const>() : found->second;
}

}  // namespace simverbs
