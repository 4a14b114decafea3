// Marks of a run: whether it would repeat itself, and why not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace simverbs {

// Why a run is not to be trusted to repeat itself.
enum class Mark : std::uint8_t {
    kUnnamedActorsRaced,  // two threads that nothing orders acted in one step
    kSpunOnMemory,
    kCameLate,  // an actor or process that nobody knew of, when time had moved already
    kSharedObject,
    kSleptForTime,  // virtual time kept pace with the wall while it slept
    kReadClock,
    kWentOnEarly,  // its poll ended while time stood for a thread that used its processor
    kWokenBySignal,
    kScheduledFree,
    kChangedByOperator,
    kHungUpOn,  // a client of whose time or sense the server had enough
    kCount,
};

class RunMarks {
  public:
    // `who`: of several the first is kept. Thread-compatible: the world is held.
    void set(Mark mark, std::string_view who = {});
    [[nodiscard]] bool has(Mark mark) const { return set_[static_cast<std::size_t>(mark)]; }

    // "deterministic", or which marks and why.
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] bool deterministic() const;

    bool endless = false;  // a million events without a call; not a mark

  private:
    static constexpr auto kMarks = static_cast<std::size_t>(Mark::kCount);
    std::array<bool, kMarks> set_{};
    std::array<std::string, kMarks> who_;
};

}  // namespace simverbs
