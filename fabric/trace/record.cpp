#include "fabric/trace/record.hpp"

#include <algorithm>

namespace fabric::trace {

const Field* TraceRecord::find(std::string_view field) const {
    const auto found = std::find_if(fields.begin(), fields.end(),
                                    [field](const Field& f) { return f.name == field; });
    return found == fields.end() ? nullptr : &*found;
}

std::uint64_t TraceRecord::number(std::string_view field) const {
    const Field* const found = find(field);
    return found == nullptr ? 0 : found->number;
}

std::string_view TraceRecord::text(std::string_view field) const {
    const Field* const found = find(field);
    return found == nullptr ? std::string_view{} : std::string_view(found->text);
}

}  // namespace fabric::trace
