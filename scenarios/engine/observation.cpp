#include "scenarios/engine/observation.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace scenarios {

namespace {

const Record::Field* find(const Record& record, std::string_view name) {
    const auto found = std::ranges::find(record.fields, name, &Record::Field::name);
    return found == record.fields.end() ? nullptr : &*found;
}

}  // namespace

std::uint64_t Record::number(std::string_view field) const {
    const Field* const found = find(*this, field);
    return found == nullptr ? 0 : found->number;
}

std::string_view Record::text(std::string_view field) const {
    const Field* const found = find(*this, field);
    return found == nullptr ? std::string_view() : found->text;
}

std::string time_text(std::int64_t time_ps) {
    struct Unit {
        std::int64_t size;
        const char* name;
    };
    constexpr Unit kUnits[] = {
        {1'000'000'000'000, "s"}, {1'000'000'000, "ms"}, {1'000'000, "us"}, {1'000, "ns"}};
    for (const Unit& unit : kUnits) {
        if (time_ps >= unit.size) {
            const std::int64_t thousandths = time_ps % unit.size / (unit.size / 1000);
            return fmt::format("{}.{:03}{}", time_ps / unit.size, thousandths, unit.name);
        }
    }
    return fmt::format("{}ps", time_ps);
}

}  // namespace scenarios
