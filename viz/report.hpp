// One run as one HTML page that needs nothing else: no network, no server, no other file.
#pragma once

#include <string>
#include <string_view>

#include "viz/trace_file.hpp"

namespace simverbs::viz {

// `name` is of the trace. Pictures that Graphviz draws are left out, and the page says so, where
// there is no `dot`.
std::string report(const Trace& trace, std::string_view name);

}  // namespace simverbs::viz
