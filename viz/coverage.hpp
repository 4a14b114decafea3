// How much of what the model has a set of traces reached: moves of every state machine, opcodes on
// the wire, completion statuses, asynchronous events, causes, reasons of loss.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "viz/state_machine.hpp"
#include "viz/trace_file.hpp"

namespace simverbs::viz {

struct Covered {
    std::string name;
    std::uint64_t count = 0;
};

struct CoverageGroup {
    std::string name;
    std::vector<Covered> items;

    [[nodiscard]] std::size_t reached() const;
};

class Coverage {
  public:
    Coverage();

    void add(const Trace& trace);
    [[nodiscard]] std::vector<CoverageGroup> groups() const;

    // For people: a line a group, then what was not reached.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] std::string json() const;

  private:
    CoverageGroup& group(std::string_view name);
    void count(std::string_view group, std::string_view item);

    std::vector<StateMachine> machines_;
    std::vector<CoverageGroup> groups_;
};

}  // namespace simverbs::viz
