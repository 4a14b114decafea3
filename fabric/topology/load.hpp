// A topology by what a person says: a generator or the path of a file.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fabric/core/outcome.hpp"
#include "fabric/net/topology.hpp"

namespace fabric {

// Text with a '/' or a '.' before any '=' names a file, which no generator does; .yaml and .yml is
// YAML, any other is text as of ibnetdiscover.
bool names_a_file(std::string_view spec);

// A generator may have attributes of its links behind commas: "eth-star:4,mtu=1500B,pfc=none". The
// keys are those of `defaults: {link: ...}` in a file. `personalities`: see read_yaml().
Outcome<Topology> load_topology(std::string_view spec,
                                std::span<const std::string_view> personalities = {});

}  // namespace fabric
