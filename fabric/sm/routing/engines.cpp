#include "fabric/sm/routing/engines.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/core.h>

namespace fabric::routing {

namespace {

// The ports by which each switch may forward towards one target.
struct NextPorts {
    std::vector<std::uint32_t> first;  // of `ports`, by switch; one more at the end
    std::vector<std::uint16_t> ports;
    std::vector<SwitchIndex> farthest_first;  // those that have any; links from the target count

    [[nodiscard]] std::span<const std::uint16_t> of(SwitchIndex one) const {
        return std::span(ports).subspan(first[one], first[one + 1] - first[one]);
    }
};

// Sorts by `hops`, which are below the number of switches.
void order_by_hops(const std::vector<std::uint32_t>& hops, std::vector<SwitchIndex>& order) {
    std::vector<std::uint32_t> begins(hops.size() + 1, 0);
    std::uint32_t count = 0;
    for (const std::uint32_t one : hops) {
        if (one != kUnreachable && one != 0) {
            ++begins[hops.size() - one];
            ++count;
        }
    }
    std::exclusive_scan(begins.begin(), begins.end(), begins.begin(), 0U);
    order.resize(count);
    for (SwitchIndex i = 0; i < hops.size(); ++i) {
        if (hops[i] != kUnreachable && hops[i] != 0) {
            order[begins[hops.size() - hops[i]]++] = i;
        }
    }
}

// Keeps the ports of each switch that `leads(from, neighbour)`.
template <class Leads>
void collect(const Graph& graph, const std::vector<std::uint32_t>& hops, NextPorts& next,
             const Leads& leads) {
    order_by_hops(hops, next.farthest_first);
    next.first.clear();
    next.ports.clear();
    const auto switches = static_cast<SwitchIndex>(graph.switch_count());
    for (SwitchIndex from = 0; from < switches; ++from) {
        next.first.push_back(static_cast<std::uint32_t>(next.ports.size()));
        const std::span<const Neighbour> ports = graph.ports(from);
        for (std::size_t port = 1; port < ports.size(); ++port) {
            if (ports[port].at != kNobody && leads(from, ports[port].at)) {
                next.ports.push_back(static_cast<std::uint16_t>(port));
            }
        }
    }
    next.first.push_back(static_cast<std::uint32_t>(next.ports.size()));
}

void shortest_to(const Graph& graph, SwitchIndex target, NextPorts& next) {
    const std::vector<std::uint32_t> hops = hops_to(graph, target);
    collect(graph, hops, next, [&hops](SwitchIndex from, SwitchIndex to) {
        return hops[from] != kUnreachable && hops[to] + 1 == hops[from];
    });
}

// Which of two switches is above: the one of lower height, then of lower index.
class Order {
  public:
    explicit Order(const std::vector<std::uint32_t>& heights) : place_(heights.size()) {
        from_top_.resize(heights.size());
        std::iota(from_top_.begin(), from_top_.end(), SwitchIndex{0});
        std::stable_sort(
            from_top_.begin(), from_top_.end(),
            [&heights](SwitchIndex a, SwitchIndex b) { return heights[a] < heights[b]; });
        for (std::size_t i = 0; i < from_top_.size(); ++i) {
            place_[from_top_[i]] = i;
        }
    }
    [[nodiscard]] bool is_above(SwitchIndex a, SwitchIndex b) const {
        return place_[a] < place_[b];
    }
    [[nodiscard]] std::span<const SwitchIndex> from_top() const { return from_top_; }

  private:
    std::vector<SwitchIndex> from_top_;
    std::vector<std::size_t> place_;
};

// A switch that can go down all the way does so, even where a way up and down were shorter: what
// came down to it must not go up again, and its table does not know where a packet came from.
class UpDownSearch {
  public:
    UpDownSearch(const Graph& graph, const Order& order) : graph_(graph), order_(order) {}

