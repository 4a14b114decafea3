// A run as those see it who judge it and put faults into it, whoever wrote its programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/engine/counters.hpp"
#include "scenarios/engine/observation.hpp"

namespace scenarios {

struct Memory;

// A queue pair as a fault names it.
struct QueuePairPlace {
    const char* host = nullptr;     // lives as long as the run
    std::uint32_t number = 0;       // ibv_qp.qp_num; 0: by its place
    std::uint32_t nth_of_host = 0;  // from 1
};

enum class NamedObject : std::uint8_t { kCompletionQueue, kSharedReceives, kMemory };

class Observed {
  public:
    virtual ~Observed() = default;

    // Virtual time, picoseconds.
    [[nodiscard]] virtual std::int64_t now() const = 0;
    [[nodiscard]] virtual std::uint64_t digest() const = 0;
    // So far, in order.
    [[nodiscard]] virtual const std::vector<Completed>& completed() const = 0;
    [[nodiscard]] virtual const std::vector<AsyncEventSeen>& events() const = 0;
    [[nodiscard]] virtual const std::vector<CmEventSeen>& cm_events() const = 0;
    [[nodiscard]] virtual const std::vector<Record>& records() const = 0;
    [[nodiscard]] virtual const std::vector<Failure>& broken_invariants() const = 0;
    [[nodiscard]] virtual std::uint64_t counted(const CounterRow& row,
                                                std::string_view node) const = 0;
    // The state of an end: "RTS", or why it is not known.
    [[nodiscard]] virtual std::string state_of(std::string_view end) const = 0;
    // nullptr: the host has none of that name.
    [[nodiscard]] virtual const Memory* memory_of(std::string_view host,
                                                  std::string_view memory) const = 0;
    // Nothing: there is none, or not yet.
    [[nodiscard]] virtual std::optional<QueuePairPlace> place_of(std::string_view end) const = 0;
    // The end of that queue pair, "h0/c"; "": it is none that the run knows.
    [[nodiscard]] virtual std::string end_of(std::string_view node, std::uint64_t qpn) const = 0;
    // The end that it is connected to. The same.
    [[nodiscard]] virtual std::string peer_of(std::string_view node, std::uint64_t qpn) const = 0;
    // The id of the request that was posted at that place of a queue of the end. Nothing: it is not
    // known.
    [[nodiscard]] virtual std::optional<std::uint64_t> posted_id(std::string_view /*end*/,
                                                                 bool /*is_receive*/,
                                                                 std::uint64_t /*place*/) const {
        return std::nullopt;
    }
    // Returns the number by which the control API knows the object.
    [[nodiscard]] virtual std::optional<std::uint32_t> number_of(std::string_view host,
                                                                 NamedObject kind,
                                                                 std::string_view name) const = 0;
};

}  // namespace scenarios
