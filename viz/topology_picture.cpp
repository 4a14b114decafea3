#include "viz/topology_picture.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "fabric/core/xml_text.hpp"

#include "viz/markup.hpp"
#include "viz/palette.hpp"
#include "viz/topology_labels.hpp"
#include "viz/topology_layout.hpp"

namespace simverbs::viz {
namespace {

using PortName = std::pair<std::uint32_t, std::uint32_t>;  // node, number

constexpr std::size_t kSmall = 9;        // nodes: with no more, links tell their frames too
constexpr std::size_t kMostLabels = 48;  // links that show their numbers
constexpr int kFontSize = 10;            // of labels

PortUse use_of(const Run& run, const PortName& port) {
    const auto found = run.ports.find(port);
    return found == run.ports.end() ? PortUse{} : found->second;
}

std::string bytes_text(std::uint64_t bytes) {
    constexpr std::uint64_t kKibi = 1024;
    return bytes < 10 * kKibi           ? fmt::format("{} B", bytes)
           : bytes < 10 * kKibi * kKibi ? fmt::format("{} KiB", bytes / kKibi)
                                        : fmt::format("{} MiB", bytes / kKibi / kKibi);
}

// The links between two nodes, drawn as one line.
struct Cable {
    std::uint32_t node = 0;
    std::uint32_t peer = 0;
    std::vector<const RunLink*> links;
    PortUse from_node{};
    PortUse from_peer{};
    std::int64_t busy = 0;     // ps on the wire: of the busiest direction of its links
    bool flow_leaves = false;  // `node`; and `peer`
    bool flow_comes = false;

    [[nodiscard]] std::uint64_t bytes() const { return from_node.bytes + from_peer.bytes; }
    [[nodiscard]] std::uint64_t lost() const { return from_node.lost + from_peer.lost; }
    [[nodiscard]] std::size_t down() const {
        return static_cast<std::size_t>(std::ranges::count(links, false, &RunLink::up));
    }
    [[nodiscard]] bool has_flow() const { return flow_leaves || flow_comes; }
};

void add(PortUse& to, const PortUse& more) {
    to.frames += more.frames;
    to.bytes += more.bytes;
    to.lost += more.lost;
}

std::vector<Cable> cables_of(const Run& run, const std::set<PortName>& way) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, Cable> cables;
    for (const RunLink& link : run.links) {
        const bool turned = link.peer < link.node;
        const PortName a =
            turned ? PortName{link.peer, link.peer_port} : PortName{link.node, link.port};
        const PortName b =
            turned ? PortName{link.node, link.port} : PortName{link.peer, link.peer_port};
        if (a.first == b.first) {
            continue;
        }
        Cable& cable = cables[{a.first, b.first}];
        cable.node = a.first;
        cable.peer = b.first;
        cable.links.push_back(&link);
        add(cable.from_node, use_of(run, a));
        add(cable.from_peer, use_of(run, b));
        cable.busy = std::max({cable.busy, link.wire_time(use_of(run, a).bytes),
                               link.wire_time(use_of(run, b).bytes)});
        cable.flow_leaves = cable.flow_leaves || way.contains(a);
        cable.flow_comes = cable.flow_comes || way.contains(b);
    }
    std::vector<Cable> all;
    all.reserve(cables.size());
    for (auto& [ends, cable] : cables) {
        all.push_back(std::move(cable));
    }
    return all;
}

std::set<PortName> way_of(const Run& run, const std::vector<QpName>& flow) {
    std::set<PortName> way;
    for (const RunPacket& packet : run.packets) {
        if (std::ranges::find(flow, packet.from) != flow.end()) {
            for (const Hop& hop : packet.hops) {
                way.insert({hop.node, hop.port});
            }
        }
    }
    return way;
}

// The rate that most links have, the higher one of two.
std::uint64_t usual_rate(const Run& run) {
    std::map<std::uint64_t, std::size_t> count;
    for (const RunLink& link : run.links) {
        ++count[link.bits_per_second];
    }
    std::uint64_t rate = 0;
    std::size_t most = 0;
    for (const auto& [one, links] : count) {
        rate = links >= most ? one : rate;
        most = std::max(most, links);
    }
    return rate;
}

class Picture {
  public:
    Picture(const Run& run, const std::vector<QpName>& flow, DrawnNodes drawn)
        : run_(run), flow_(flow), cables_(cables_of(run, way_of(run, flow))) {
        Weights weights;
        for (const Cable& cable : cables_) {
            constexpr std::uint64_t kFlowFirst = std::uint64_t{1} << 60;
            const std::uint64_t weight = cable.bytes() + (cable.has_flow() ? kFlowFirst : 0);
            most_ = std::max(most_, cable.bytes());
            busiest_ = std::max(busiest_, cable.busy);
            weights[cable.node] = std::max(weights[cable.node], weight);
            weights[cable.peer] = std::max(weights[cable.peer], weight);
        }
        layout_ = lay_out(run, weights, drawn);
        std::erase_if(cables_, [this](const Cable& cable) {
            return !layout_.places.contains(cable.node) || !layout_.places.contains(cable.peer);
        });
        usual_rate_ = usual_rate(run);
    }

