// The counters of a run: the trace records of a node.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "scenarios/engine/observation.hpp"

namespace scenarios {

// Which of the records, and what is added up.
enum class Counted : std::uint8_t {
    kEach,
    kRetransmissions,
    kNaks,
    kRnrNaks,
    kBytes,
    kFailed,  // neither SUCCESS nor flushed
    kFlushed,
};
struct CounterRow {
    std::string_view name;
    std::string_view record;
    Counted counted = Counted::kEach;
};
inline constexpr auto kCounters = std::to_array<CounterRow>({
    {"packets_sent", "packet_sent"},
    {"retransmissions", "packet_sent", Counted::kRetransmissions},
    {"naks_sent", "packet_sent", Counted::kNaks},
    {"rnr_naks_sent", "packet_sent", Counted::kRnrNaks},
    {"packets_discarded", "packet_discarded"},
    {"frames_dropped", "frame_dropped"},
    {"messages_delivered", "delivered"},
    {"bytes_delivered", "delivered", Counted::kBytes},
    {"messages_dropped", "dropped"},
    {"completions", "completion"},
    {"completions_failed", "completion", Counted::kFailed},
    {"completions_flushed", "completion", Counted::kFlushed},
    {"async_events", "async_event"},
    {"rate_reductions", "rate_reduced"},
    {"faults_fired", "fault_fired"},
    {"credit_loops", "credit_loop"},
});
inline constexpr auto kCounterWords = [] {
    std::array<std::string_view, kCounters.size()> words{};
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = kCounters[i].name;
    }
    return words;
}();

// Returns what `record` adds to a counter.
std::uint64_t counted(const CounterRow& row, const Record& record);

}  // namespace scenarios
