#include "viz/topology_layout.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace simverbs::viz {
namespace {

constexpr int kLeastSpace = 64;  // between the middles of neighbours in a layer
constexpr int kBetweenCircles = 110;

// Says what a picture takes of a large fabric.
struct Bounds {
    int widest = 1240;           // points, of a layer or a circle
    std::size_t on_circle = 40;  // hosts, and switches
};
constexpr Bounds bounds_of(DrawnNodes drawn) {
    return drawn == DrawnNodes::kAll
               ? Bounds{std::numeric_limits<int>::max(), std::numeric_limits<std::size_t>::max()}
               : Bounds{};
}

using Nodes = std::vector<std::uint32_t>;
using Neighbours = std::map<std::uint32_t, std::set<std::uint32_t>>;

Neighbours neighbours_of(const Run& run) {
    Neighbours all;
    for (const RunLink& link : run.links) {
        if (link.node != link.peer) {
            all[link.node].insert(link.peer);
            all[link.peer].insert(link.node);
        }
    }
    return all;
}

// The hosts, then the switches by their distance from the nearest host. Switches that no host
// reaches are in the last layer.
std::vector<Nodes> layers_of(const Run& run, const Neighbours& neighbours) {
    std::vector<Nodes> layers(1);
    std::set<std::uint32_t> placed;
    for (const auto& [number, node] : run.nodes) {
        if (!node.is_switch) {
            layers[0].push_back(number);
            placed.insert(number);
        }
    }
    while (true) {
        std::set<std::uint32_t> next;
        for (const std::uint32_t below : layers.back()) {
            const auto found = neighbours.find(below);
            if (found != neighbours.end()) {
                next.insert(found->second.begin(), found->second.end());
            }
        }
        std::erase_if(next, [&placed](std::uint32_t node) { return placed.contains(node); });
        if (next.empty()) {
            break;
        }
        placed.insert(next.begin(), next.end());
        layers.emplace_back(next.begin(), next.end());
    }
    Nodes rest;
    for (const auto& [number, node] : run.nodes) {
        if (!placed.contains(number)) {
            rest.push_back(number);
        }
    }
    if (!rest.empty()) {
        layers.push_back(std::move(rest));
    }
    return layers;
}

// Keeps the `most` nodes with the greatest weight, in their order. Returns how many are left out.
std::size_t keep(Nodes& nodes, std::size_t most, const Weights& weights) {
    if (nodes.size() <= most) {
        return 0;
    }
    const auto weight = [&weights](std::uint32_t node) {
        const auto found = weights.find(node);
        return found == weights.end() ? 0 : found->second;
    };
    Nodes kept = nodes;
    std::stable_sort(kept.begin(), kept.end(),
                     [&weight](std::uint32_t a, std::uint32_t b) { return weight(a) > weight(b); });
    kept.resize(most);
    const std::set<std::uint32_t> stay(kept.begin(), kept.end());
    const std::size_t all = nodes.size();
    std::erase_if(nodes, [&stay](std::uint32_t node) { return !stay.contains(node); });
    return all - nodes.size();
}

// Removes the hosts all of whose switches are left out: they would stand there without a link.
std::size_t remove_unlinked(Nodes& hosts, const Nodes& switches, const Nodes& drawn,
                            const Neighbours& neighbours) {
    const std::set<std::uint32_t> all(switches.begin(), switches.end());
    const std::set<std::uint32_t> kept(drawn.begin(), drawn.end());
    return std::erase_if(hosts, [&](std::uint32_t host) {
        const auto found = neighbours.find(host);
        if (found == neighbours.end()) {
            return false;
        }
        const auto is_in = [&found](const std::set<std::uint32_t>& nodes) {
            return std::any_of(found->second.begin(), found->second.end(),
                               [&nodes](std::uint32_t node) { return nodes.contains(node); });
        };
        return is_in(all) && !is_in(kept);
    });
}

// Orders a layer by the mean place that its neighbours have in another one, in 1/1000.
void order_by(const Nodes& other, const Neighbours& neighbours, Nodes& layer) {
    std::map<std::uint32_t, std::size_t> mean;
    for (const std::uint32_t node : layer) {
        std::size_t sum = 0;
        std::size_t count = 0;
        for (std::size_t i = 0; i < other.size(); ++i) {
            const auto found = neighbours.find(node);
            if (found != neighbours.end() && found->second.contains(other[i])) {
                sum += i * 1000;
                ++count;
            }
        }
        mean[node] = count == 0 ? std::numeric_limits<std::size_t>::max() : sum / count;
    }
    std::stable_sort(layer.begin(), layer.end(),
                     [&mean](std::uint32_t a, std::uint32_t b) { return mean[a] < mean[b]; });
}

std::string layer_name(std::size_t layer, std::size_t layers) {
    constexpr std::array<std::string_view, 3> kOfThree = {"hosts", "leaf", "spine"};
    constexpr std::array<std::string_view, 4> kOfFour = {"hosts", "edge", "aggregation", "core"};
    return layers == kOfThree.size()  ? std::string(kOfThree.at(layer))
           : layers == kOfFour.size() ? std::string(kOfFour.at(layer))
           : layer == 0               ? "hosts"
                                      : fmt::format("layer {}", layer);
}

TopologyLayout in_layers(const Run& run, std::vector<Nodes> layers, const Neighbours& neighbours,
                         const Weights& weights, const Bounds& bounds) {
    TopologyLayout layout;
    std::vector<std::size_t> left_out(layers.size());
    int width = 0;
    int least = Bounds{}.widest;
    const Nodes switches = layers[1];
    for (std::size_t i = layers.size(); i-- > 0;) {  // hosts last, when their switches are known
        Nodes& layer = layers[i];
        int space = kLeastSpace;
        for (const std::uint32_t node : layer) {
            space = std::max(space, box_width(run.label(node)) + 12);
        }
        left_out[i] = i == 0 ? remove_unlinked(layer, switches, layers[1], neighbours) : 0;
        left_out[i] += keep(layer, static_cast<std::size_t>(bounds.widest / space), weights);
        least = std::max(least, space * static_cast<int>(layer.size()));
        width = std::max(width, 2 * space * static_cast<int>(layer.size()));
    }
    width = std::min(width, least);
    order_by(layers[0], neighbours, layers[1]);
    order_by(layers[1], neighbours, layers[0]);
    order_by(layers[1], neighbours, layers[2]);
    const int gap = std::clamp(width / 6, 130, 190);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const int y = gap * static_cast<int>(layers.size() - 1 - i);
        const auto count = static_cast<int>(layers[i].size());
        for (int at = 0; at < count; ++at) {
            layout.places[layers[i][static_cast<std::size_t>(at)]] = {
                (2 * at + 1) * width / (2 * count), y};
        }
        Caption caption{{layer_name(i, layers.size())}, {0, y}};
        if (left_out[i] > 0) {
            caption.lines.push_back(fmt::format("{} not drawn", left_out[i]));
        }
        caption.place.x = -caption.width() / 2;
        layout.captions.push_back(std::move(caption));
    }
    return layout;
}

