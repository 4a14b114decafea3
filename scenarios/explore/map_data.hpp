// The single faults of an exploration as a map: a row for each packet and call, a column for each
// kind of fault, and an outcome in each cell.
#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/explore/explored.hpp"

namespace scenarios {

// How much of the maps of all tests a page has room for.
struct MapRoom {
    std::size_t rows = 5'000;
    std::size_t rows_with_findings = 1'000;  // behind the others
    std::size_t bytes = 3'000'000;
};

// The letter of an outcome in a cell. A space: there is no such choice at this place.
char letter_of(Outcome outcome);
inline constexpr char kNotTried = '?';

// Returns {name, hosts, columns: [[label, group, words]], rows: [[number, text, kind, from, to,
// cells, [[column, finding], ...]], ...], rest}. "@" in the words of a column stands for the text
// of the row. `kind`: 0 for a request, 1 for a response, 2 for a call. `from` and `to` are indices
// of hosts; -1: not known. `rest` sums up the rows for which there is no room. Takes what it needs
// from `room`.
nlohmann::ordered_json map_of(const ExploredTest& test, MapRoom& room);

}  // namespace scenarios
