// The keys of a scenario, as data: strict reading, the JSON Schema and the table of keys come from
// the same definitions. A shape knows nothing of what it is for.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "fabric/yaml/value.hpp"

namespace scenarios {

using Words = std::span<const std::string_view>;

enum class ShapeKind : std::uint8_t {
    kText,
    kNumber,    // from `least` to `most`, or one of `words`
    kFlag,      // true or false
    kDuration,  // "5ms"
    kSize,      // "64KiB"; a plain number is bytes, as offsets are
    kWord,      // one of `words`
    kName,      // of what `refers_to` says
    kList,      // of `item`
    kMapping,   // `keys`
    kOneOf,     // a mapping with exactly one of `keys`, and any of `more`
    kNamed,     // a mapping from names of one's own choice, or of `refers_to`, to `item`
    kAnything,  // read by somebody else
};

// The kinds of things that a name in a scenario may stand for.
enum class Names : std::uint8_t {
    kNone,
    kHost,
    kNode,  // a host or a switch
    kHca,   // a host, or one of its HCAs
    kLink,
    kProgram,
    kConnection,
    kEnd,  // HOST/CONNECTION, or HOST/N
    kMemory,
    kCq,
    kSrq,
    kWindow,
    kFault,
};
inline constexpr auto kNamesText = std::to_array<std::string_view>(
    {"name", "host", "node", "host", "link", "program", "connection", "end (host/connection)",
     "memory", "completion queue", "shared receive queue", "memory window", "fault"});

struct Shape;

struct Key {
    std::string_view name;
    const Shape* shape;
    std::string_view what;
    bool required = false;
};

struct Shape {
    ShapeKind kind;
    std::uint64_t least = 0;
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    Words words{};
    Names refers_to = Names::kNone;
    const Shape* item = nullptr;
    std::span<const Key> keys{};
    std::span<const Key> more{};
    const Shape* instead = nullptr;  // where a value of another kind stands: a shorter way
    std::string_view title{};        // of shapes that contain themselves
};

// The names that a scenario has.
class KnownNames {
  public:
    void add(Names kind, std::string_view name) { names_[kind].emplace(name); }
    // Every name of this kind is taken to be there.
    void accept_all(Names kind) { accepted_.insert(kind); }
    // Ends are called HOST/N, the N-th queue pair that is made there, from 1.
    void number_ends() { numbered_ends_ = true; }
    [[nodiscard]] bool has(Names kind, std::string_view name) const;
    // `: did you mean "h0"?`, or what there is.
    [[nodiscard]] std::string advice(Names kind, std::string_view name) const;

  private:
    std::map<Names, std::set<std::string, std::less<>>> names_;
    std::set<Names> accepted_;
    bool numbered_ends_ = false;
};

// Adds what is wrong with `value` to the errors.
void check(const fabric::yaml::Value& value, const Shape& shape, const KnownNames& names,
           fabric::yaml::Errors& errors);

// JSON Schema (draft 2020-12) of what `shape` accepts.
std::string json_schema(const Shape& shape, std::string_view title);

}  // namespace scenarios
