#include "simverbs/hca/flow_table.hpp"

#include <algorithm>
#include <cstring>

namespace simverbs {

void FlowTable::add(const FlowRule& rule) {
    const auto place = std::upper_bound(
        rules_.begin(), rules_.end(), rule.priority,
        [](std::uint16_t priority, const FlowRule* other) { return priority < other->priority; });
    rules_.insert(place, &rule);
}

void FlowTable::erase(const FlowRule& rule) {
    std::erase(rules_, &rule);
}

bool FlowTable::steers_to(const QueuePair& qp) const {
    return std::any_of(rules_.begin(), rules_.end(),
                       [&qp](const FlowRule* rule) { return rule->qp == &qp; });
}

bool FlowTable::are_equal(const FlowRule& a, const FlowRule& b) {
    return a.priority == b.priority && a.traps == b.traps && a.layers == b.layers &&
           std::memcmp(&a.mask, &b.mask, sizeof a.mask) == 0 &&
           fields_match(a.value, b.value, a.mask);
}

}  // namespace simverbs
