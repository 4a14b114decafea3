// `simverbs topology`: looks at a topology without serving it. Each returns an exit status; what is
// wrong goes to stderr, and then the status is 1.
#pragma once

#include <string>

namespace simverbs::cli {

// Sizes, the diameter, and what is cut off; with `routes` what each routing engine makes of it.
int check_topology(const std::string& spec, bool routes);

// Nodes and links as a table, or for Graphviz.
int show_topology(const std::string& spec, bool dot);

// To stdout: "yaml" or "ibnetdiscover".
int convert_topology(const std::string& spec, const std::string& format);

}  // namespace simverbs::cli
