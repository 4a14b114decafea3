// Patterns of a rubric for single events of a run: `{completion: SUCCESS, opcode: RECV, host: h1}`
// is every successful completion of a receive on h1. One key says what kind of event it is, the
// others what more must hold.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/yaml/value.hpp"

#include "viz/run.hpp"
#include "viz/trace_file.hpp"

namespace simverbs::lab {

// A field equals one of the words, or the field `same_as` of the record; or, turned round, none.
struct Condition {
    std::string field;
    std::vector<std::string> words;
    bool negated = false;
    std::string same_as;  // "": none

    [[nodiscard]] bool holds(const viz::Record& record) const;
};

struct Pattern {
    std::string record;  // name of the trace's records
    std::vector<Condition> conditions;
    std::string host;         // "": any
    std::uint32_t place = 0;  // of the queue pair among those of its host, from 1; 0: any
    std::string text;         // as it was written, for people

    [[nodiscard]] bool matches(const viz::Record& record, const viz::Run& run) const;
};

// Nothing, with errors, for what is no pattern.
std::optional<Pattern> read_pattern(const fabric::yaml::Value& value, fabric::yaml::Errors& errors);

// One event in a line: "12.3 us, h0 QP 0x10001: completion, status SUCCESS, opcode SEND".
std::string describe(const viz::Record& record, const viz::Run& run);

// The calls that `call:` knows, as the trace names them.
std::span<const std::string_view> known_calls();

// Every kind of event with its keys, for `simverbs lab rubric`.
std::string pattern_reference();

}  // namespace simverbs::lab
