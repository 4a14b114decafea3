// DOT text drawn by `dot`, a program of the distribution.
#pragma once

#include <optional>
#include <string>

namespace simverbs::viz {

// `format` as of dot -T: "svg", "png". Nothing, with `error` set, where there is no `dot` or it
// finds a mistake.
std::optional<std::string> draw(const std::string& dot, const std::string& format,
                                std::string& error);

}  // namespace simverbs::viz
