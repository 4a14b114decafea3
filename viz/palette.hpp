// Colours that differ for the colour-blind too (Okabe and Ito), and are never the only difference:
// lines also differ in style, words say the rest.
#pragma once

#include <string_view>

namespace simverbs::viz {

inline constexpr std::string_view kInk = "#1a1a1a";
inline constexpr std::string_view kFaint = "#707070";
inline constexpr std::string_view kBlue = "#0072b2";
inline constexpr std::string_view kVermilion = "#d55e00";
inline constexpr std::string_view kGreen = "#009e73";
inline constexpr std::string_view kOrange = "#e69f00";
inline constexpr std::string_view kPurple = "#cc79a7";

}  // namespace simverbs::viz
