// Judges the threads of clients: where each is, and whether time may pass it.
#include <algorithm>

#include <fmt/format.h>

#include "simverbs/server/server.hpp"

namespace simverbs {

Whereabouts Server::whereabouts_of(RemoteClient& client, std::uint32_t actor) const {
    const ActorSlot& slot = client.area().actors[actor];
    const auto state = static_cast<ActorWord>(slot.state.load(std::memory_order_acquire));
    if (processes_.holds(client.process())) {
        return Whereabouts::kStopped;
    }
    if (client.pending && client.pending->actor == actor) {
        return Whereabouts::kCommanding;
    }
    if (slot.thread.load(std::memory_order_acquire) == 0) {
        return state == ActorWord::kFree ? Whereabouts::kNeverStarted : Whereabouts::kStarting;
    }
    if (client.watch(actor).has_ended()) {
        return Whereabouts::kEnded;
    }
    if (state == ActorWord::kBlocked &&
        slot.seen.load(std::memory_order_relaxed) == client.events_sent()) {
        return Whereabouts::kWaiting;
    }
    if (state == ActorWord::kPolling) {
        const bool waits = is_free()
                               ? slot.seen.load(std::memory_order_relaxed) == client.deliveries()
                               : slot.ticket.load(std::memory_order_relaxed) !=
                                     slot.released.load(std::memory_order_relaxed);
        return waits ? Whereabouts::kWaiting : Whereabouts::kOwnCode;
    }
    return Whereabouts::kOwnCode;
}

Hold Server::judge_actor(RemoteClient& client, std::uint32_t actor,
                         std::chrono::nanoseconds interval) {
    note_nap(client, actor);
    const Whereabouts where = whereabouts_of(client, actor);
    ThreadWatch& watch = client.watch(actor);
    if (where == Whereabouts::kWaiting) {
        watch.was_in_library();
        note_signal(client, actor);
    }
    if (where != Whereabouts::kOwnCode) {
        return judge(where);
    }
    someone_was_looked_at_ = true;
    if (is_free() && client.has_polled(actor)) {
        watch.was_in_library();
        return Hold::kHolds;
    }
    // A thread that is about to end calls no verb any more, but it wakes threads that join it and
    // closes sockets.
    const auto state =
        static_cast<ActorWord>(client.area().actors[actor].state.load(std::memory_order_acquire));
    const auto spin_limit =
        state == ActorWord::kFree ? std::chrono::nanoseconds::zero() : options_.time.spin_limit;
    const ThreadState found = watch.look(spin_limit, interval);
    note_signal(client, actor);
    // A thread that polls may look for what this one wrote into memory before it fell asleep.
    const bool sleeps = found == ThreadState::kAsleep || found == ThreadState::kAsleepForTime;
    if (is_free() && sleeps && client.known_actors() > 1 && watch.has_run_since_asked()) {
        client.make_pollers_look();
        return Hold::kHolds;
    }
    const Hold hold = judge(found, found == ThreadState::kSpins && !nothing_to_come());
    if (hold == Hold::kHolds) {
        note_busy(client.process(), watch.busy_for());
    }
    if (hold == Hold::kPassesForTime) {
        sleeps_for_time_ = client.host();
    }
    if (hold == Hold::kPassesSpinning) {
        note_spinner(marks_.has(Mark::kSpunOnMemory) ? "" : client.describe(actor));
    }
    return hold;
}

// It may be passed. The run is marked when it is.
void Server::note_spinner(std::string_view name) {
    someone_spins_ = true;
    spinner_ = name;
}

// The threads of programs that have devices open, and are no actors. Under the schedule free one
// that uses its processor never lets time jump, as the processors of QEMU's guest do not.
bool Server::devices_wait(std::chrono::nanoseconds interval) {
    ThreadLook look{
        .spin_limit = is_free() ? std::chrono::nanoseconds::zero() : options_.time.spin_limit,
        .interval = interval,
        .something_may_come = !nothing_to_come()};
    const bool wait = devices_.everyone_waits(actor_threads(), processes_.held(), !is_free(), look);
    if (look.busy_process != 0) {
        note_busy(look.busy_process, look.busy);
    }
    if (!look.spinner.empty()) {
        note_spinner(look.spinner);
    }
    return wait;
}

// A thread that has slept for a time while something was to come: on a busy machine time has moved
// meanwhile or not.
void Server::note_nap(RemoteClient& client, std::uint32_t actor) {
    std::atomic<std::uint32_t>& word = client.area().actors[actor].nap;
    if (word.load(std::memory_order_acquire) == 0) [[likely]] {
        return;
    }
    const auto nap = static_cast<NapWord>(word.exchange(0, std::memory_order_acquire));
    if (nap == NapWord::kPosted || !simulation_->loop().empty()) {
        marks_.set(Mark::kSleptForTime, client.host());
    }
}

// Takes over what the client itself has found.
void Server::take_marks(RemoteClient& client) {
    if (const std::string actor = client.acted_early(); !actor.empty()) {
        marks_.set(Mark::kWentOnEarly, actor);
    }
    if (const std::string actor = client.acted_by_clock(); !actor.empty()) {
        marks_.set(Mark::kReadClock, actor);
    }
    if (const std::string shared = client.shared_object(); !shared.empty()) {
        marks_.set(Mark::kSharedObject, fmt::format("{} of {}", shared, client.host()));
    }
}

void Server::note_signal(RemoteClient& client, std::uint32_t actor) {
    if (client.watch(actor).was_woken_by_signal() && !marks_.has(Mark::kWokenBySignal)) {
        marks_.set(Mark::kWokenBySignal, client.describe(actor));
    }
}

}  // namespace simverbs