// Follows links from the lowest number on, so that a ring's neighbours become neighbours.
void walk(std::uint32_t from, const Neighbours& neighbours, const std::set<std::uint32_t>& all,
          Nodes& order) {
    Nodes pending{from};
    while (!pending.empty()) {
        const std::uint32_t node = pending.back();
        pending.pop_back();
        if (!all.contains(node) || std::find(order.begin(), order.end(), node) != order.end()) {
            continue;
        }
        order.push_back(node);
        const auto found = neighbours.find(node);
        if (found != neighbours.end()) {
            pending.insert(pending.end(), found->second.rbegin(), found->second.rend());
        }
    }
}

Place on_circle(double turn, double radius) {
    const double angle = 2 * std::numbers::pi * turn;
    return {static_cast<int>(std::lround(-radius * std::cos(angle))),
            static_cast<int>(std::lround(-radius * std::sin(angle)))};
}

// The nodes on the circles: switches in their order, each with its hosts outside of it.
struct Circles {
    Nodes switches;
    std::map<std::uint32_t, Nodes> hosts_of;
    Nodes alone;  // hosts without a switch
    std::size_t left_out = 0;

    [[nodiscard]] std::size_t slots_of(std::uint32_t node) const {  // at least one
        const auto found = hosts_of.find(node);
        return found == hosts_of.end() ? 1 : std::max<std::size_t>(1, found->second.size());
    }
    [[nodiscard]] std::size_t slots() const {
        std::size_t all = alone.size();
        for (const std::uint32_t node : switches) {
            all += slots_of(node);
        }
        return std::max<std::size_t>(1, all);
    }
    [[nodiscard]] bool is_star() const { return switches.size() == 1 && alone.empty(); }
};

Circles circles_of(Nodes hosts, Nodes switches, std::size_t most, const Neighbours& neighbours,
                   const Weights& weights) {
    Circles circles;
    const Nodes all = switches;
    circles.left_out = keep(switches, most, weights);
    circles.left_out += remove_unlinked(hosts, all, switches, neighbours);
    circles.left_out += keep(hosts, most, weights);
    const std::set<std::uint32_t> inner(switches.begin(), switches.end());
    Nodes& order = circles.switches;
    for (const std::uint32_t node : switches) {
        walk(node, neighbours, inner, order);
    }
    for (const std::uint32_t host : hosts) {
        const auto found = neighbours.find(host);
        const auto home = found == neighbours.end()
                              ? order.end()
                              : std::find_if(order.begin(), order.end(), [&](std::uint32_t node) {
                                    return found->second.contains(node);
                                });
        (home == order.end() ? circles.alone : circles.hosts_of[*home]).push_back(host);
    }
    return circles;
}

