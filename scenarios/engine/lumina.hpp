// Configurations of Lumina (Yu et al., SIGCOMM 2023), which injects faults around real adapters
// with a programmable switch: their traffic and their list of packet events, as a scenario.
#pragma once

#include <string>
#include <string_view>

#include "fabric/core/outcome.hpp"

namespace scenarios {

// The text of a scenario on RoCE v2: requester h0, responder h1, connections c0, c1, ... as
// `num-qps` has them, a fault an event and message. A failure has every mistake, a line each. What
// Lumina needs of its machines (switch, servers, adapters) is passed over.
fabric::Outcome<std::string> import_lumina(std::string_view text, const std::string& file);

}  // namespace scenarios
