#include "viz/topology_picture.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "viz/markup.hpp"
#include "viz/palette.hpp"

namespace simverbs::viz {
namespace {

using PortName = std::pair<std::uint32_t, std::uint32_t>;  // node, number

PortUse use_of(const Run& run, const PortName& port) {
    const auto found = run.ports.find(port);
    return found == run.ports.end() ? PortUse{} : found->second;
}

std::uint64_t bytes_on(const Run& run, const RunLink& link) {
    return use_of(run, {link.node, link.port}).bytes +
           use_of(run, {link.peer, link.peer_port}).bytes;
}

// Per thousand of what the busier direction could have carried in the time of the trace.
std::uint64_t load_of(const Run& run, const RunLink& link) {
    const auto span = static_cast<std::uint64_t>(run.end - run.begin);
    const std::uint64_t bytes = std::max(use_of(run, {link.node, link.port}).bytes,
                                         use_of(run, {link.peer, link.peer_port}).bytes);
    constexpr std::uint64_t kPicosecondsAMicrosecond = 1'000'000;
    const std::uint64_t could =
        link.bits_per_second / 8'000'000 * (span / kPicosecondsAMicrosecond);  // bytes
    return could == 0 ? 0 : std::min<std::uint64_t>(1000, bytes * 1000 / could);
}

std::string bytes_text(std::uint64_t bytes) {
    constexpr std::uint64_t kKibi = 1024;
    return bytes < 10 * kKibi           ? fmt::format("{} B", bytes)
           : bytes < 10 * kKibi * kKibi ? fmt::format("{} KiB", bytes / kKibi)
                                        : fmt::format("{} MiB", bytes / kKibi / kKibi);
}

std::string direction_row(const Run& run, std::uint32_t from, const PortUse& use) {
    return fmt::format(
        "<tr><td align=\"left\">from {}: {} frames, {}</td></tr>{}", escaped(run.label(from)),
        use.frames, bytes_text(use.bytes),
        use.lost == 0 ? std::string()
                      : fmt::format("<tr><td align=\"left\"><font color=\"{}\"><b>{} lost there</b>"
                                    "</font></td></tr>",
                                    kVermilion, use.lost));
}

}  // namespace

std::string topology_picture(const Run& run, const std::optional<QpName>& flow) {
    std::set<PortName> way;
    if (flow) {
        for (const RunPacket& packet : run.packets) {
            if (packet.from == *flow) {
                for (const Hop& hop : packet.hops) {
                    way.insert({hop.node, hop.port});
                }
            }
        }
    }
    std::uint64_t most = 1;
    for (const RunLink& link : run.links) {
        most = std::max(most, bytes_on(run, link));
    }
    std::string text = fmt::format(
        "graph topology {{\n  graph [label={}, labelloc=t, fontname=\"Helvetica\", fontsize=16, "
        "overlap=false, ranksep=0.9];\n  node [fontname=\"Helvetica\", fontsize=13];\n  edge "
        "[fontname=\"Helvetica\", fontsize=10];\n",
        dot_quoted(flow ? fmt::format("{} in {}; the way of {}", "Traffic",
                                      time_text(run.end - run.begin), run.label(*flow))
                        : fmt::format("Traffic in {}", time_text(run.end - run.begin))));
    for (const auto& [number, node] : run.nodes) {
        text += fmt::format("  n{} [label={}, shape={}, style=filled, fillcolor=\"{}\"];\n", number,
                            dot_quoted(node.label), node.is_switch ? "box" : "ellipse",
                            node.is_switch ? "#e8eef4" : "#ffffff");
    }
    for (const RunLink& link : run.links) {
        const PortName a{link.node, link.port};
        const PortName b{link.peer, link.peer_port};
        const bool from_a = way.contains(a);
        const bool from_b = way.contains(b);
        const std::uint64_t load = load_of(run, link);
        const bool is_hot = bytes_on(run, link) * 10 >= most * 9 && most > 1;
        std::string rows = fmt::format(
            "<tr><td align=\"left\"><b>{}</b> {}{}</td></tr>", rate_text(link.bits_per_second),
            link.up ? "up" : "<b>DOWN</b>",
            load > 0 ? fmt::format(", {}.{} % busy", load / 10, load % 10) : std::string());
        rows += direction_row(run, link.node, use_of(run, a));
        rows += direction_row(run, link.peer, use_of(run, b));
        text += fmt::format(
            "  n{} -- n{} [taillabel=\"{}\", headlabel=\"{}\", penwidth={}, color=\"{}\", "
            "style={}, "
            "dir={}, label=<<table border=\"0\" cellspacing=\"0\" "
            "cellpadding=\"1\">{}</table>>];\n",
            link.node, link.peer, link.port, link.peer_port, 1 + bytes_on(run, link) * 5 / most,
            from_a || from_b ? kBlue
            : !link.up       ? kVermilion
            : is_hot         ? kOrange
                             : kInk,
            link.up ? "solid" : "dashed",
            from_a && from_b ? "both"
            : from_a         ? "forward"
            : from_b         ? "back"
                             : "none",
            rows);
    }
    text += fmt::format(
        "  legend [shape=box, style=rounded, color=\"{0}\", fontsize=10, label=<<table "
        "border=\"0\" "
        "cellspacing=\"0\"><tr><td align=\"left\">thicker: more bytes</td></tr><tr><td "
        "align=\"left\"><font color=\"{1}\"><b>orange</b></font>: the busiest</td></tr><tr><td "
        "align=\"left\"><font color=\"{2}\"><b>red, dashed</b></font>: "
        "down</td></tr>{3}</table>>];\n",
        kFaint, kOrange, kVermilion,
        flow ? fmt::format("<tr><td align=\"left\"><font color=\"{}\"><b>blue, arrow</b></font>: "
                           "the flow</td></tr>",
                           kBlue)
             : std::string());
    return text + "}\n";
}

}  // namespace simverbs::viz
