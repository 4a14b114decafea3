// Reports a served world that goes nowhere, where SIMVERBS_WARN asks for it.
#include <fmt/format.h>

#include "simverbs/server/server.hpp"
#include "simverbs/world/hang_report.hpp"

namespace simverbs {

// Returns true if no event is left and every thread of every program polls in vain or sits in a
// blocking verb. Programs that use devices without verbs, or are on their way here, may yet do
// something.
bool Server::everyone_waits_for_verbs() {
    bool any = false;
    for (const auto& client : clients_) {
        const std::uint32_t actors = client->actor_count();
        for (std::uint32_t actor = 0; actor < actors; ++actor) {
            switch (whereabouts_of(*client, actor)) {
                case Whereabouts::kWaiting:
                    any = true;
                    break;
                case Whereabouts::kEnded:
                case Whereabouts::kNeverStarted:
                    break;
                default:
                    return false;
            }
        }
    }
    return any && nothing_to_come() && expected_.empty() && devices_.empty();
}

void Server::watch_for_stall(std::size_t events) {
    const Stall stall = stall_watch_.stepped(events, deliveries() - looks_asked_);
    marks_.endless = marks_.endless || stall == Stall::kEndless;
    if (stall != Stall::kNone && options_.time.warn) {
        traces_.flush();
        if (const std::string unarmed = describe_unarmed(*simulation_); !unarmed.empty()) {
            fmt::print(stderr, "simverbs: {}\n", unarmed);
        }
        fmt::print(stderr, "simverbs: {}", hang_report(*simulation_, to_string(stall)));
    }
}

}  // namespace simverbs