// Returns the radius of the outer circle; switches on the inner one have room for their boxes, too.
double radius_of(const Run& run, const Circles& circles) {
    int space = kLeastSpace;
    for (const std::uint32_t node : circles.switches) {
        space = std::max(space, circles.is_star() ? 0 : box_width(run.label(node)) + 10);
    }
    const double inner = static_cast<double>(circles.slots()) * space / (2 * std::numbers::pi);
    return std::max(230.0, inner + (circles.is_star() ? 0 : kBetweenCircles));
}

// Switches on an inner circle, their hosts outside of them; a single switch in the middle.
TopologyLayout on_circles(const Run& run, const Nodes& hosts, const Nodes& switches,
                          const Neighbours& neighbours, const Weights& weights,
                          const Bounds& bounds) {
    std::size_t most = bounds.on_circle;
    Circles circles = circles_of(hosts, switches, most, neighbours, weights);
    while (radius_of(run, circles) * 2 > bounds.widest && most > 4) {
        most -= 2;
        circles = circles_of(hosts, switches, most, neighbours, weights);
    }
    const double radius = radius_of(run, circles);
    const std::size_t slots = circles.slots();
    const auto turn = [slots](std::size_t twice) {
        return static_cast<double>(twice) / (2 * static_cast<double>(slots));
    };
    TopologyLayout layout;
    std::size_t slot = 0;
    for (const std::uint32_t node : circles.switches) {
        const std::size_t taken = circles.slots_of(node);
        layout.places[node] = circles.is_star()
                                  ? Place{}
                                  : on_circle(turn(2 * slot + taken - 1), radius - kBetweenCircles);
        for (const std::uint32_t host : circles.hosts_of[node]) {
            layout.places[host] = on_circle(turn(2 * slot++), radius);
        }
        slot += circles.hosts_of[node].empty() ? 1 : 0;
    }
    for (const std::uint32_t host : circles.alone) {
        layout.places[host] = on_circle(turn(2 * slot++), radius);
    }
    if (circles.left_out > 0) {
        layout.captions.push_back({{fmt::format("{} nodes not drawn", circles.left_out)},
                                   {0, static_cast<int>(radius) + 40}});
    }
    return layout;
}

}  // namespace

int Caption::width() const {
    constexpr int kCharacter = 8;
    std::size_t longest = 0;
    for (const std::string& line : lines) {
        longest = std::max(longest, line.size());
    }
    return static_cast<int>(longest) * kCharacter;
}

int Caption::height() const {
    constexpr int kLine = 15;
    return static_cast<int>(lines.size()) * kLine;
}

std::string box_label(const std::string& label) {
    constexpr std::size_t kLongest = 20;
    return label.size() <= kLongest ? label : label.substr(0, kLongest - 3) + "...";
}

int box_width(const std::string& label) {
    constexpr int kCharacter = 8;  // at the size that the picture uses, in a wide font
    return static_cast<int>(box_label(label).size()) * kCharacter + 20;
}

TopologyLayout lay_out(const Run& run, const Weights& weights, DrawnNodes drawn) {
    const Bounds bounds = bounds_of(drawn);
    const Neighbours neighbours = neighbours_of(run);
    std::vector<Nodes> layers = layers_of(run, neighbours);
    TopologyLayout layout;
    if (layers.size() > 2 && !layers[0].empty()) {
        layout = in_layers(run, std::move(layers), neighbours, weights, bounds);
    } else {
        layers.resize(2);
        layout = on_circles(run, layers[0], layers[1], neighbours, weights, bounds);
    }
    for (const auto& [number, place] : layout.places) {
        const int half = box_width(run.label(number)) / 2;
        layout.low = {std::min(layout.low.x, place.x - half),
                      std::min(layout.low.y, place.y - kBoxHeight / 2)};
        layout.high = {std::max(layout.high.x, place.x + half),
                       std::max(layout.high.y, place.y + kBoxHeight / 2)};
    }
    for (const Caption& caption : layout.captions) {
        layout.low.x = std::min(layout.low.x, caption.place.x - caption.width() / 2);
        layout.high.y = std::max(layout.high.y, caption.place.y + caption.height() / 2);
    }
    return layout;
}

}  // namespace simverbs::viz
