#include "fabric/yaml/fields.hpp"

#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "fabric/core/nearest.hpp"

namespace fabric::yaml {

namespace {

std::string_view name_of(Kind kind) {
    switch (kind) {
        case Kind::kNothing:
            return "nothing";
        case Kind::kScalar:
            return "a word or number";
        case Kind::kList:
            return "a list";
        case Kind::kMapping:
            return "a mapping";
    }
    return "?";
}

bool is(Kind kind, const Value& value, Errors& errors) {
    if (value.kind != kind) {
        errors.add(value.position,
                   fmt::format("expected {}, found {}", name_of(kind), name_of(value.kind)));
    }
    return value.kind == kind;
}

template <class Result>
std::optional<Result> parsed(const Value& value, Errors& errors,
                             Outcome<Result> (*parse)(std::string_view)) {
    if (!is(Kind::kScalar, value, errors)) {
        return std::nullopt;
    }
    Outcome<Result> result = parse(value.text);
    if (!result) {
        errors.add(value.position, result.error());
        return std::nullopt;
    }
    return std::move(*result);
}

}  // namespace

std::string join(Words words) {
    return fmt::format("{}", fmt::join(words, ", "));
}

std::optional<std::string> text_of(const Value& value, Errors& errors) {
    return is(Kind::kScalar, value, errors) ? std::optional(value.text) : std::nullopt;
}

std::optional<std::uint64_t> number_of(const Value& value, Errors& errors, std::uint64_t least,
                                       std::uint64_t most) {
    if (!is(Kind::kScalar, value, errors)) {
        return std::nullopt;
    }
    const std::optional<std::uint64_t> number = parse_number(value.text);
    if (!number || *number < least || *number > most) {
        errors.add(value.position,
                   fmt::format("\"{}\": expected a number from {} to {}", value.text, least, most));
        return std::nullopt;
    }
    return number;
}

std::optional<std::size_t> choice_of(const Value& value, Words words, Errors& errors) {
    if (!is(Kind::kScalar, value, errors)) {
        return std::nullopt;
    }
    const auto found = std::find(words.begin(), words.end(), value.text);
    if (found == words.end()) {
        const std::string meant = suggestion(value.text, words);
        errors.add(value.position, fmt::format("\"{}\"{}{} valid: {}", value.text, meant,
                                               meant.empty() ? ":" : "", join(words)));
        return std::nullopt;
    }
    return static_cast<std::size_t>(found - words.begin());
}

std::optional<SimDuration> duration_of(const Value& value, Errors& errors) {
    return parsed(value, errors, parse_duration);
}

std::optional<std::uint64_t> bytes_of(const Value& value, Errors& errors, std::uint64_t least,
                                      std::uint64_t most) {
    const auto bytes = parsed(value, errors, parse_bytes);
    if (bytes && (*bytes < least || *bytes > most)) {
        errors.add(value.position, fmt::format("\"{}\": expected from {} to {}", value.text,
                                               bytes_text(least), bytes_text(most)));
        return std::nullopt;
    }
    return bytes;
}

std::optional<LinkRate> link_rate_of(const Value& value, Errors& errors) {
    return parsed(value, errors, parse_link_rate);
}

std::span<const Value> items_of(const Value& value, Errors& errors) {
    const bool none = value.kind == Kind::kNothing || !is(Kind::kList, value, errors);
    return none ? std::span<const Value>() : value.items;
}

std::span<const Entry> entries_of(const Value& value, Errors& errors) {
    const bool none = value.kind == Kind::kNothing || !is(Kind::kMapping, value, errors);
    return none ? std::span<const Entry>() : value.entries;
}

Fields::Fields(const Value& value, Words keys, Errors& errors)
    : entries_(entries_of(value, errors)), errors_(errors) {
    std::set<std::string_view> seen;
    for (const auto& [key, unused] : entries_) {
        if (std::find(keys.begin(), keys.end(), key.text) == keys.end()) {
            const std::string meant = suggestion(key.text, keys);
            errors.add(key.position, fmt::format("unknown key \"{}\"{}{} valid: {}", key.text,
                                                 meant, meant.empty() ? ";" : "", join(keys)));
        } else if (!seen.insert(key.text).second) {
            errors.add(key.position, fmt::format("\"{}\" a second time", key.text));
        }
    }
}

const Value* Fields::find(std::string_view key) const {
    for (const auto& [name, value] : entries_) {
        if (name.text == key) {
            return &value;
        }
    }
    return nullptr;
}

}  // namespace fabric::yaml
