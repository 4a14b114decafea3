// Topologies as files that people write. docs/man/simverbs-topology.5.md has the keys. What is not
// said has the default of the specs (net/topology.hpp). Refuses what it does not know, by line and
// column.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fabric/core/outcome.hpp"
#include "fabric/net/topology.hpp"
#include "fabric/yaml/value.hpp"

namespace fabric {

// `personalities`: those that a host may have; none: any word is one. `file` is for errors.
Outcome<Topology> read_yaml(std::string_view text, const std::string& file,
                            std::span<const std::string_view> personalities = {});
// The same of a part of another document, which is made of `files`.
Outcome<Topology> read_yaml(const yaml::Value& document, std::vector<std::string> files,
                            std::span<const std::string_view> personalities = {});

// The values of a link's `pfc` and `vlans`: "none", "all" or "[3, 4]"; "all" or "[100, 200]".
std::string pfc_text(const LinkSpec& link);
std::string vlans_text(const LinkSpec& link);

// read_yaml() gives the same topology back, sorted. `topology` has no error().
std::string write_yaml(const Topology& topology);

}  // namespace fabric
