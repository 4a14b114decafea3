// The words of faults, from the tables that the library reads.
#pragma once

#include <array>
#include <string_view>

#include "simverbs/model/fault_actions.hpp"
#include "simverbs/model/fault_values.hpp"

namespace scenarios {

// The names of a table's rows, in their order.
template <class Row, std::size_t Rows>
constexpr std::array<std::string_view, Rows> names_of(const std::array<Row, Rows>& table) {
    std::array<std::string_view, Rows> names{};
    for (std::size_t i = 0; i < Rows; ++i) {
        names[i] = table[i].name;
    }
    return names;
}

inline constexpr auto kActionWords = names_of(simverbs::kFaultActions);
inline constexpr auto kTriggerWords = names_of(simverbs::kFaultTriggers);
inline constexpr auto kDirectionWords = names_of(simverbs::kPacketDirections);
inline constexpr auto kFieldWords = names_of(simverbs::kHeaderFields);
inline constexpr auto kNakWords = names_of(simverbs::kFaultNaks);

}  // namespace scenarios