    [[nodiscard]] std::string dot() {
        std::string text = fmt::format(
            "graph topology {{\n  graph [layout=neato, inputscale=72, splines=line, "
            "outputorder=edgesfirst, label={}, labelloc=t, fontname=\"Helvetica\", fontsize=16];\n"
            "  node [fontname=\"Helvetica\", fontsize=12, shape=box, style=filled, "
            "fillcolor=\"#ffffff\", fixedsize=true];\n  edge [penwidth=1];\n",
            dot_quoted(title()));
        for (const auto& [number, place] : layout_.places) {
            text += node(number, place);
        }
        for (const Cable& cable : cables_) {
            text += line(cable);
        }
        for (const Caption& caption : layout_.captions) {
            text += label(caption.place, caption.width(), caption.height(), rows_of(caption.lines),
                          kFaint, kFontSize + 1);
        }
        text += labels();
        return text + legend() + "}\n";
    }

  private:
    [[nodiscard]] std::string title() const {
        const bool is_idle = std::all_of(cables_.begin(), cables_.end(),
                                         [](const Cable& cable) { return cable.bytes() == 0; });
        std::string text = fmt::format("{} in {}", is_idle ? "No traffic" : "Traffic",
                                       time_text(run_.end - run_.begin));
        if (usual_rate_ > 0) {
            text += fmt::format("; links of {}", rate_text(usual_rate_));
        }
        for (const QpName& qp : flow_) {
            text += (&qp == flow_.data() ? "; the way of " : ", ") + run_.label(qp);
        }
        return text;
    }

    static std::string at(const Place& place) {
        return fmt::format("pos=\"{},{}!\"", place.x, -place.y);
    }

    // 72 points an inch, in thousandths.
    static std::string inches(int points) {
        const int thousandths = points * 1000 / 72;
        return fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000);
    }

    [[nodiscard]] std::string node(std::uint32_t number, const Place& place) const {
        const RunNode& is = run_.nodes.at(number);
        return fmt::format(
            "  n{} [label={}, shape={}, fillcolor=\"{}\", width={}, height={}, {}];\n", number,
            dot_quoted(box_label(is.label)), is.is_switch ? "box" : "ellipse",
            is.is_switch ? "#e8eef4" : "#ffffff", inches(box_width(is.label)), inches(kBoxHeight),
            at(place));
    }

    [[nodiscard]] bool is_hot(const Cable& cable) const {
        return cable.busy > 0 && cable.busy / 9 >= busiest_ / 10;
    }
    // Less than a twentieth of the busiest one's bytes are not worth a label.
    [[nodiscard]] bool is_busy(const Cable& cable) const {
        return (cable.bytes() > 0 && cable.bytes() * 20 >= most_) || cable.lost() > 0 ||
               (cable.has_flow() && cable.bytes() > 0);
    }

    // From the same time as colour and percentage, so that they agree.
    [[nodiscard]] std::int64_t pen_width(const Cable& cable) const {
        return busiest_ == 0 ? 1 : 1 + cable.busy / std::max<std::int64_t>(1, busiest_ / 5);
    }

