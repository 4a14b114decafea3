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
    friend bool operator==(const Segment&, const Segment&) = default;
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
    // Takes the first of `places` that is on no line, and so far from all but `own` that it is
    // plain whose label it is.
    std::optional<Place> take_near(const Segment& own, const std::vector<Place>& places, int width,
                                   int height);

  private:
    [[nodiscard]] bool is_taken(const Rectangle& label) const;

    std::vector<Rectangle> taken_;
    std::vector<Segment> lines_;
};

}  // namespace simverbs::viz
