// The values that an option or a word of a command may have, by the word that --help has for their
// kind (HOST, TOPOLOGY, ...).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "simverbs/cli/candidates.hpp"

namespace simverbs::cli {

// The part of the command line that stands already.
struct Context {
    // The value of an option such as "--world"; "" where it is not there.
    std::function<std::string(std::string_view option)> value_of;
    bool has_own_world = false;  // the command makes a world of its own: it takes --topology
};

// `kind` is the type of CLI11's option. `begun` is what is there of the value.
Candidates values_of_kind(std::string_view kind, const Context& context, std::string_view begun);

// "h0=", ...: the hosts of a topology, as `run` takes them.
Candidates hosts_of_topology(const std::string& topology, std::string_view behind);

}  // namespace simverbs::cli