    // Returns the percentage of the time of the trace, to a tenth.
    [[nodiscard]] std::string share_busy(const Cable& cable) const {
        const std::int64_t span = std::max<std::int64_t>(1, run_.end - run_.begin);
        __extension__ using Wide = __int128;
        const auto tenths = static_cast<std::int64_t>(
            std::min<Wide>(1000, (Wide{cable.busy} * 2000 + span) / (2 * Wide{span})));
        return tenths == 0 ? std::string() : fmt::format("{}.{} % busy", tenths / 10, tenths % 10);
    }

    [[nodiscard]] std::string_view colour(const Cable& cable) const {
        return cable.down() > 0   ? kVermilion
               : cable.has_flow() ? kBlue
               : is_hot(cable)    ? kOrange
                                  : kInk;
    }

    [[nodiscard]] std::string line(const Cable& cable) {
        used_.insert(colour(cable));
        return fmt::format("  n{} -- n{} [penwidth={}, color=\"{}\", style={}, dir={}];\n",
                           cable.node, cable.peer, pen_width(cable), colour(cable),
                           cable.down() > 0 ? "dashed" : "solid",
                           cable.flow_leaves && cable.flow_comes ? "both"
                           : cable.flow_leaves                   ? "forward"
                           : cable.flow_comes                    ? "back"
                                                                 : "none");
    }

    static std::string rows_of(const std::vector<std::string>& lines) {
        std::string rows;
        for (const std::string& line : lines) {
            rows += fmt::format("<tr><td align=\"left\">{}</td></tr>", fabric::xml_text(line));
        }
        return rows;
    }

    [[nodiscard]] std::string label(const Place& place, int width, int height,
                                    const std::string& rows, std::string_view colour,
                                    int font_size) {
        lowest_ = std::max(lowest_, place.y + height / 2);
        return fmt::format(
            "  t{} [shape=plaintext, margin=0, width={}, height={}, fontsize={}, fontcolor=\"{}\", "
            "{}, label={}];\n",
            labels_++, inches(width), inches(height), font_size, colour, at(place),
            html_label(fmt::format(
                "<table border=\"0\" cellspacing=\"0\" cellpadding=\"0\">{}</table>", rows)));
    }

    void add_direction(std::uint32_t from, const PortUse& use,
                       std::vector<std::string>& lines) const {
        if (use.frames > 0) {
            lines.push_back(
                run_.nodes.size() <= kSmall
                    ? fmt::format("{}: {} frame{}, {}", box_label(run_.label(from)), use.frames,
                                  use.frames == 1 ? "" : "s", bytes_text(use.bytes))
                    : fmt::format("{}: {}", box_label(run_.label(from)), bytes_text(use.bytes)));
        }
    }

    // Returns the words of a cable's label.
    [[nodiscard]] std::vector<std::string> words(const Cable& cable) const {
        std::vector<std::string> lines;
        const std::size_t count = cable.links.size();
        if (cable.down() > 0) {
            lines.push_back(count == 1 ? "DOWN"
                                       : fmt::format("{} of {} down", cable.down(), count));
        } else if (count > 1) {
            lines.push_back(fmt::format("{} links", count));
        }
        if (cable.links.front()->bits_per_second != usual_rate_) {
            lines.push_back(rate_text(cable.links.front()->bits_per_second));
        }
        if (!is_busy(cable)) {
            return lines;
        }
        if (std::string busy = share_busy(cable); !busy.empty()) {
            lines.push_back(std::move(busy));
        }
        add_direction(cable.node, cable.from_node, lines);
        add_direction(cable.peer, cable.from_peer, lines);
        for (const auto& [end, use] :
             {std::pair(cable.node, &cable.from_node), std::pair(cable.peer, &cable.from_peer)}) {
            if (use->lost > 0) {
                lines.push_back(
                    fmt::format("{} lost at {}", use->lost, box_label(run_.label(end))));
            }
        }
        return lines;
    }

    [[nodiscard]] Segment segment(const Cable& cable) const {
        return {layout_.places.at(cable.node), layout_.places.at(cable.peer)};
    }

    static Place along(const Segment& line, int percent) {
        return {line.from.x + (line.to.x - line.from.x) * percent / 100,
                line.from.y + (line.to.y - line.from.y) * percent / 100};
    }

