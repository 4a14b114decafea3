// Strict reading: a mapping with a fixed set of keys, and values of the type that is asked for.
// Mistakes go to the errors, and the reader goes on as if it had been left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "fabric/core/sim_time.hpp"
#include "fabric/yaml/quantities.hpp"
#include "fabric/yaml/value.hpp"

namespace fabric::yaml {

using Words = std::span<const std::string_view>;

// "ends, pattern, rate".
std::string join(Words words);

std::optional<std::string> text_of(const Value& value, Errors& errors);
std::optional<std::uint64_t> number_of(
    const Value& value, Errors& errors, std::uint64_t least = 0,
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
// One of the words; its index.
std::optional<std::size_t> choice_of(const Value& value, Words words, Errors& errors);
std::optional<SimDuration> duration_of(const Value& value, Errors& errors);
std::optional<std::uint64_t> bytes_of(const Value& value, Errors& errors, std::uint64_t least,
                                      std::uint64_t most);
std::optional<LinkRate> link_rate_of(const Value& value, Errors& errors);
// As it is, with an error where it is none; nothing at all is an empty list or mapping.
std::span<const Value> items_of(const Value& value, Errors& errors);
std::span<const Entry> entries_of(const Value& value, Errors& errors);

class Fields {
  public:
    // Names keys that are not among `keys`, and those given twice.
    Fields(const Value& value, Words keys, Errors& errors);

    // nullptr: left out.
    [[nodiscard]] const Value* find(std::string_view key) const;

    // read(value, errors, more...) of the field; nothing where it is left out.
    template <class Read, class... More>
    auto get(std::string_view key, Read read, const More&... more) const
        -> decltype(read(std::declval<const Value&>(), std::declval<Errors&>(), more...)) {
        const Value* const value = find(key);
        if (value == nullptr) {
            return std::nullopt;
        }
        return read(*value, errors_, more...);
    }
    [[nodiscard]] std::optional<std::size_t> choice(std::string_view key, Words words) const {
        const Value* const value = find(key);
        return value == nullptr ? std::nullopt : choice_of(*value, words, errors_);
    }

  private:
    std::span<const Entry> entries_;
    Errors& errors_;
};

}  // namespace fabric::yaml
