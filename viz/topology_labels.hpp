// Free places for labels beside or on the lines of a picture: one that lies on no box and no other
// label, and on as few other lines as there are.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "viz/topology_layout.hpp"

namespace simverbs::viz {

struct Rectangle {
    Place middle;
    int width = 0;
    int height = 0;
};

struct Segment {
    Place from;
    Place to;
};

bool overlap(const Rectangle& a, const Rectangle& b);
bool crosses(const Segment& line, const Rectangle& area);

class LabelPlaces {
  public:
    LabelPlaces(std::vector<Rectangle> taken, std::vector<Segment> lines)
        : taken_(std::move(taken)), lines_(std::move(lines)) {}

    // Takes the first of `places` with the fewest lines below it, and none where each is taken or
    // lies on more lines than `most_lines`.
    std::optional<Place> take(const std::vector<Place>& places, int width, int height,
                              std::size_t most_lines);

  private:
    std::vector<Rectangle> taken_;
    std::vector<Segment> lines_;
};

}  // namespace simverbs::viz