    void find_to(SwitchIndex target, NextPorts& next) {
        climb_from(target);
        for (const SwitchIndex one : order_.from_top()) {
            if (down_[one] != kUnreachable) {
                hops_[one] = down_[one];
                continue;
            }
            for (const Neighbour& up : graph_.ports(one)) {
                if (up.at != kNobody && order_.is_above(up.at, one) &&
                    hops_[up.at] != kUnreachable) {
                    hops_[one] = std::min(hops_[one], hops_[up.at] + 1);
                }
            }
        }
        collect(graph_, hops_, next, [this](SwitchIndex from, SwitchIndex to) {
            if (hops_[from] == kUnreachable || hops_[from] == 0) {
                return false;
            }
            const bool goes_down = down_[from] != kUnreachable;
            return goes_down ? order_.is_above(from, to) && down_[to] == down_[from] - 1
                             : order_.is_above(to, from) && hops_[to] == hops_[from] - 1;
        });
    }

  private:
    // Fills down_: links from each switch from which the target is reached by going down only.
    void climb_from(SwitchIndex target) {
        down_.assign(graph_.switch_count(), kUnreachable);
        hops_.assign(graph_.switch_count(), kUnreachable);
        queue_.assign(1, target);
        down_[target] = 0;
        for (std::size_t i = 0; i < queue_.size(); ++i) {
            const SwitchIndex one = queue_[i];
            for (const Neighbour& up : graph_.ports(one)) {
                if (up.at != kNobody && order_.is_above(up.at, one) &&
                    down_[up.at] == kUnreachable) {
                    down_[up.at] = down_[one] + 1;
                    queue_.push_back(up.at);
                }
            }
        }
    }

    const Graph& graph_;
    const Order& order_;
    std::vector<std::uint32_t> down_;
    std::vector<std::uint32_t> hops_;
    std::vector<SwitchIndex> queue_;
};

// Fills tables: `find(target, next)` has the ports, `choice` picks one of them.
template <class Find, class Choice>
Tables fill(const Graph& graph, Find&& find, Choice choice) {
    Tables tables(graph.switch_count(), graph.lid_count());
    const auto destinations = graph.destinations_by_switch();
    const auto switches = static_cast<SwitchIndex>(graph.switch_count());
    NextPorts next;
    for (SwitchIndex target = 0; target < switches; ++target) {
        if (destinations[target].empty()) {
            continue;
        }
        find(target, next);
        for (const Destination& one : destinations[target]) {
            tables.set(target, one.lid, one.port);
            choice.begin(one);
            for (const SwitchIndex from : next.farthest_first) {
                tables.set(from, one.lid, choice.pick(from, next.of(from)));
            }
        }
    }
    return tables;
}

// The port that fewest routes between hosts lead through so far, the first of equals; only those
// that really come by are counted. LIDs of switches carry next to nothing and are spread by number.
class LeastUsed {
  public:
    explicit LeastUsed(const Graph& graph) : graph_(graph), hosts_(graph.hosts_by_switch()) {
        const auto switches = static_cast<SwitchIndex>(graph.switch_count());
        for (SwitchIndex one = 0; one < switches; ++one) {
            used_.emplace_back(graph.ports(one).size(), 0);
        }
    }
    void begin(const Destination& destination) {
        destination_ = destination;
        coming_by_.assign(hosts_.begin(), hosts_.end());
    }
    std::uint16_t pick(SwitchIndex from, std::span<const std::uint16_t> ports) {
        if (destination_.port == 0) {
            return ports[destination_.lid.value() % ports.size()];
        }
        std::vector<std::uint64_t>& used = used_[from];
        const std::uint16_t best = *std::min_element(
            ports.begin(), ports.end(),
            [&used](std::uint16_t a, std::uint16_t b) { return used[a] < used[b]; });
        used[best] += coming_by_[from];
        coming_by_[graph_.ports(from)[best].at] += coming_by_[from];
        return best;
    }

