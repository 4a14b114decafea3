// Looks again, yields the processor or sleeps when the server finds nothing to do.
#include <algorithm>

#include <sched.h>

#include "simverbs/server/server.hpp"

namespace simverbs {
namespace {

// Free: turns of the loop before the server yields its processor, a tenth of a microsecond each. A
// program that has just got something, and runs on another processor, often answers sooner than a
// yield takes.
constexpr int kTurnsBeforeYield = 10;
// Turns before the server sleeps: handing a message over while awake takes
// microseconds, waking a sleeper takes fifty times as long.
constexpr int kIdleTurns = 2000;
// The same where the processor is wanted by a thread that may not give it back.
constexpr int kIdleTurnsBeside = 8;
// A yield that lasts longer gave the processor to a program that computes.
constexpr std::int64_t kLongYieldNs = 1'000'000;
// A yield that lasts longer gave it to a thread that looks at memory, or does work of its own: one
// that polls gives it back soon. For so long the server expects the same of that thread.
constexpr std::int64_t kKeptNs = 200'000;
constexpr std::int64_t kWaryNs = 1'000'000'000;
constexpr int kSleepMs = 100;
constexpr int kWatchMs = 1;

}  // namespace

// Returns true if holds(client, actor) for a thread that was on the server's processor when it rang
// or polled last.
template <class Holds>
bool Server::someone_here(Holds holds) const {
    const auto own = static_cast<std::uint32_t>(sched_getcpu()) + 1;
    for (const auto& client : clients_) {
        const std::uint32_t actors = client->actor_count();
        for (std::uint32_t actor = 0; actor < actors; ++actor) {
            const ActorSlot& slot = client->area().actors[actor];
            if (slot.processor.load(std::memory_order_relaxed) == own && holds(*client, actor)) {
                return true;
            }
        }
    }
    return false;
}

void Server::be_idle(int& turns) {
    if (++turns <= kTurnsBeforeYield && is_free() && !someone_here_has_news()) {
        return;
    }
    const bool is_to_sleep = someone_keeps_processor() ? turns >= kIdleTurnsBeside
                                                       : turns >= kIdleTurns || yield_is_long();
    if (is_to_sleep) {
        const bool spoke = sleep_until_something_happens();
        turns = !simulation_->loop().empty() ? 0 : spoke ? kIdleTurns / 2 : kIdleTurns - 1;
    }
}

// A thread that polls gets what was delivered only once it has the processor.
bool Server::someone_here_has_news() const {
    return someone_here([](RemoteClient& client, std::uint32_t actor) {
        const ActorSlot& slot = client.area().actors[actor];
        return slot.state.load(std::memory_order_relaxed) ==
                   static_cast<std::uint32_t>(ActorWord::kPolling) &&
               slot.seen.load(std::memory_order_relaxed) != client.deliveries();
    });
}

// Yields the processor. Returns whether others kept it for long. A thread that sleeps is woken
// before programs that compute have used up their share; a thread that yields waits for that.
bool Server::yield_is_long() {
    const std::int64_t began = wall_ns();
    sched_yield();
    const std::int64_t now = wall_ns();
    if (is_free() && now - began > kKeptNs) {
        note_keepers(now);
    }
    return now - began > kLongYieldNs;
}

// Whoever is outside the library here may have kept the processor.
void Server::note_keepers(std::int64_t now_ns) {
    someone_here([this, now_ns](RemoteClient& client, std::uint32_t actor) {
        if (is_in_own_code(client, actor)) {
            const std::uint64_t seen =
                client.area().actors[actor].seen.load(std::memory_order_relaxed);
            std::erase_if(keepers_, [&](const Keeper& keeper) {
                return keeper.process == client.process() && keeper.actor == actor;
            });
            keepers_.push_back({client.process(), actor, seen, now_ns + kWaryNs});
        }
        return false;
    });
}

bool Server::is_in_own_code(RemoteClient& client, std::uint32_t actor) const {
    return whereabouts_of(client, actor) == Whereabouts::kOwnCode &&
           !client.watch(actor).was_asleep();
}

// Free: a thread outside the library may spin on memory. If it has left the library on this
// processor, a yield would give it the processor until the kernel's next tick. A thread that was
// busy once, and polls now, gives it back, unless peers write to its program's memory without
// completions: such a thread polls and spins in turn.
bool Server::someone_keeps_processor() {
    if (keepers_.empty()) {
        return false;
    }
    std::erase_if(keepers_,
                  [now = wall_ns()](const Keeper& keeper) { return keeper.until_ns < now; });
    return someone_here([this](RemoteClient& client, std::uint32_t actor) {
        const std::uint64_t seen = client.area().actors[actor].seen.load(std::memory_order_relaxed);
        const auto keeps = [&](const Keeper& keeper) {
            return keeper.process == client.process() && keeper.actor == actor &&
                   (keeper.seen == seen || client.is_written_to());
        };
        return std::ranges::any_of(keepers_, keeps) && is_in_own_code(client, actor);
    });
}

int Server::longest_sleep_ms() const {
    if (!simulation_->loop().empty()) {
        return kWatchMs;
    }
    if (!stands_) {
        return kSleepMs;
    }
    std::chrono::nanoseconds due = std::chrono::milliseconds(kSleepMs);
    for (const auto& client : clients_) {
        due = std::min(due, client->early_polls.due_in());
    }
    const auto due_ms = std::chrono::ceil<std::chrono::milliseconds>(due).count();
    return std::max(static_cast<int>(due_ms), kWatchMs);
}

// Clients look at the flag after ringing, the server looks for doorbells after raising it: one of
// the two sees the other. Returns true if someone said something on a socket.
bool Server::sleep_until_something_happens() {
    bool spoke = false;
    for (const auto& client : clients_) {
        client->area().server_sleeps.value.store(1, std::memory_order_seq_cst);
    }
    if (!doorbells_waiting()) {
        spoke = serve_sockets(longest_sleep_ms());
        if (!spoke && everyone_waits_for_verbs()) {
            watch_for_stall(0);
        }
    }
    for (const auto& client : clients_) {
        client->area().server_sleeps.value.store(0, std::memory_order_relaxed);
    }
    return spoke;
}

}  // namespace simverbs
