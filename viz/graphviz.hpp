// DOT text drawn by `dot`, a program of the distribution.
#pragma once

#include <string>

#include "fabric/core/outcome.hpp"

namespace simverbs::viz {

// `format` as of dot -T: "svg", "png". Fails where there is no `dot` or it finds a mistake.
fabric::Outcome<std::string> draw(const std::string& dot, const std::string& format);

}  // namespace simverbs::viz
