#include "scenarios/engine/observation.hpp"

#include <algorithm>
#include <charconv>

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

std::optional<NumberedEnd> numbered_end(std::string_view end) {
    const std::size_t slash = end.rfind('/');
    if (slash == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view digits = end.substr(slash + 1);
    std::uint32_t nth = 0;
    const char* const last = digits.data() + digits.size();
    const auto [stopped, status] = std::from_chars(digits.data(), last, nth);
    if (status != std::errc{} || stopped != last || nth == 0) {
        return std::nullopt;
    }
    return NumberedEnd{end.substr(0, slash), nth};
}

std::string queue_pair_text(std::string_view node, std::uint64_t qpn) {
    return fmt::format("{} QP {:#x}", node, qpn);
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
