// Positions of the nodes of a fabric: layers above the hosts where switches stack up (fat trees),
// else switches and hosts on circles (star, ring, torus). The width is bounded: where a layer or
// circle has more nodes than fit, those with the least weight are left out and counted, unless all
// nodes are wanted.
// Finds no symmetry of its own, such as the rows of a torus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "viz/run.hpp"

namespace simverbs::viz {

struct Place {
    int x = 0;  // points, to the right
    int y = 0;  // points, downwards
    friend bool operator==(const Place&, const Place&) = default;
};

struct Caption {
    std::vector<std::string> lines;
    Place place;  // of its middle
    [[nodiscard]] int width() const;
    [[nodiscard]] int height() const;
};

struct TopologyLayout {
    std::map<std::uint32_t, Place> places;  // middles of the nodes that are drawn
    std::vector<Caption> captions;          // names of layers, how many nodes are left out
    Place low{};                            // corners of all of it
    Place high{};
};

using Weights = std::map<std::uint32_t, std::uint64_t>;  // by node

// The label as a node's box shows it, a long one cut; and the points that the box needs for it.
std::string box_label(const std::string& label);
int box_width(const std::string& label);
inline constexpr int kBoxHeight = 26;

enum class DrawnNodes : std::uint8_t { kThatFit, kAll };

TopologyLayout lay_out(const Run& run, const Weights& weights, DrawnNodes drawn);

}  // namespace simverbs::viz