  private:
    const Graph& graph_;
    std::vector<std::uint32_t> hosts_;
    std::vector<std::vector<std::uint64_t>> used_;
    Destination destination_;
    std::vector<std::uint64_t> coming_by_;  // routes to the destination, by switch
};

// How far each switch is from the nearest of `from`.
std::vector<std::uint32_t> hops_from_any(const Graph& graph, std::span<const SwitchIndex> from) {
    std::vector<std::uint32_t> hops(graph.switch_count(), kUnreachable);
    std::vector<SwitchIndex> queue(from.begin(), from.end());
    for (const SwitchIndex one : from) {
        hops[one] = 0;
    }
    for (std::size_t i = 0; i < queue.size(); ++i) {
        for (const Neighbour& next : graph.ports(queue[i])) {
            if (next.at != kNobody && hops[next.at] == kUnreachable) {
                hops[next.at] = hops[queue[i]] + 1;
                queue.push_back(next.at);
            }
        }
    }
    return hops;
}

std::vector<SwitchIndex> switches_with_hosts(const Graph& graph) {
    const std::vector<std::uint32_t> hosts = graph.hosts_by_switch();
    std::vector<SwitchIndex> all;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        if (hosts[i] != 0) {
            all.push_back(static_cast<SwitchIndex>(i));
        }
    }
    return all;
}

}  // namespace

Tables min_hop(const Graph& graph) {
    return fill(
        graph, [&graph](SwitchIndex target, NextPorts& next) { shortest_to(graph, target, next); },
        LeastUsed(graph));
}

Tables up_down(const Graph& graph, std::span<const SwitchIndex> roots) {
    const Order order(hops_from_any(graph, roots));
    UpDownSearch search(graph, order);
    return fill(
        graph, [&search](SwitchIndex target, NextPorts& next) { search.find_to(target, next); },
        LeastUsed(graph));
}

std::vector<SwitchIndex> find_roots(const Graph& graph) {
    const std::vector<SwitchIndex> leaves = switches_with_hosts(graph);
    const auto switches = static_cast<SwitchIndex>(graph.switch_count());
    std::vector<std::uint64_t> sums(switches, 0);
    std::vector<std::uint32_t> nearest(switches, kUnreachable);
    std::vector<std::uint32_t> farthest(switches, 0);
    for (const SwitchIndex leaf : leaves) {
        const std::vector<std::uint32_t> hops = hops_to(graph, leaf);
        for (SwitchIndex one = 0; one < switches; ++one) {
            sums[one] += hops[one];
            nearest[one] = std::min(nearest[one], hops[one]);
            farthest[one] = std::max(farthest[one], hops[one]);
        }
    }
    std::vector<SwitchIndex> roots;
    for (SwitchIndex one = 0; one < switches; ++one) {
        const bool is_top = nearest[one] == farthest[one] && nearest[one] != 0;
        if (is_top && nearest[one] != kUnreachable) {
            roots.push_back(one);
        }
    }
    const auto is_as_far = [&](SwitchIndex one) { return nearest[one] == nearest[roots.front()]; };
    if (!roots.empty() && std::all_of(roots.begin(), roots.end(), is_as_far)) {
        return roots;
    }
    if (switches == 0) {
        return {};
    }
    const auto least = std::min_element(sums.begin(), sums.end());
    return {static_cast<SwitchIndex>(least - sums.begin())};
}

