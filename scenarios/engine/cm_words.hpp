// Events of rdma_cm in the words of scenarios and verdicts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "scenarios/engine/checked.hpp"
#include "scenarios/engine/observation.hpp"

namespace scenarios {

inline constexpr std::uint16_t kDefaultCmPort = 7471;  // of operations that name none

std::string_view cm_event_name(const CmEventSeen& seen);
// "REJECTED of c with status 8 (invalid service ID)".
std::string describe(const CmEventSeen& seen);
// The same of an event that is expected, with the status and the private data of `item`, which are
// under these keys.
struct CmEventKeys {
    std::string_view status = "status";
    std::string_view private_data = "private_data";
};
std::string describe_cm_event(std::string_view event, Checked item, const CmEventKeys& keys = {});
// Returns true if the event has what stands under those keys.
bool fits_cm_event(Checked item, const CmEventSeen& seen, const CmEventKeys& keys = {});

}  // namespace scenarios
