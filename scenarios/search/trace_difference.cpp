#include "scenarios/search/trace_difference.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "fabric/trace/event_info.hpp"

#include "scenarios/engine/explain.hpp"

namespace scenarios {

namespace {

constexpr std::size_t kCommon = 3;  // records of before that are shown

struct Counted {
    std::size_t line;
    std::string text;
};

bool counts(const Record& record) {
    using fabric::trace::Category;
    for (int i = 0; i <= static_cast<int>(Category::kWarning); ++i) {
        const auto category = static_cast<Category>(i);
        if (to_string(category) == record.category) {
            return fabric::trace::kRunCategories.contains(category);
        }
    }
    return false;
}

std::string text_of(const Record& record) {
    std::string text =
        fmt::format("{}ps {} {} {}", record.time_ps, record.node, record.category, record.name);
    for (const Record::Field& field : record.fields) {
        text += fmt::format(" {}={}", field.name, field.text);
    }
    return text;
}

fabric::Outcome<std::vector<Counted>> read(const std::string& file) {
    const auto records = read_trace(file);
    if (!records) {
        return fabric::Failure(records.error());
    }
    std::vector<Counted> counted;
    for (std::size_t i = 0; i < records->size(); ++i) {
        if (counts((*records)[i])) {
            counted.push_back({i + 2, text_of((*records)[i])});  // behind the schema
        }
    }
    return counted;
}

}  // namespace

fabric::Outcome<std::optional<TraceDifference>> first_difference(const std::string& one,
                                                                 const std::string& other) {
    const auto a = read(one);
    if (!a) {
        return fabric::Failure(a.error());
    }
    const auto b = read(other);
    if (!b) {
        return fabric::Failure(b.error());
    }
    const auto [in_a, in_b] = std::ranges::mismatch(*a, *b, {}, &Counted::text, &Counted::text);
    if (in_a == a->end() && in_b == b->end()) {
        return std::nullopt;
    }
    TraceDifference found;
    const auto at = static_cast<std::size_t>(in_a - a->begin());
    found.record = at + 1;
    const std::string end = "nothing more: it has ended";
    found.one = in_a == a->end() ? end : in_a->text;
    found.other = in_b == b->end() ? end : in_b->text;
    found.line_of_one = in_a == a->end() ? 0 : in_a->line;
    found.line_of_other = in_b == b->end() ? 0 : in_b->line;
    for (std::size_t i = at - std::min(at, kCommon); i < at; ++i) {
        found.before.push_back((*a)[i].text);
    }
    return found;
}

}  // namespace scenarios