namespace {

struct Levels {
    std::vector<std::uint32_t> of;      // each switch, from 0, which has the hosts
    std::vector<std::uint32_t> widths;  // of each level: the most links up from a switch
    std::uint32_t top = 0;
};

bool is_alone(std::span<const Neighbour> ports) {
    return std::all_of(ports.begin(), ports.end(),
                       [](const Neighbour& next) { return next.at == kNobody; });
}

// Fails where the graph is no fat tree.
Outcome<Levels> find_levels(const Graph& graph, std::span<const std::string> switches) {
    Levels levels;
    const std::vector<SwitchIndex> leaves = switches_with_hosts(graph);
    levels.of = hops_from_any(graph, leaves);
    if (leaves.empty()) {
        return Failure("no switch has hosts");
    }
    for (std::size_t i = 0; i < levels.of.size(); ++i) {
        if (levels.of[i] == kUnreachable && is_alone(graph.ports(static_cast<SwitchIndex>(i)))) {
            levels.of[i] = 0;  // no matter where
        } else if (levels.of[i] == kUnreachable) {
            return Failure(fmt::format("{} is connected with no host", switches[i]));
        }
        levels.top = std::max(levels.top, levels.of[i]);
    }
    levels.widths.resize(levels.top + 1U, 1);
    for (SwitchIndex one = 0; one < graph.switch_count(); ++one) {
        std::uint32_t up = 0;
        for (const Neighbour& next : graph.ports(one)) {
            if (next.at != kNobody && levels.of[next.at] == levels.of[one]) {
                return Failure(fmt::format("{} and {} are on one level and linked", switches[one],
                                           switches[next.at]));
            }
            up += next.at != kNobody && levels.of[next.at] > levels.of[one] ? 1 : 0;
        }
        std::uint32_t& width = levels.widths[levels.of[one]];
        width = std::max(width, up);
    }
    return levels;
}

// Returns the place of each LID among the LIDs of hosts, as if all switches had equally many hosts.
std::vector<std::uint32_t> number_hosts(const Graph& graph) {
    const auto by_switch = graph.destinations_by_switch();
    std::size_t most_hosts = 1;
    for (const auto& destinations : by_switch) {
        const auto hosts = static_cast<std::size_t>(
            std::count_if(destinations.begin(), destinations.end(),
                          [](const Destination& one) { return one.port != 0; }));
        most_hosts = std::max(most_hosts, hosts);
    }
    std::vector<std::uint32_t> numbers(graph.lid_count(), 0);
    std::size_t next = 0;
    for (const auto& destinations : by_switch) {
        std::size_t place = 0;
        for (const Destination& one : destinations) {
            if (one.port != 0) {
                numbers[one.lid.value()] = static_cast<std::uint32_t>(next + place++);
            }
        }
        next += place == 0 ? 0 : most_hosts;
    }
    return numbers;
}

// By a digit of the destination's number: each level divides it among its links up.
class ByDigit {
  public:
    ByDigit(const Graph& graph, const Levels& levels)
        : levels_(levels), numbers_(number_hosts(graph)), divisors_(levels.widths.size(), 1) {
        for (std::size_t i = 1; i < divisors_.size(); ++i) {
            divisors_[i] = divisors_[i - 1] * std::max(levels.widths[i - 1], 1U);
        }
    }
    void begin(const Destination& destination) {
        const std::uint16_t lid = destination.lid.value();
        number_ = destination.port == 0 ? lid : numbers_[lid];
    }
    [[nodiscard]] std::uint16_t pick(SwitchIndex from, std::span<const std::uint16_t> ports) const {
        return ports[number_ / divisors_[levels_.of[from]] % ports.size()];
    }

  private:
    const Levels& levels_;
    std::vector<std::uint32_t> numbers_;   // by LID
    std::vector<std::uint32_t> divisors_;  // by level
    std::uint32_t number_ = 0;
};

}  // namespace

Outcome<Tables> fat_tree(const Graph& graph, std::span<const std::string> switches) {
    const Outcome<Levels> levels = find_levels(graph, switches);
    if (!levels) {
        return Failure(levels.error());
    }
    std::vector<std::uint32_t> heights;
    for (const std::uint32_t level : levels->of) {
        heights.push_back(levels->top - level);
    }
    const Order order(heights);
    UpDownSearch search(graph, order);
    return fill(
        graph, [&search](SwitchIndex target, NextPorts& next) { search.find_to(target, next); },
        ByDigit(graph, *levels));
}

}  // namespace fabric::routing
