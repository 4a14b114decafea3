// Which threads used an object of verbs (a queue, a channel) within one turn of the world: the time
// between two instants at which every actor waits. What two of them do with it in one turn has the
// order in which they happened to come, unless one is known to have begun after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "simverbs/threads/thread_roster.hpp"

namespace simverbs {

enum class Use : std::uint8_t {
    kLook,  // found nothing, and changed nothing
    kTake,  // changed it: posted, polled an entry, read an event
};

// Guarded by the lock of the object. An object that nobody used takes a pointer's room.
class ObjectUse {
  public:
    // Notes a use by `thread`. The thread whose use in the same turn nothing orders with this one,
    // by number; 0: none.
    std::uint64_t note(Use use, std::uint64_t turn, const ThreadEntry& thread) {
        if (last_ == nullptr) [[unlikely]] {
            last_ = std::make_unique<Last>();
        }
        auto& [looked, taken, several_looked] = *last_;
        const auto races = [&](const Stamp& stamp) {
            return stamp.turn == turn && stamp.by.thread != thread.number &&
                   !thread.comes_after(stamp.by);
        };
        std::uint64_t other = races(taken) ? taken.by.thread : 0;
        if (other == 0 && use == Use::kTake && looked.turn == turn &&
            (several_looked || races(looked))) {
            other = looked.by.thread;
        }
        several_looked = looked.turn == turn && (several_looked || races(looked));
        const Stamp now{turn, {thread.number, thread.segment}};
        looked = now;
        if (use == Use::kTake) {
            taken = now;
        }
        return other;
    }

  private:
    struct Stamp {
        std::uint64_t turn = 0;  // 0: never
        ThreadPoint by;
    };
    struct Last {
        Stamp looked;
        Stamp taken;
        bool several_looked = false;  // in the turn of `looked`
    };
    std::unique_ptr<Last> last_;
};

}  // namespace simverbs
