// Counts the objects of a device that are neither queue pairs nor completion queues, by the
// commands that make and end them: for programs that leave some behind. Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "simverbs/hca/command_code.hpp"

namespace simverbs::abi {

struct CountedCommand {
    CommandCode code;
    int change;
    std::string_view kind;  // the same for all of a kind, which stand together
};
inline constexpr auto kCountedCommands = std::to_array<CountedCommand>({
    {CommandCode::kAllocatePd, 1, "protection domain"},
    {CommandCode::kDeallocatePd, -1, "protection domain"},
    {CommandCode::kRegisterMr, 1, "memory region"},
    {CommandCode::kAllocateNullMr, 1, "memory region"},
    {CommandCode::kRegisterDmMr, 1, "memory region"},
    {CommandCode::kDeregisterMr, -1, "memory region"},
    {CommandCode::kAllocateMw, 1, "memory window"},
    {CommandCode::kDeallocateMw, -1, "memory window"},
    {CommandCode::kAllocateDm, 1, "block of device memory"},
    {CommandCode::kFreeDm, -1, "block of device memory"},
    {CommandCode::kCreateChannel, 1, "completion channel"},
    {CommandCode::kDestroyChannel, -1, "completion channel"},
    {CommandCode::kCreateAh, 1, "address handle"},
    {CommandCode::kDestroyAh, -1, "address handle"},
    {CommandCode::kCreateSrq, 1, "shared receive queue"},
    {CommandCode::kDestroySrq, -1, "shared receive queue"},
    {CommandCode::kOpenXrcd, 1, "XRC domain"},
    {CommandCode::kCloseXrcd, -1, "XRC domain"},
    {CommandCode::kCreateFlow, 1, "flow rule"},
    {CommandCode::kDestroyFlow, -1, "flow rule"},
    {CommandCode::kCreateWq, 1, "work queue"},
    {CommandCode::kDestroyWq, -1, "work queue"},
    {CommandCode::kCreateIndirectionTable, 1, "indirection table"},
    {CommandCode::kDestroyIndirectionTable, -1, "indirection table"},
    {CommandCode::kCreateCounters, 1, "set of counters"},
    {CommandCode::kDestroyCounters, -1, "set of counters"},
    {CommandCode::kCreateCompletionCounter, 1, "completion counter"},
    {CommandCode::kDestroyCompletionCounter, -1, "completion counter"},
});

constexpr bool is_counted(CommandCode code) {
    return std::ranges::any_of(kCountedCommands,
                               [code](const CountedCommand& row) { return row.code == code; });
}

class ObjectCounts {
  public:
    // After a command that is counted and has succeeded.
    void note(CommandCode code);
    [[nodiscard]] bool any() const;
    // ", 1 protection domain, 2 memory regions"; "" where nothing is left.
    [[nodiscard]] std::string describe() const;

  private:
    // A place a row: those of the first row of each kind count.
    std::array<std::atomic<std::int32_t>, kCountedCommands.size()> counts_{};
};

}  // namespace simverbs::abi
