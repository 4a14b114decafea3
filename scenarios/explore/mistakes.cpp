#include "scenarios/explore/mistakes.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

namespace scenarios {

std::vector<Mistake> mistakes_in(const std::string& output) {
    constexpr std::string_view kBegin = "simverbs: ";
    std::vector<Mistake> mistakes;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t colon =
            line.starts_with(kBegin) ? line.find(": ", kBegin.size()) : std::string::npos;
        if (colon == std::string::npos) {
            continue;
        }
        const std::string_view name =
            std::string_view(line).substr(kBegin.size(), colon - kBegin.size());
        const auto* const row =
            std::ranges::find(simverbs::kMisuses, name, &simverbs::MisuseRow::name);
        if (row != simverbs::kMisuses.end() &&
            std::ranges::find(mistakes, row->misuse, &Mistake::misuse) == mistakes.end()) {
            mistakes.push_back({row->misuse, std::move(line)});
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
        case kPolledOnce:
            return Excuse::kFailure;
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
