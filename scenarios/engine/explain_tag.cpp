#include "scenarios/engine/explain_tag.hpp"

#include <fmt/core.h>

namespace scenarios {

// The message of a tagged receive: the last that took the tag of that handle, which is the
// index of its completion; without one, the last that was looked up.
std::string describe_tag(std::span<const Record> records, const Record& completion) {
    const Record* last = nullptr;
    const Record* own = nullptr;
    for (const Record& record : records) {
        if (record.time_ps > completion.time_ps || record.name != "tag" ||
            record.node != completion.node || record.number("qpn") != completion.number("qpn")) {
            continue;
        }
        last = &record;
        if (record.text("outcome") == "matched" &&
            record.number("handle") == completion.number("index")) {
            own = &record;
        }
    }
    const Record* const found = own != nullptr ? own : last;
    if (found == nullptr) {
        return {};
    }
    const std::string_view outcome = found->text("outcome");
    std::string what = "has no tag and took an ordinary receive";
    if (outcome == "matched") {
        what = fmt::format("matched the tag of handle {}", found->number("handle"));
    } else if (outcome == "unexpected") {
        what = "matched no tag of the list and took an ordinary receive";
    } else if (outcome == "not in use") {
        what =
            "took an ordinary receive: the tag that it matches was added before software had "
            "reported all unexpected messages";
    }
    return fmt::format("    {}: a message with tag {:#x} {}.\n", time_text(found->time_ps),
                       found->number("tag"), what);
}

}  // namespace scenarios
