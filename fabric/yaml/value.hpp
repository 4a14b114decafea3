// A YAML document as a tree of values, each with the place where it was written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fabric::yaml {

struct Position {
    // Both count from 1.
    std::size_t line = 1;
    std::size_t column = 1;
    // The place of the file among those that one document is made of.
    std::size_t file = 0;

    bool operator==(const Position&) const = default;
};

enum class Kind : std::uint8_t { kNothing, kScalar, kList, kMapping };

struct Entry;

struct Value {
    Kind kind = Kind::kNothing;
    Position position;
    std::string text;            // of a scalar
    std::vector<Value> items;    // of a list
    std::vector<Entry> entries;  // of a mapping, as written; keys are scalars

    static constexpr std::size_t kMaxDepth = 32;
    static constexpr std::size_t kMaxValues = 1'000'000;  // of a document, aliases followed
    static constexpr std::size_t kMaxText = 64'000'000;   // of all its scalars, in bytes
};

struct Entry {
    Value key;
    Value value;
};

// The mistakes in a document: every mistake, in the order of finding.
class Errors {
  public:
    explicit Errors(std::string file) : files_{std::move(file)} {}
    // Takes the files that a document is made of, in the order of Position::file.
    explicit Errors(std::vector<std::string> files) : files_(std::move(files)) {}

    void add(Position position, std::string_view text);
    [[nodiscard]] bool empty() const { return count_ == 0; }
    // "file:line:column: ...", a line each; at most kMaxLines of them.
    [[nodiscard]] std::string text() const;

    static constexpr std::size_t kMaxLines = 20;

  private:
    std::vector<std::string> files_;
    std::vector<std::string> lines_;  // the first ones
    std::size_t count_ = 0;
};

// One document; nothing, with errors, when it is no YAML or there are several.
std::optional<Value> parse(std::string_view text, Errors& errors);

// A scalar that reads back as `text`: as it is, or in quotes.
std::string quoted_if_needed(std::string_view text);

}  // namespace fabric::yaml
