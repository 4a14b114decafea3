// Notices a world that goes nowhere: its actors call nothing but empty polls, and either no event
// is left or events never end (DESIGN section 4). Each is found once in a world.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace simverbs {

enum class Stall : std::uint8_t {
    kNone,
    kNothingLeft,  // whatever is waited for will not come by itself
    kEndless,      // a retry without limit, say
};

constexpr std::string_view to_string(Stall stall) {
    switch (stall) {
        case Stall::kNone:
            break;
        case Stall::kNothingLeft:
            return "everyone waits and no event is left";
        case Stall::kEndless:
            return "a million events came while nobody called anything but empty polls";
    }
    return "";
}

class StallWatch {
  public:
    // Tests poll an empty queue on purpose; hardly as often as this with nothing in between.
    static constexpr std::uint32_t kEmptySteps = 1000;
    static constexpr std::uint64_t kEndlessEvents = 1'000'000;

    // `empty_steps` in a row without an event are kNothingLeft.
    explicit StallWatch(std::uint32_t empty_steps = kEmptySteps) : most_empty_steps_(empty_steps) {}

    // Somebody posted or commanded something.
    void called() {
        empty_steps_ = 0;
        events_ = 0;
    }
    // Everyone waited, and a step ran that many events; `deliveries` of completions so far.
    Stall stepped(std::size_t events, std::uint64_t deliveries) {
        if (std::exchange(deliveries_, deliveries) != deliveries) {
            called();
        }
        events_ += events;
        empty_steps_ = events > 0 ? 0 : empty_steps_ + 1;
        if (empty_steps_ >= most_empty_steps_ && !std::exchange(found_nothing_left_, true)) {
            return Stall::kNothingLeft;
        }
        if (events_ > kEndlessEvents && !std::exchange(found_endless_, true)) {
            return Stall::kEndless;
        }
        return Stall::kNone;
    }

  private:
    std::uint32_t most_empty_steps_;
    std::uint32_t empty_steps_ = 0;
    std::uint64_t events_ = 0;
    std::uint64_t deliveries_ = 0;
    bool found_nothing_left_ = false;
    bool found_endless_ = false;
};

}  // namespace simverbs
