// A state machine of few states and events as rows, and the look-up that is made of them at compile
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace simverbs {

template <class State, class Event>
struct Transition {
    State from;
    Event event;
    State to;
    std::string_view source;  // where the rule is written
};

// Returns true if no two rows answer the same question.
template <class State, class Event>
consteval bool rows_are_unambiguous(std::span<const Transition<State, Event>> rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t j = i + 1; j < rows.size(); ++j) {
            if (rows[i].from == rows[j].from && rows[i].event == rows[j].event) {
                return false;
            }
        }
    }
    return true;
}

// Says where an event leads, in one look-up. An event that has no row in a state cannot happen in
// it.
template <class State, class Event, std::size_t kStates, std::size_t kEvents>
class TransitionTable {
  public:
    consteval explicit TransitionTable(std::span<const Transition<State, Event>> rows) {
        next_.fill(kNowhere);
        for (const Transition<State, Event>& row : rows) {
            next_[place(row.from, row.event)] = static_cast<std::uint8_t>(row.to);
        }
    }

    [[nodiscard]] constexpr std::optional<State> next(State from, Event event) const {
        const std::uint8_t to = next_[place(from, event)];
        return to == kNowhere ? std::nullopt : std::optional(static_cast<State>(to));
    }

  private:
    static constexpr std::uint8_t kNowhere = 0xFF;
    static constexpr std::size_t place(State from, Event event) {
        return static_cast<std::size_t>(from) * kEvents + static_cast<std::size_t>(event);
    }

    std::array<std::uint8_t, kStates * kEvents> next_{};
};

}  // namespace simverbs
