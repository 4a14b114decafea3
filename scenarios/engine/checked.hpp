// Reading a mapping that check() has passed: what is asked for has the type it must have.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/yaml/value.hpp"

namespace scenarios {

class Checked {
  public:
    Checked() = default;
    explicit Checked(const fabric::yaml::Value& value) : value_(&value) {}

    // The mapping's value of that key; a value without keys where it is left out.
    [[nodiscard]] Checked at(std::string_view key) const;
    [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
    [[nodiscard]] const fabric::yaml::Value* find(std::string_view key) const;
    [[nodiscard]] const fabric::yaml::Value* value() const { return value_; }
    [[nodiscard]] fabric::yaml::Position position() const;

    [[nodiscard]] std::string text(std::string_view key, std::string_view otherwise = {}) const;
    [[nodiscard]] std::uint64_t number(std::string_view key, std::uint64_t otherwise = 0) const;
    [[nodiscard]] bool flag(std::string_view key, bool otherwise = false) const;
    [[nodiscard]] std::int64_t duration(std::string_view key, std::int64_t otherwise = 0) const;
    [[nodiscard]] std::uint64_t size(std::string_view key, std::uint64_t otherwise = 0) const;
    // Index in `words`.
    [[nodiscard]] std::size_t word(std::string_view key, std::span<const std::string_view> words,
                                   std::size_t otherwise = 0) const;
    [[nodiscard]] bool lists(std::string_view key, std::string_view word) const;

    [[nodiscard]] std::span<const fabric::yaml::Value> items() const;
    [[nodiscard]] std::span<const fabric::yaml::Entry> entries() const;
    // The value of a scalar.
    [[nodiscard]] std::string own_text() const;
    [[nodiscard]] std::uint64_t own_number() const;
    [[nodiscard]] std::int64_t own_duration() const;

  private:
    const fabric::yaml::Value* value_ = nullptr;
};

}  // namespace scenarios
