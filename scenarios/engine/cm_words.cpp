#include "scenarios/engine/cm_words.hpp"

#include <fmt/core.h>

#include "simverbs/model/cm_codes.hpp"
#include "simverbs/model/rdma_cm_events.hpp"

#include "scenarios/engine/errno_names.hpp"

namespace scenarios {

namespace {

using simverbs::RdmaEventType;

// A status below 0 is an errno; that of REJECTED is a reason of the IBA.
std::string status_text(const CmEventSeen& seen) {
    // librdmacm has -1 for CONNECT_ERROR, which is no errno.
    if (seen.status < 0 && static_cast<RdmaEventType>(seen.event) != RdmaEventType::kConnectError) {
        return errno_name(-seen.status);
    }
    if (static_cast<RdmaEventType>(seen.event) == RdmaEventType::kRejected) {
        return fmt::format("{} ({})", seen.status,
                           to_string(static_cast<simverbs::RejectReason>(seen.status)));
    }
    return std::to_string(seen.status);
}

}  // namespace

std::string_view cm_event_name(const CmEventSeen& seen) {
    return to_string(static_cast<RdmaEventType>(seen.event));
}

std::string describe(const CmEventSeen& seen) {
    return fmt::format("{}{}{}{} at {}", cm_event_name(seen),
                       seen.of.empty() ? "" : " of " + seen.of,
                       seen.status == 0 ? "" : " with status " + status_text(seen),
                       seen.private_data.empty() ? "" : " and \"" + seen.private_data + "\"",
                       time_text(seen.time_ps));
}

std::string describe_cm_event(std::string_view event, Checked item, const CmEventKeys& keys) {
    return fmt::format(
        "{}{}{}", event, item.has(keys.status) ? " with status " + item.text(keys.status) : "",
        item.has(keys.private_data) ? fmt::format(" and \"{}\"", item.text(keys.private_data))
                                    : "");
}

bool fits_cm_event(Checked item, const CmEventSeen& seen, const CmEventKeys& keys) {
    if (item.has(keys.status)) {
        const auto error = errno_of(item.text(keys.status));
        const std::int64_t wanted =
            error ? -*error : static_cast<std::int64_t>(item.number(keys.status));
        if (wanted != seen.status) {
            return false;
        }
    }
    return !item.has(keys.private_data) || item.text(keys.private_data) == seen.private_data;
}

}  // namespace scenarios
