// A trace as it was written: JSON Lines, the schema in the first line. Every view begins here.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/outcome.hpp"

namespace simverbs::viz {

struct Field {
    std::string name;
    std::int64_t number = 0;  // of numbers and booleans; unsigned ones as the same bits
    std::string text;
    bool is_text = false;
};

struct Record {
    static constexpr std::uint32_t kNoNode = 0xFFFFFFFF;

    std::int64_t time = 0;  // ps
    std::uint64_t seq = 0;
    std::uint32_t node = kNoNode;
    std::string category;
    std::string name;
    std::vector<Field> fields;

    // nullptr: there is no such field.
    [[nodiscard]] const Field* find(std::string_view field) const;
    // 0 and "" where there is none.
    [[nodiscard]] std::int64_t number(std::string_view field) const;
    [[nodiscard]] std::uint32_t id(std::string_view field) const {
        return static_cast<std::uint32_t>(number(field));
    }
    [[nodiscard]] std::string_view text(std::string_view field) const;
};

struct Trace {
    std::vector<Record> records;
    bool is_cut = false;  // the last line had no end and was left out
};

// A failure says what is wrong and where. `name` is of the file, for the failure. A last line
// without its end is left out: a program that was killed leaves one.
fabric::Outcome<Trace> read_trace(std::istream& in, std::string_view name);
fabric::Outcome<Trace> read_trace(const std::string& path);

}  // namespace simverbs::viz
