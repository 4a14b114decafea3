// Finds what spoils a picture, in what drawing.cpp has read.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "drawing.hpp"

namespace viz_test {
namespace {

constexpr double kSlack = 1.5;  // pixels that shapes may touch

Area shrunk(const Area& area) {
    return {area.left + kSlack, area.top + kSlack, area.right - kSlack, area.bottom - kSlack};
}

bool overlap(const Area& a, const Area& b) {
    return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

bool contains(const Area& outer, const Area& inner) {
    return outer.left <= inner.left && outer.right >= inner.right && outer.top <= inner.top &&
           outer.bottom >= inner.bottom;
}

// Clips the segment to the area (Liang and Barsky): whether any of it is left.
bool crosses(Point from, Point to, const Area& area) {
    double begin = 0;
    double end = 1;
    const double dx = to.x - from.x;
    const double dy = to.y - from.y;
    const std::array<std::array<double, 2>, 4> edges = {{{-dx, from.x - area.left},
                                                         {dx, area.right - from.x},
                                                         {-dy, from.y - area.top},
                                                         {dy, area.bottom - from.y}}};
    for (const auto& [direction, distance] : edges) {
        if (direction == 0) {
            if (distance < 0) {
                return false;
            }
        } else if (direction < 0) {
            begin = std::max(begin, distance / direction);
        } else {
            end = std::min(end, distance / direction);
        }
    }
    return begin < end;
}

bool crosses(const DrawnLine& line, const Area& area) {
    for (std::size_t i = 1; i < line.points.size(); ++i) {
        if (crosses(line.points[i - 1], line.points[i], area)) {
            return true;
        }
    }
    return false;
}

// Returns true if the text, or something painted after the line, hides it below all of the text.
bool is_covered(const Drawing& drawing, const DrawnLine& line, const DrawnText& text) {
    return line.order < text.order &&
           (text.has_edge ||
            std::any_of(drawing.fills.begin(), drawing.fills.end(), [&](const DrawnFill& fill) {
                return fill.order > line.order && fill.order < text.order &&
                       contains(fill.area, shrunk(text.area));
            }));
}

void find_overlaps(const Drawing& drawing, std::vector<std::string>& defects) {
    for (std::size_t i = 0; i < drawing.texts.size(); ++i) {
        const DrawnText& text = drawing.texts[i];
        for (std::size_t j = i + 1; j < drawing.texts.size(); ++j) {
            if (overlap(shrunk(text.area), shrunk(drawing.texts[j].area))) {
                defects.push_back(
                    fmt::format("'{}' lies on '{}'", drawing.texts[j].content, text.content));
            }
        }
        for (const DrawnLine& line : drawing.lines) {
            if (crosses(line, shrunk(text.area)) && !is_covered(drawing, line, text)) {
                defects.push_back(fmt::format(
                    "'{}' at {:.0f},{:.0f} lies on a line from {:.0f},{:.0f} to {:.0f},{:.0f}",
                    text.content, text.area.left, text.area.bottom, line.points.front().x,
                    line.points.front().y, line.points.back().x, line.points.back().y));
            }
        }
    }
}

// Words of one row that run into each other, or into a sample of a legend. A no-break space between
// them parts them.
void find_touching_texts(const Drawing& drawing, std::vector<std::string>& defects) {
    constexpr double kApart = 4;
    constexpr std::string_view kSpace = "\xc2\xa0";
    constexpr double kSameRow = 2;
    for (const DrawnText& left : drawing.texts) {
        for (const DrawnText& right : drawing.texts) {
            const double gap = right.area.left - left.area.right;
            if (std::abs(left.area.bottom - right.area.bottom) < kSameRow && gap > -kSlack &&
                gap < kApart && left.node == right.node && !left.content.ends_with(kSpace) &&
                !right.content.starts_with(kSpace)) {
                defects.push_back(fmt::format("'{}' touches '{}'", left.content, right.content));
            }
        }
    }
}

void find_texts_in_other_boxes(const Drawing& drawing, std::vector<std::string>& defects) {
    for (const DrawnText& text : drawing.texts) {
        for (const DrawnNode& node : drawing.nodes) {
            if (text.node != node.node && overlap(shrunk(text.area), shrunk(node.area))) {
                defects.push_back(fmt::format(
                    "'{}' at {:.0f},{:.0f} lies in the box at {:.0f},{:.0f} of something else",
                    text.content, text.area.left, text.area.bottom, node.area.left, node.area.top));
            }
        }
    }
}

void find_boxes_on_boxes(const Drawing& drawing, std::vector<std::string>& defects) {
    for (std::size_t i = 0; i < drawing.fills.size(); ++i) {
        for (std::size_t j = i + 1; j < drawing.fills.size(); ++j) {
            const DrawnFill& a = drawing.fills[i];
            const DrawnFill& b = drawing.fills[j];
            if (a.is_box && b.is_box && overlap(shrunk(a.area), shrunk(b.area)) &&
                !contains(a.area, b.area) && !contains(b.area, a.area)) {
                defects.push_back(fmt::format("boxes at {:.0f},{:.0f} and {:.0f},{:.0f} overlap",
                                              a.area.left, a.area.top, b.area.left, b.area.top));
            }
        }
    }
}

void find_meeting_arrowheads(const Drawing& drawing, std::vector<std::string>& defects) {
    constexpr double kApart = 4;
    for (std::size_t i = 0; i < drawing.arrowheads.size(); ++i) {
        for (std::size_t j = i + 1; j < drawing.arrowheads.size(); ++j) {
            const Point& a = drawing.arrowheads[i];
            const Point& b = drawing.arrowheads[j];
            if (std::hypot(a.x - b.x, a.y - b.y) < kApart) {
                defects.push_back(fmt::format("two arrows end at {:.0f},{:.0f}", a.x, a.y));
            }
        }
    }
}

}  // namespace

std::vector<std::string> defects_of(const Drawing& drawing) {
    std::vector<std::string> defects;
    if (!drawing.error.empty()) {
        return {drawing.error};
    }
    if (drawing.width > kWidestPicture) {
        defects.push_back(fmt::format("{:.0f} pixels wide", drawing.width));
    }
    const Area& page = drawing.page;
    const Area edge{page.left - kSlack, page.top - kSlack, page.right + kSlack,
                    page.bottom + kSlack};
    for (const DrawnText& text : drawing.texts) {
        if (text.loses_space) {
            defects.push_back(fmt::format("'{}' loses a space", text.content));
        }
        if (!contains(edge, text.area)) {
            defects.push_back(fmt::format("'{}' leaves the page", text.content));
        }
    }
    for (const DrawnLine& line : drawing.lines) {
        if (!contains(edge, around(line.points))) {
            defects.push_back(fmt::format("a line from {:.0f},{:.0f} leaves the page",
                                          line.points.front().x, line.points.front().y));
        }
    }
    find_overlaps(drawing, defects);
    find_touching_texts(drawing, defects);
    find_texts_in_other_boxes(drawing, defects);
    find_boxes_on_boxes(drawing, defects);
    find_meeting_arrowheads(drawing, defects);
    return defects;
}

void expect_readable(const std::string& svg, const std::string& name) {
    constexpr std::size_t kShown = 8;
    const std::vector<std::string> defects = defects_of(read_drawing(svg));
    std::string text;
    for (std::size_t i = 0; i < std::min(kShown, defects.size()); ++i) {
        text += "\n  " + defects[i];
    }
    EXPECT_TRUE(defects.empty()) << name << ": " << defects.size() << " defects" << text;
}

}  // namespace viz_test
