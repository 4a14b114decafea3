// Smaller versions of a scenario's document. They need not mean anything any more: who asks for one
// reads it again, which says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fabric/net/topology.hpp"
#include "fabric/yaml/value.hpp"

#include "scenarios/engine/observation.hpp"
#include "scenarios/engine/scenario.hpp"
#include "scenarios/search/ddmin.hpp"

namespace scenarios {

using Document = fabric::yaml::Value;
using NamesGone = std::set<std::string, std::less<>>;

// Faults of the list get the names that they have had without one: fault1, fault2, ...
void name_faults(Document& root);
[[nodiscard]] std::vector<std::string> fault_names(const Document& root);
// Without those whose name is not in `kept`, and without what is expected of them.
[[nodiscard]] Document with_faults(const Document& root, const std::set<std::string>& kept);
// A firing: which match it was, and the packet that it hit.
struct FiringPlace {
    std::uint64_t nth;
    PacketHit packet{};
};
// The fault as so many faults that fire once, each at the place of one firing. The first has the
// name of the fault, so that others may still come after it.
[[nodiscard]] Document with_each_firing(const Document& root, const std::string& fault,
                                        const std::vector<FiringPlace>& firings);

// Returns what goes when a host goes: its programs, connections, their ends, its links.
[[nodiscard]] NamesGone names_of_host(const Scenario& scenario, const std::string& host);
// Returns what goes when a connection goes.
[[nodiscard]] NamesGone names_of_connection(const Scenario& scenario,
                                            const std::string& connection);
// Without the keys that are called so, and the items of lists that speak of them.
[[nodiscard]] Document without(const Document& root, const NamesGone& gone);
// On a fabric without hosts that nothing speaks of.
[[nodiscard]] std::vector<Document> on_smaller_fabrics(const Scenario& scenario);

// Operations of all programs, those within loops and parallel lists included, in order of writing.
[[nodiscard]] std::size_t count_operations(const Document& root);
[[nodiscard]] Document with_operations(const Document& root, const Kept& kept);

// The numbers that say how often (times, count), in order of writing; changed by `change`, which is
// told the place of each among them.
void for_each_count(Document& root, const std::function<void(std::size_t, Document&)>& change);

// Without that key of `section`; at the top where that is "".
[[nodiscard]] Document without_key(const Document& root, std::string_view section,
                                   std::string_view key);

}  // namespace scenarios
