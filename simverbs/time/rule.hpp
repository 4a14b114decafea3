// The rule of time (DESIGN section 4): decides when virtual time may advance, and how far.
//
// The rule has no side effects and no state. The conductor of an embedded world and the server of a
// served world answer its questions and carry out its decisions.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>

#include "fabric/core/sim_time.hpp"

#include "simverbs/time/schedule.hpp"
#include "simverbs/time/thread_state.hpp"

namespace simverbs {

// ---- one actor

// Where an actor is, according to the library's own records.
enum class Whereabouts : std::uint8_t {
    kOwnCode,       // in the program's code; the state of its thread decides
    kEntering,      // entering or leaving the library, possibly asleep on a lock there
    kStarting,      // created, but its thread has not started
    kWaiting,       // waiting in the library, with nothing new to process
    kCommanding,    // waiting in the library for its command to be executed
    kJoining,       // waiting for the end of another actor that still takes part
    kStopped,       // on a host whose programs a fault has stopped
    kNeverStarted,  // its thread could not be created
    kEnded,         // its thread has ended, and an earlier look has found that
};

// Says if time may advance without an actor.
enum class Hold : std::uint8_t {
    kHolds,          // no
    kPasses,         // yes
    kPassesForTime,  // yes, at the pace of the wall clock: it sleeps with a time limit
    // Yes, and the run is marked: it polls memory that only an event can change. Or it computes,
    // so time does not jump far.
    kPassesSpinning,
};

// Judges an actor by its whereabouts. Actors in their own code hold until their thread is looked
// at.
constexpr Hold judge(Whereabouts where) {
    switch (where) {
        case Whereabouts::kOwnCode:
        case Whereabouts::kEntering:
        case Whereabouts::kStarting:
            return Hold::kHolds;
        case Whereabouts::kWaiting:
        case Whereabouts::kCommanding:
        case Whereabouts::kJoining:
        case Whereabouts::kStopped:
        case Whereabouts::kNeverStarted:
        case Whereabouts::kEnded:
            return Hold::kPasses;
    }
    return Hold::kHolds;
}

// Judges an actor in its own code by the state of its thread. `something_may_come`: events are
// pending, or work requests or commands have not been taken yet. Otherwise no memory can change, so
// a thread that uses the processor computes.
constexpr Hold judge(ThreadState found, bool something_may_come) {
    switch (found) {
        case ThreadState::kRuns:
            return Hold::kHolds;
        case ThreadState::kAsleep:
            return Hold::kPasses;
        case ThreadState::kAsleepForTime:
            return Hold::kPassesForTime;
        case ThreadState::kSpins:
            return something_may_come ? Hold::kPassesSpinning : Hold::kHolds;
        case ThreadState::kEnded:
            // Holds once: a thread that joins this one may have been looked at before this one
            // ended, and may have been woken since.
            return Hold::kHolds;
    }
    return Hold::kHolds;
}

// A jump as long as this may pass time limits. A thread that spins may compute, and then its peers
// wait in vain: such a jump takes as long on the wall clock as it would without it. Free schedule:
// a thread that was found polling may have lost its processor since, with news that the library
// does not see, as a message in a socket: before such a jump all that poll are made to poll once
// more.
inline constexpr fabric::SimDuration kLongJump = std::chrono::microseconds(100);

// Canonical: a jump as long as this may be that of a time limit, of retransmission for example:
// before it whoever has polled through a step is let go on once.
inline constexpr fabric::SimDuration kFarJump = std::chrono::microseconds(4);

// ---- all actors

// Actors that are expected to arrive.
enum class Coming : std::uint8_t {
    kNobody,
    kHolds,         // time must not advance before they arrive
    kSleepForTime,  // one of them sleeps with a time limit; the others may be passed
};

// Commands of actors that wait in the library.
enum class Commands : std::uint8_t {
    kNone,
    kCanRun,
    kAwaitOthers,  // an actor that may give a command about the same devices is expected
};

// The questions that the rule asks. It asks in this order and no further than necessary, because
// looking at threads and serving sockets are expensive.
template <class W>
concept TimeKeeper = requires(W& world) {
    { world.schedule() } -> std::same_as<Schedule>;
    // Returns true if judge() returns kHolds for any actor.
    { world.someone_holds() } -> std::same_as<bool>;
    // Hands posted work requests to the devices. True if an actor may run because of that.
    { world.take_posts() } -> std::same_as<bool>;
    { world.commands() } -> std::same_as<Commands>;
    { world.event_is_left() } -> std::same_as<bool>;
    { world.coming() } -> std::same_as<Coming>;
    // Returns true if someone_holds() or coming() has found a thread that sleeps with a time limit.
    { world.someone_sleeps_for_time() } -> std::same_as<bool>;
    // Returns true if they have passed a thread that spins, and the next event is not within
    // kLongJump.
    { world.spinner_may_compute() } -> std::same_as<bool>;
};

enum class Move : std::uint8_t {
    kStand,      // do nothing
    kLookAgain,  // an actor may run now: ask again
    kCommands,   // execute the commands that wait, in order
    kDeliver,    // no event is pending: deliver what waits for buffer space, let polls return empty
    kWalk,       // run the events of the next instant, if Pace allows it
    kJump,       // run events until something happens that an actor may wait for
};

enum class Why : std::uint8_t {
    kSomeoneRuns,
    kSomeoneGoesOn,
    kSomeoneIsExpected,
    kSomeoneSleepsForTime,
    kSomeoneMayCompute,
    kEveryoneWaits,
};

struct Decision {
    Move move;
    Why why;
    friend constexpr bool operator==(Decision, Decision) = default;
};

// Free schedule: while an actor runs, time advances at the pace of the wall clock. Commands are
// executed as they arrive.
template <TimeKeeper W>
Decision decide_freely(W& world) {
    if (!world.event_is_left()) {
        return {Move::kDeliver, Why::kEveryoneWaits};  // harmless to actors that run
    }
    if (world.someone_holds()) {
        return {Move::kWalk, Why::kSomeoneRuns};
    }
    if (world.take_posts()) {
        return {Move::kWalk, Why::kSomeoneGoesOn};
    }
    if (world.coming() == Coming::kHolds) {
        return {Move::kWalk, Why::kSomeoneIsExpected};
    }
    if (world.someone_sleeps_for_time()) {
        return {Move::kWalk, Why::kSomeoneSleepsForTime};
    }
    if (world.spinner_may_compute()) {
        return {Move::kWalk, Why::kSomeoneMayCompute};
    }
    return {Move::kJump, Why::kEveryoneWaits};
}

// Canonical and serial schedules: time stands while an actor runs.
template <TimeKeeper W>
Decision decide_in_turn(W& world) {
    if (world.someone_holds()) {
        return {Move::kStand, Why::kSomeoneRuns};
    }
    if (world.take_posts()) {
        return {Move::kLookAgain, Why::kSomeoneGoesOn};
    }
    if (const Commands commands = world.commands(); commands != Commands::kNone) {
        return commands == Commands::kCanRun ? Decision{Move::kCommands, Why::kEveryoneWaits}
                                             : Decision{Move::kStand, Why::kSomeoneIsExpected};
    }
    if (!world.event_is_left()) {
        return {Move::kDeliver, Why::kEveryoneWaits};
    }
    if (world.coming() == Coming::kHolds) {
        return {Move::kStand, Why::kSomeoneIsExpected};
    }
    if (world.someone_sleeps_for_time()) {
        return {Move::kWalk, Why::kSomeoneSleepsForTime};
    }
    if (world.spinner_may_compute()) {
        return {Move::kWalk, Why::kSomeoneMayCompute};
    }
    return {Move::kJump, Why::kEveryoneWaits};
}

template <TimeKeeper W>
Decision decide(W& world) {
    return world.schedule() == Schedule::kFree ? decide_freely(world) : decide_in_turn(world);
}

}  // namespace simverbs
