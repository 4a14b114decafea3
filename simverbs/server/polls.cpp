// Ends polls that have found nothing (canonical): after steps, before long jumps, and while a
// thread runs for long.
#include <algorithm>

#include "simverbs/server/server.hpp"

namespace simverbs {
namespace {

// Steps after which every poll ends, as in an embedded world (simverbs/threads/conductor.cpp).
constexpr std::uint64_t kStepsUnseen = 4096;

}  // namespace

void Server::note_busy(pid_t process, std::chrono::nanoseconds busy) {
    busy_ = std::max(busy_, busy);
    for (const auto& client : clients_) {
        if (client->process() == process) {
            client->busy = std::max(client->busy.value_or(busy), busy);
        }
    }
}

// Canonical, while somebody runs: see EarlyPolls. Polls of another process end only once a thread
// may be taken for one that spins.
void Server::let_pollers_look() {
    for (const auto& client : clients_) {
        const auto beyond_limit = busy_ - options_.time.spin_limit;
        client->note_waiting_polls(steps_);
        if (client->early_polls.are_due(
                std::max(client->busy.value_or(beyond_limit), beyond_limit))) {
            client->call_noted_polls_early();
            release_polls_of(*client, true);
        }
    }
}

// After a step. Polls of a completion queue go on while nothing has come to it, but not for long:
// programs may look elsewhere between two polls.
void Server::release_pollers(bool anything_happened) {
    ++steps_;
    const bool anyone_has_news = std::any_of(clients_.begin(), clients_.end(),
                                             [](const auto& client) { return client->has_news(); });
    const bool all = (anything_happened && !anyone_has_news) || steps_ % kStepsUnseen == 0;
    for (const auto& client : clients_) {
        release_polls_of(*client, all);
    }
}

// No poll of a stopped process returns before it goes on.
void Server::release_polls_of(RemoteClient& client, bool all) {
    if (!processes_.holds(client.process())) {
        client.end_noted_polls(all);
    }
}

// It may be that of a time limit.
bool Server::next_step_is_far() const {
    return simulation_->next_step() > kFarJump;
}

// Before time jumps far, whoever has polled through a step may look. Returns true if somebody does.
bool Server::show_before_jump() {
    if (!next_step_is_far()) {
        return false;
    }
    bool any = false;
    for (const auto& client : clients_) {
        client->note_waiting_polls(steps_);
        any = (!processes_.holds(client->process()) && client->end_polls_before(steps_)) || any;
    }
    return any;
}

}  // namespace simverbs
