// Reads an SVG as it is drawn: where each text, line and filled area lies on the page. One check
// finds what spoils a picture: lost spaces, text on text or lines, text in a box of something else,
// words that touch, boxes on boxes, parts off the page. Models what Graphviz and simverbs write;
// other SVG (CSS, <use>, rotation) is not understood.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace viz_test {

struct Point {
    double x = 0;
    double y = 0;
};

struct Area {
    double left = 0;
    double top = 0;
    double right = 0;
    double bottom = 0;
};

// The smallest area that holds all of them; there is one at least.
Area around(const std::vector<Point>& points);

// `order` counts the shapes as they are painted: later ones cover earlier ones.
struct DrawnText {
    std::string content;  // as it is shown
    Area area;
    std::size_t order = 0;
    bool loses_space = false;  // at an end, where SVG collapses it
    bool has_edge = false;     // of white, which parts it from what is below
    std::size_t node = 0;      // Graphviz node that it belongs to, from 1; 0: none
};

struct DrawnLine {
    std::vector<Point> points;
    std::size_t order = 0;
};

struct DrawnFill {
    Area area;
    std::size_t order = 0;
    bool is_box = false;  // it has an outline, and is no arrowhead
};

// The outline of a Graphviz node: a box of the graph, or a legend.
struct DrawnNode {
    Area area;
    std::size_t node = 0;
};

struct Drawing {
    double width = 0;  // pixels of the screen
    double height = 0;
    Area page;  // in the units of the shapes
    std::vector<DrawnText> texts;
    std::vector<DrawnLine> lines;  // outlines of shapes too
    std::vector<DrawnFill> fills;
    std::vector<DrawnNode> nodes;
    std::vector<Point> arrowheads;
    std::string error;  // "" where the SVG was read
};

Drawing read_drawing(const std::string& svg);

inline constexpr double kWidestPicture = 2000;  // pixels

// A sentence for each defect; empty for a good picture.
std::vector<std::string> defects_of(const Drawing& drawing);

// Fails the test with the defects of `svg`. `name` says which picture it is.
void expect_readable(const std::string& svg, const std::string& name);

}  // namespace viz_test
