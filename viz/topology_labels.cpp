#include "viz/topology_labels.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace simverbs::viz {

bool overlap(const Rectangle& a, const Rectangle& b) {
    return 2 * std::abs(a.middle.x - b.middle.x) < a.width + b.width &&
           2 * std::abs(a.middle.y - b.middle.y) < a.height + b.height;
}

// Clips the line to the area (Liang and Barsky): whether any of it is left.
bool crosses(const Segment& line, const Rectangle& area) {
    const double dx = line.to.x - line.from.x;
    const double dy = line.to.y - line.from.y;
    const double x = line.from.x - area.middle.x;
    const double y = line.from.y - area.middle.y;
    const double half_width = area.width / 2.0;
    const double half_height = area.height / 2.0;
    const std::array<std::array<double, 2>, 4> edges = {{{-dx, half_width + x},
                                                         {dx, half_width - x},
                                                         {-dy, half_height + y},
                                                         {dy, half_height - y}}};
    double begin = 0;
    double end = 1;
    for (const auto& [direction, distance] : edges) {
        if (direction < 0) {
            begin = std::max(begin, distance / direction);
        } else if (direction > 0) {
            end = std::min(end, distance / direction);
        } else if (distance < 0) {
            return false;
        }
    }
    return begin < end;
}

bool LabelPlaces::is_taken(const Rectangle& label) const {
    return std::any_of(taken_.begin(), taken_.end(),
                       [&label](const Rectangle& one) { return overlap(one, label); });
}

std::optional<Place> LabelPlaces::take_near(const Segment& own, const std::vector<Place>& places,
                                            int width, int height) {
    constexpr int kApart = 16;
    for (const Place& place : places) {
        const Rectangle label{place, width, height};
        const Rectangle around{place, width + 2 * kApart, height + 2 * kApart};
        const bool is_clear = !is_taken(label) &&
                              std::none_of(lines_.begin(), lines_.end(), [&](const Segment& line) {
                                  return crosses(line, line == own ? label : around);
                              });
        if (is_clear) {
            taken_.push_back(label);
            return place;
        }
    }
    return std::nullopt;
}

std::optional<Place> LabelPlaces::take(const std::vector<Place>& places, int width, int height,
                                       std::size_t most_lines) {
    std::optional<Rectangle> best;
    std::size_t fewest = most_lines + 1;
    for (const Place& place : places) {
        const Rectangle label{place, width, height};
        if (is_taken(label)) {
            continue;
        }
        const auto below = static_cast<std::size_t>(
            std::count_if(lines_.begin(), lines_.end(),
                          [&label](const Segment& line) { return crosses(line, label); }));
        if (below < fewest) {
            fewest = below;
            best = label;
        }
    }
    if (!best) {
        return std::nullopt;
    }
    taken_.push_back(*best);
    return best->middle;
}

}  // namespace simverbs::viz
