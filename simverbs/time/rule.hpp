// The rule of time (DESIGN section 4): when virtual time may move, and how far.
//
// It decides from what it is told, and does nothing itself: the conductor of an embedded world and
// the server of a served one tell it what they see, and carry out what it says.
#pragma once

#include <concepts>
#include <cstdint>

#include "simverbs/time/schedule.hpp"
#include "simverbs/time/thread_state.hpp"

namespace simverbs {

// ---- of one actor

// Where an actor is, as far as the library knows by itself.
enum class Whereabouts : std::uint8_t {
    kOwnCode,    // only a look at its thread tells more
    kInDoor,     // on its way into the library or out of it, perhaps asleep for a lock there
    kOnItsWay,   // created, and has not begun
    kWaits,      // in the library, and there is nothing new for it
    kCommands,   // in the library, with a command that has its turn when all wait
    kHeld,       // a fault has stopped the programs of its host
    kNeverCame,  // could not be created
    kEnded,      // and was seen to have ended before
};

// Whether time may move without it.
enum class Hold : std::uint8_t {
    kHolds,
    kPasses,
    kPassesForTime,   // it sleeps for a time: virtual time keeps pace with the wall
    kPassesSpinning,  // it counts as waiting for memory to change; the run is marked
};

// Of an actor that is not in its own code.
constexpr Hold judge(Whereabouts where) {
    switch (where) {
        case Whereabouts::kOwnCode:
        case Whereabouts::kInDoor:
        case Whereabouts::kOnItsWay:
            return Hold::kHolds;
        case Whereabouts::kWaits:
        case Whereabouts::kCommands:
        case Whereabouts::kHeld:
        case Whereabouts::kNeverCame:
        case Whereabouts::kEnded:
            return Hold::kPasses;
    }
    return Hold::kHolds;
}

// Of one that is, by what a look found. `something_may_come`: an event is left, or what was posted
// or commanded and not taken; else no memory will change, and who spins computes.
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
            // This once: who joins it may have been looked at before, and has been woken since.
            return Hold::kHolds;
    }
    return Hold::kHolds;
}

// ---- of all

// Actors that are known to come and are not here.
enum class Coming : std::uint8_t {
    kNobody,
    kHolds,         // time stands for them
    kSleepForTime,  // nobody else holds, and one of them sleeps for a time
};

// What whoever moves time is asked, in this order and no more of it than matters: looks cost.
template <class W>
concept TimeKeeper = requires(W& world) {
    { world.schedule() } -> std::same_as<Schedule>;
    // Whether judge() says of any actor that it holds.
    { world.someone_holds() } -> std::same_as<bool>;
    // Takes what they have posted, when nobody holds. True: somebody may go on by that.
    { world.take_posts() } -> std::same_as<bool>;
    { world.command_waits() } -> std::same_as<bool>;
    { world.event_is_left() } -> std::same_as<bool>;
    { world.coming() } -> std::same_as<Coming>;
    // At the looks that someone_holds() and coming() have made.
    { world.someone_sleeps_for_time() } -> std::same_as<bool>;
};

enum class Move : std::uint8_t {
    kStand,
    kLookAgain,  // somebody may run now
    kCommands,   // run what was commanded, in order
    kDeliver,    // no event: what waits for room goes out, and polls return empty
    kWalk,       // the next instant, where Pace allows it
    kJump,       // on and on to what somebody may wait for
};

enum class Why : std::uint8_t {
    kSomeoneRuns,
    kSomeoneGoesOn,
    kSomeoneIsExpected,
    kSomeoneSleepsForTime,
    kEveryoneWaits,
};

struct Decision {
    Move move;
    Why why;
    friend constexpr bool operator==(Decision, Decision) = default;
};

// Free: while anybody runs, time keeps pace with the wall. Commands are run as they come.
template <TimeKeeper W>
Decision decide_freely(W& world) {
    if (!world.event_is_left()) {
        return {Move::kDeliver, Why::kEveryoneWaits};  // whoever runs: nothing is done to them
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
    return {Move::kJump, Why::kEveryoneWaits};
}

// Canonical and serial: while anybody runs, time stands.
template <TimeKeeper W>
Decision decide_in_turn(W& world) {
    if (world.someone_holds()) {
        return {Move::kStand, Why::kSomeoneRuns};
    }
    if (world.take_posts()) {
        return {Move::kLookAgain, Why::kSomeoneGoesOn};
    }
    if (world.command_waits()) {
        return {Move::kCommands, Why::kEveryoneWaits};
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
    return {Move::kJump, Why::kEveryoneWaits};
}

template <TimeKeeper W>
Decision decide(W& world) {
    return world.schedule() == Schedule::kFree ? decide_freely(world) : decide_in_turn(world);
}

}  // namespace simverbs
