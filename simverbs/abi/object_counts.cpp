#include "simverbs/abi/object_counts.hpp"

#include <fmt/format.h>

namespace simverbs::abi {
namespace {

std::size_t first_of(std::string_view kind) {
    const auto* const first =
        std::ranges::find(kCountedCommands, kind, [](const auto& row) { return row.kind; });
    return static_cast<std::size_t>(first - kCountedCommands.begin());
}

// "2 blocks of device memory".
std::string counted(std::int32_t count, std::string_view kind) {
    const std::size_t noun_end = std::min(kind.find(" of "), kind.size());
    return fmt::format("{} {}{}{}", count, kind.substr(0, noun_end), count == 1 ? "" : "s",
                       kind.substr(noun_end));
}

}  // namespace

void ObjectCounts::note(CommandCode code) {
    const auto* const row =
        std::ranges::find(kCountedCommands, code, [](const auto& each) { return each.code; });
    counts_[first_of(row->kind)].fetch_add(row->change, std::memory_order_relaxed);
}

bool ObjectCounts::any() const {
    return std::ranges::any_of(
        counts_, [](const auto& count) { return count.load(std::memory_order_relaxed) > 0; });
}

std::string ObjectCounts::describe() const {
    std::string text;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        if (const std::int32_t count = counts_[i].load(std::memory_order_relaxed); count > 0) {
            text += ", " + counted(count, kCountedCommands[i].kind);
        }
    }
    return text;
}

}  // namespace simverbs::abi
