// The marks, words and key of a ladder as SVG, wherever they stand.
#pragma once

#include <string>
#include <string_view>

namespace simverbs::viz {

inline constexpr int kLadderFont = 12;              // pixels
inline constexpr std::string_view kThin = "1.6";    // of arrows
inline constexpr std::string_view kMedium = "2.4";  // of refusals
inline constexpr std::string_view kThick = "3.4";   // of several packets

// As wide as a wide font makes it.
int width_of(std::string_view text, int size = kLadderFont);

std::string text(int x, int y, std::string_view anchor, std::string_view colour,
                 std::string_view content, std::string_view more = "");
// Text with a white edge that parts it from the arrows below it. `direction` +1: to the right.
std::string with_edge(int x, int y, int direction, std::string_view content,
                      std::string_view more = "");

// The arrowheads "sent", "again" and "nak".
std::string markers();
std::string cross(int x, int y);
std::string bar(int x, int y);

// The key of a picture so wide, with its first line at that height; and how many lines it takes.
std::string key(int width, int y);
int key_lines(int width);

}  // namespace simverbs::viz
