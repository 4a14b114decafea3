#include "viz/ladder_marks.hpp"

#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fabric/core/xml_text.hpp"

#include "viz/palette.hpp"

namespace simverbs::viz {
namespace {

// A line of that style, or a mark.
struct KeyItem {
    std::string_view words;
    std::string_view colour;
    std::string_view width;
    std::string_view more{};  // attributes
    char mark = ' ';
};
constexpr std::array<KeyItem, 7> kKey = {{
    {"packet", kBlue, kThin, "marker-end=\"url(#sent)\""},
    {"several packets of a message", kBlue, kThick, "marker-end=\"url(#sent)\""},
    {"sent again", kOrange, kThin, "stroke-dasharray=\"7 3\" marker-end=\"url(#again)\""},
    {"NAK, RNR NAK", kVermilion, kMedium, "marker-end=\"url(#nak)\""},
    {"lost", kVermilion, "", "", 'x'},
    {"discarded on arrival", kVermilion, "", "", '|'},
    {"time passes", kFaint, "1", "stroke-dasharray=\"2 3\""},
}};
constexpr int kSample = 44;
constexpr int kLine = 20;

// Returns the place of each item of the key, from the first line on.
std::vector<std::pair<int, int>> key_places(int width) {
    std::vector<std::pair<int, int>> places;
    int x = 16;
    int y = 0;
    for (const KeyItem& item : kKey) {
        const int needed = kSample + width_of(item.words) + 16;
        if (x + needed > width && x > 16) {
            x = 16;
            y += kLine;
        }
        places.emplace_back(x, y);
        x += needed;
    }
    return places;
}

}  // namespace

int width_of(std::string_view text, int size) {
    return static_cast<int>(text.size()) * size * 68 / 100;
}

std::string text(int x, int y, std::string_view anchor, std::string_view colour,
                 std::string_view content, std::string_view more) {
    return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>\n", x, y,
                       anchor, colour, more, fabric::xml_text(content));
}

// Text with a white edge that parts it from the arrows below it.
std::string with_edge(int x, int y, int direction, std::string_view content,
                      std::string_view more) {
    return text(x, y, direction > 0 ? "start" : "end", kInk, content,
                fmt::format(" paint-order=\"stroke\" stroke=\"#ffffff\" stroke-width=\"5\" "
                            "stroke-linejoin=\"round\"{}",
                            more));
}

std::string markers() {
    std::string out = "<defs>";
    for (const auto& [name, colour] : {std::pair<std::string_view, std::string_view>{"sent", kBlue},
                                       {"again", kOrange},
                                       {"nak", kVermilion}}) {
        out += fmt::format(
            "<marker id=\"{}\" markerWidth=\"11\" markerHeight=\"8\" refX=\"10\" refY=\"4\" "
            "markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0,0 L11,4 L0,8 z\" "
            "fill=\"{}\"/></marker>",
            name, colour);
    }
    return out + "</defs>\n";
}

std::string cross(int x, int y) {
    return fmt::format(
        "<path d=\"M{},{} L{},{} M{},{} L{},{}\" fill=\"none\" stroke=\"{}\" "
        "stroke-width=\"2.6\"/>\n",
        x - 5, y - 5, x + 5, y + 5, x - 5, y + 5, x + 5, y - 5, kVermilion);
}
std::string bar(int x, int y) {
    return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"4\" height=\"16\" fill=\"{}\"/>\n", x - 2,
                       y - 8, kVermilion);
}

int key_lines(int width) {
    return key_places(width).back().second / kLine + 1;
}

std::string key(int width, int y) {
    std::string out;
    const std::vector<std::pair<int, int>> places = key_places(width);
    for (std::size_t i = 0; i < kKey.size(); ++i) {
        const int left = places[i].first;
        const int line = y + places[i].second;
        const KeyItem& item = kKey[i];
        if (item.mark != ' ') {
            out += item.mark == 'x' ? cross(left + 20, line - 4) : bar(left + 20, line - 4);
        } else {
            out += fmt::format(
                "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" "
                "stroke-width=\"{}\" {}/>\n",
                left, line - 4, left + 36, line - 4, item.colour, item.width, item.more);
        }
        out += text(left + kSample, line, "start", kInk, item.words);
    }
    return out;
}

}  // namespace simverbs::viz