    // The numbers of the busiest links first, then the numbers of the switches' ports.
    [[nodiscard]] std::string labels() {
        std::vector<Rectangle> taken;
        std::vector<Segment> lines;
        for (const auto& [number, place] : layout_.places) {
            taken.push_back({place, box_width(run_.label(number)) + 8, kBoxHeight + 8});
        }
        for (const Caption& caption : layout_.captions) {
            taken.push_back({caption.place, caption.width(), caption.height()});
        }
        std::vector<const Cable*> order;
        for (const Cable& cable : cables_) {
            lines.push_back(segment(cable));
            order.push_back(&cable);
        }
        std::stable_sort(order.begin(), order.end(),
                         [](const Cable* a, const Cable* b) { return a->bytes() > b->bytes(); });
        LabelPlaces places(std::move(taken), std::move(lines));
        std::string text;
        for (const Cable* cable : order) {
            text += numbers(*cable, places);
        }
        for (const Cable* cable : order) {
            text += port_numbers(*cable, cable->node, places);
            text += port_numbers(*cable, cable->peer, places);
        }
        return text;
    }

    [[nodiscard]] std::string numbers(const Cable& cable, LabelPlaces& places) {
        const std::vector<std::string> lines = words(cable);
        if (lines.empty()) {
            return {};
        }
        std::size_t longest = 0;
        for (const std::string& one : lines) {
            longest = std::max(longest, one.size());
        }
        const int width = static_cast<int>(longest) * 13 / 2 + 6;
        const int height = static_cast<int>(lines.size()) * (kFontSize + 3) + 4;
        const Segment line = segment(cable);
        std::vector<Place> on_line;
        for (const int percent : {50, 42, 58, 34, 66, 28, 72, 22, 78}) {
            on_line.push_back(along(line, percent));
        }
        const std::vector<Place> clear = beside(line, width, height);
        std::optional<Place> place;
        if (numbered_ < kMostLabels) {
            place = places.take_near(line, clear, width, height);
        }
        if (numbered_ < kMostLabels && !place) {
            place = places.take_near(line, at_host(cable, width, height), width, height);
        }
        if (numbered_ < kMostLabels && !place) {
            place = places.take(on_line, width, height, cables_.size());
        }
        if (numbered_ < kMostLabels && !place) {
            place = places.take(clear, width, height, 1);
        }
        ++(place ? numbered_ : without_numbers_);
        return place ? label(*place, width, height, rows_of(lines), kInk, kFontSize)
                     : std::string();
    }

    // Beside and above the box of the host, where the cable is its only one.
    [[nodiscard]] std::vector<Place> at_host(const Cable& cable, int width, int height) const {
        std::vector<Place> places;
        for (const std::uint32_t node : {cable.node, cable.peer}) {
            const auto cables = std::count_if(
                cables_.begin(), cables_.end(),
                [node](const Cable& one) { return one.node == node || one.peer == node; });
            if (run_.nodes.at(node).is_switch || cables != 1) {
                continue;
            }
            const Place host = layout_.places.at(node);
            const int across = (box_width(run_.label(node)) + width) / 2 + 4;
            const int along = (kBoxHeight + height) / 2 + 4;
            for (const auto& [x, y] : {std::pair{1, 0}, {-1, 0}, {0, -1}}) {
                places.push_back({host.x + x * across, host.y + y * along});
            }
        }
        return places;
    }

    // Both sides of the line, as near as a label of that size comes.
    static std::vector<Place> beside(const Segment& line, int width, int height) {
        const double dx = line.to.x - line.from.x;
        const double dy = line.to.y - line.from.y;
        const double length = std::max(1.0, std::hypot(dx, dy));
        const double touching = (std::abs(dx) * height + std::abs(dy) * width) / (2 * length);
        std::vector<Place> places;
        for (const int percent : {50, 42, 58, 66, 74, 34}) {
            for (const double away : {5, -5, 12, -12}) {
                const double side = away < 0 ? away - touching : away + touching;
                const Place middle = along(line, percent);
                places.push_back({middle.x - static_cast<int>(dy * side / length),
                                  middle.y + static_cast<int>(dx * side / length)});
            }
        }
        return places;
    }

