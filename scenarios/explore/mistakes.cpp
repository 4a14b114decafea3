#include "scenarios/explore/mistakes.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

namespace scenarios {

namespace {

// Returns the host that "h0 | " names at the begin of a line, and removes that; "": none.
std::string_view take_host(std::string_view& line) {
    constexpr std::string_view kBar = " | ";
    const std::size_t bar = line.find(kBar);
    if (bar == std::string_view::npos || line.find(' ') != bar) {
        return {};
    }
    const std::string_view host = line.substr(0, bar);
    line.remove_prefix(bar + kBar.size());
    return host;
}

std::optional<simverbs::Misuse> misuse_in(std::string_view line) {
    constexpr std::string_view kBegin = "simverbs: ";
    if (!line.starts_with(kBegin)) {
        return std::nullopt;
    }
    line.remove_prefix(kBegin.size());
    const std::string_view name = line.substr(0, line.find(": "));
    const auto* const row = std::ranges::find(simverbs::kMisuses, name, &simverbs::MisuseRow::name);
    return row == simverbs::kMisuses.end() ? std::nullopt : std::optional(row->misuse);
}

}  // namespace

std::vector<Mistake> mistakes_in(const std::string& output) {
    std::vector<Mistake> mistakes;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        std::string_view rest = line;
        const std::string_view host = take_host(rest);
        if (const auto misuse = misuse_in(rest)) {
            Mistake mistake{*misuse, line, std::string(host)};
            if (std::ranges::none_of(
                    mistakes, [&mistake](const Mistake& each) { return each.is_as(mistake); })) {
                mistakes.push_back(std::move(mistake));
            }
        }
    }
    return mistakes;
}

Excuse excuse_of(simverbs::Misuse misuse) {
    using enum simverbs::Misuse;
    switch (misuse) {
        case kNotDestroyed:
            return Excuse::kEnd;
        case kAttributeMissing:
        case kAttributeSuperfluous:
        case kOnlyUnsignaledSends:
        case kKeyAfterDereg:
        case kBufferChanged:
        case kBufferDeregistered:
            return Excuse::kFailure;
        case kPolledOnce:
            return Excuse::kNews;
        case kNoReceiveAtRtr:
        case kCompletionsUnread:
            return Excuse::kAny;
        case kEmptySegment:
        case kUndefinedField:
        case kEventsNotAcknowledged:
        case kEmptyReceiveSegment:
        case kDestroyedTwice:
        case kUsedAfterDestroy:
            return Excuse::kNone;
    }
    return Excuse::kNone;
}

}  // namespace scenarios
