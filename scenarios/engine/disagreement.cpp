#include "scenarios/engine/disagreement.hpp"

#include <fmt/core.h>

namespace scenarios {

namespace {

using simverbs::FaultCause;

// Returns what the queue pair was last told of its connection; nullptr: nothing.
const Record* connection_of(std::span<const Record> records, const std::string& node,
                            std::uint64_t qpn) {
    const Record* last = nullptr;
    for (const Record& record : records) {
        if (record.name == "queue_pair_connected" && record.node == node &&
            record.number("qpn") == qpn) {
            last = &record;
        }
    }
    return last;
}

}  // namespace

std::string describe_disagreement(std::span<const Record> records, const Trail& trail,
                                  FaultCause cause, const RunNames* names) {
    const Record* const one = connection_of(records, trail.node(), trail.qpn());
    const Record* const other = connection_of(records, trail.peer(), trail.peer_qpn());
    if (one == nullptr || other == nullptr) {
        return {};
    }
    const std::string name = end_text(names, trail.node(), trail.qpn());
    const std::string peer = end_text(names, trail.peer(), trail.peer_qpn());
    if (cause == FaultCause::kPayloadNotMtu) {
        return one->number("path_mtu") == other->number("path_mtu")
                   ? ""
                   : fmt::format("path_mtu of {} is {}, that of {} is {}", name,
                                 one->number("path_mtu"), peer, other->number("path_mtu"));
    }
    if (cause != FaultCause::kPacketsLost && cause != FaultCause::kSequenceRetriesUsedUp) {
        return {};
    }
    if (other->number("dest_qpn") != trail.qpn()) {
        return fmt::format("{} is connected to QP {:#x} (dest_qp_num), not to {}", peer,
                           other->number("dest_qpn"), name);
    }
    if (one->number("sq_psn") != other->number("rq_psn")) {
        return fmt::format(
            "no packet was lost, but {} begins with PSN {} (sq_psn), and {} expects PSN {} "
            "(rq_psn)",
            name, one->number("sq_psn"), peer, other->number("rq_psn"));
    }
    return {};
}

}  // namespace scenarios