    // Beside the line, near the end at `node`; hosts with a single cable need none.
    [[nodiscard]] std::string port_numbers(const Cable& cable, std::uint32_t node,
                                           LabelPlaces& places) {
        const bool is_first = node == cable.node;
        if (!run_.nodes.at(node).is_switch && cable.links.size() == 1) {
            return {};
        }
        std::string ports;
        for (const RunLink* link : cable.links) {
            ports += fmt::format("{}{}", ports.empty() ? "" : ",",
                                 link->node == node ? link->port : link->peer_port);
        }
        Segment line = segment(cable);
        if (!is_first) {
            std::swap(line.from, line.to);
        }
        const double dx = line.to.x - line.from.x;
        const double dy = line.to.y - line.from.y;
        const double length = std::max(1.0, std::hypot(dx, dy));
        const int width = static_cast<int>(ports.size()) * 6 + 4;
        std::vector<Place> candidates;
        for (const int away : {26, 34, 42, 52}) {
            for (const int side : {9, -9, 12, -12}) {
                candidates.push_back(
                    {line.from.x + static_cast<int>((dx * away - dy * side) / length),
                     line.from.y + static_cast<int>((dy * away + dx * side) / length)});
            }
        }
        const std::optional<Place> place = places.take(candidates, width, 11, 0);
        has_port_numbers_ = has_port_numbers_ || place.has_value();
        return place ? label(*place, width, 11, rows_of({ports}), kFaint, kFontSize - 1)
                     : std::string();
    }

    [[nodiscard]] std::string legend() {
        std::string rows;
        int lines = 1;
        const auto add = [&rows, &lines](std::string_view colour, std::string_view sample,
                                         std::string_view words) {
            rows += fmt::format(
                "<tr><td align=\"left\"><font color=\"{}\"><b>{}</b>&#160;&#160;</font></td><td "
                "align=\"left\">{}</td></tr>",
                colour, sample, words);
            ++lines;
        };
        constexpr std::string_view kLine = "&#9472;&#9472;&#9472;";
        add(kInk, kLine,
            fmt::format("thicker: longer busy in one direction{}",
                        has_port_numbers_ ? "; numbers of ports stand beside switches" : ""));
        if (used_.contains(kOrange)) {
            add(kOrange, kLine, "at least 90 % as busy as the busiest");
        }
        if (used_.contains(kBlue)) {
            add(kBlue, "&#9472;&#9472;&#9658;", "the flow, with its direction");
        }
        if (used_.contains(kVermilion)) {
            add(kVermilion, "&#9476;&#9476;&#9476;", "down");
        }
        if (without_numbers_ > 0) {
            add(kInk, "&#160;",
                fmt::format("links without room for their numbers: {}", without_numbers_));
        }
        const int lowest = std::max(layout_.high.y, lowest_);
        const Place place{(layout_.low.x + layout_.high.x) / 2, lowest + 24 + 9 * lines};
        return fmt::format(
            "  legend [style=rounded, color=\"{}\", fontsize=11, fixedsize=false, {}, label={}];\n",
            kFaint, at(place),
            html_label(fmt::format(
                "<table border=\"0\" cellspacing=\"0\" cellpadding=\"1\">{}</table>", rows)));
    }

    const Run& run_;
    const std::vector<QpName>& flow_;
    std::vector<Cable> cables_;
    TopologyLayout layout_;
    std::uint64_t most_ = 1;    // bytes of a cable
    std::int64_t busiest_ = 0;  // ps: of all cables
    std::uint64_t usual_rate_ = 0;
    std::set<std::string_view> used_;  // colours
    bool has_port_numbers_ = false;
    std::size_t labels_ = 0;           // texts
    int lowest_ = 0;                   // edge of a text; the legend is below
    std::size_t numbered_ = 0;         // cables with their numbers
    std::size_t without_numbers_ = 0;  // for want of room
};

}  // namespace

std::string topology_picture(const Run& run, const std::vector<QpName>& flow, DrawnNodes drawn) {
    return Picture(run, flow, drawn).dot();
}

}  // namespace simverbs::viz
