// One trace record as sinks see it, and how a typed event becomes words of a digest or fields of a
// record. Integers and short strings only: no floating point, no nesting.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fabric/core/hash.hpp"
#include "fabric/core/sim_time.hpp"
#include "fabric/core/strong_id.hpp"
#include "fabric/trace/event_info.hpp"

namespace fabric::trace {

struct Field {
    enum class Kind : std::uint8_t { kSigned, kUnsigned, kBool, kText, kEnum };

    std::string_view name;  // a literal
    Kind kind = Kind::kUnsigned;
    std::uint64_t number = 0;  // two's complement when signed; the enumerator's value
    std::string text;          // of kText and kEnum
};

struct TraceRecord {
    SimTime time;
    std::uint64_t seq = 0;  // counts the records that sinks were offered
    NodeId node;
    Category category{};
    std::string_view name;  // a literal
    std::vector<Field> fields;

    // nullptr: there is no such field.
    [[nodiscard]] const Field* find(std::string_view field) const;
    // 0 and "" when there is no such field.
    [[nodiscard]] std::uint64_t number(std::string_view field) const;
    [[nodiscard]] std::string_view text(std::string_view field) const;
};

template <class T>
concept NamedEnum = std::is_enum_v<T> && requires(T value) {
    { to_string(value) } -> std::convertible_to<std::string_view>;
};

template <class T>
concept IdOrKey = requires(const T& id) {
    { id.value() } -> std::unsigned_integral;
};

template <class T>
concept TraceEvent = requires(const T& event) {
    { T::kInfo } -> std::convertible_to<EventInfo>;
    { event.node } -> std::convertible_to<NodeId>;
};

namespace detail {

// The word that stands for a value in a digest.
template <class T>
constexpr std::uint64_t digest_word(const T& value) {
    if constexpr (std::is_enum_v<T> || std::integral<T>) {
        return static_cast<std::uint64_t>(value);
    } else if constexpr (IdOrKey<T>) {
        return value.value();
    } else {
        static_assert(std::convertible_to<T, std::string_view>, "not a value a trace can hold");
        return hash_name(value);
    }
}

template <class T>
Field make_field(std::string_view name, const T& value) {
    using Kind = Field::Kind;
    if constexpr (NamedEnum<T>) {
        return {name, Kind::kEnum, static_cast<std::uint64_t>(value),
                std::string(to_string(value))};
    } else if constexpr (std::same_as<T, bool>) {
        return {name, Kind::kBool, value ? 1U : 0U, {}};
    } else if constexpr (std::integral<T>) {
        const Kind kind = std::is_signed_v<T> ? Kind::kSigned : Kind::kUnsigned;
        return {name, kind, static_cast<std::uint64_t>(value), {}};
    } else if constexpr (IdOrKey<T>) {
        return {name, Kind::kUnsigned, value.value(), {}};
    } else {
        static_assert(std::convertible_to<T, std::string_view>, "not a value a trace can hold");
        return {name, Kind::kText, 0, std::string(std::string_view(value))};
    }
}

template <TraceEvent E>
void mix_event(Digest& digest, SimTime time, const E& event) {
    WordsHash words;
    words.add(E::kInfo.name_hash);
    words.add(digest_word(to_picoseconds(time)));
    words.add(event.node.value());
    event.fields([&words](std::string_view, const auto& value) { words.add(digest_word(value)); });
    digest.mix(words.value());
}

template <TraceEvent E>
TraceRecord make_record(const E& event) {
    TraceRecord record;
    record.node = event.node;
    record.category = E::kInfo.category;
    record.name = E::kInfo.name;
    std::size_t count = 0;
    event.fields([&count](std::string_view, const auto&) { ++count; });
    record.fields.reserve(count);
    event.fields([&record](std::string_view name, const auto& value) {
        record.fields.push_back(make_field(name, value));
    });
    return record;
}

}  // namespace detail

}  // namespace fabric::trace
