#include "fabric/sm/routing/checks.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

namespace fabric::routing {

namespace {

// Who waits for whom: of each channel the ports by which the switch at its end sends on what came
// through it.
class Dependencies {
  public:
    explicit Dependencies(const Graph& graph) : graph_(graph) {
        const auto switches = static_cast<SwitchIndex>(graph.switch_count());
        std::uint32_t bits = 0;
        for (SwitchIndex one = 0; one < switches; ++one) {
            first_channel_.push_back(static_cast<std::uint32_t>(first_bit_.size()));
            for (const Neighbour& next : graph.ports(one)) {
                first_bit_.push_back(bits);
                bits += next.at == kNobody
                            ? 0
                            : static_cast<std::uint32_t>(graph.ports(next.at).size());
            }
        }
        bits_.resize(bits, false);
    }

    void add(SwitchIndex from, std::uint16_t port, std::uint16_t next_port) {
        bits_[first_bit_[first_channel_[from] + port] + next_port] = true;
    }

    // A cycle, or nothing: a depth-first search over channels.
    [[nodiscard]] std::vector<Channel> find_cycle() const {
        std::vector<Mark> marks(first_bit_.size(), Mark::kNew);
        const auto switches = static_cast<SwitchIndex>(graph_.switch_count());
        for (SwitchIndex one = 0; one < switches; ++one) {
            const std::size_t ports = graph_.ports(one).size();
            for (std::size_t port = 1; port < ports; ++port) {
                const Channel start{one, static_cast<std::uint16_t>(port)};
                std::vector<Channel> cycle = search_from(start, marks);
                if (!cycle.empty()) {
                    return cycle;
                }
            }
        }
        return {};
    }

  private:
    enum class Mark : std::uint8_t { kNew, kOnPath, kDone };
    struct Step {
        Channel channel;
        std::uint16_t next_port = 1;  // to look at
    };

    [[nodiscard]] std::size_t index(const Channel& channel) const {
        return first_channel_[channel.from] + channel.port;
    }

    std::vector<Channel> search_from(const Channel& start, std::vector<Mark>& marks) const {
        if (marks[index(start)] != Mark::kNew ||
            graph_.ports(start.from)[start.port].at == kNobody) {
            return {};
        }
        std::vector<Step> path{{start}};
        marks[index(start)] = Mark::kOnPath;
        while (!path.empty()) {
            Step& step = path.back();
            const SwitchIndex at = graph_.ports(step.channel.from)[step.channel.port].at;
            if (step.next_port == graph_.ports(at).size()) {
                marks[index(step.channel)] = Mark::kDone;
                path.pop_back();
                continue;
            }
            const Channel next{at, step.next_port++};
            if (!bits_[first_bit_[index(step.channel)] + next.port]) {
                continue;
            }
            if (marks[index(next)] == Mark::kOnPath) {
                return cycle_at(path, next);
            }
            if (marks[index(next)] == Mark::kNew) {
                marks[index(next)] = Mark::kOnPath;
                path.push_back({next});
            }
        }
        return {};
    }

    static std::vector<Channel> cycle_at(const std::vector<Step>& path, const Channel& first) {
        std::vector<Channel> cycle;
        for (const Step& step : path) {
            if (!cycle.empty() || step.channel == first) {
                cycle.push_back(step.channel);
            }
        }
        return cycle;
    }

    const Graph& graph_;
    std::vector<std::uint32_t> first_channel_;  // by switch
    std::vector<std::uint32_t> first_bit_;      // by channel
    std::vector<bool> bits_;
};

class Checker {
  public:
    Checker(const Graph& graph, const Tables& tables)
        : graph_(graph),
          tables_(tables),
          hosts_(graph.hosts_by_switch()),
          dependencies_(graph),
          switches_(static_cast<SwitchIndex>(graph.switch_count())) {
        for (SwitchIndex one = 0; one < switches_; ++one) {
            loads_.emplace_back(graph.ports(one).size(), 0);
        }
    }

    Report run() {
        const auto destinations = graph_.destinations_by_switch();
        for (SwitchIndex target = 0; target < switches_; ++target) {
            if (destinations[target].empty()) {
                continue;
            }
            const std::vector<std::uint32_t> shortest = hops_to(graph_, target);
            for (const Destination& one : destinations[target]) {
                follow_all(one);
                compare(one, shortest);
                flow(one);
            }
        }
        add_up();
        report_.credit_loop = dependencies_.find_cycle();
        return std::move(report_);
    }

  private:
    static constexpr std::uint32_t kNotYet = kUnreachable - 1;

    // The switch that `one` forwards to; kNobody when it does not, or to no switch.
    [[nodiscard]] SwitchIndex next_of(SwitchIndex one, Lid lid) const {
        const std::uint16_t port = tables_.at(one, lid);
        const std::span<const Neighbour> ports = graph_.ports(one);
        return port != 0 && port < ports.size() ? ports[port].at : kNobody;
    }

    // Fills hops_ by following the tables; each switch once.
    void follow_all(const Destination& to) {
        hops_.assign(switches_, kNotYet);
        hops_[to.at] = tables_.at(to.at, to.lid) == to.port ? 0 : kUnreachable;
        for (SwitchIndex start = 0; start < switches_; ++start) {
            path_.clear();
            SwitchIndex one = start;
            while (one != kNobody && hops_[one] == kNotYet && path_.size() <= switches_) {
                path_.push_back(one);
                one = next_of(one, to.lid);
            }
            const bool arrives = one != kNobody && hops_[one] < kNotYet;
            std::uint32_t hops = arrives ? hops_[one] : kUnreachable;
            while (!path_.empty()) {
                hops += arrives ? 1 : 0;
                hops_[path_.back()] = hops;
                path_.pop_back();
            }
        }
    }

    void compare(const Destination& to, const std::vector<std::uint32_t>& shortest) {
        for (SwitchIndex one = 0; one < switches_; ++one) {
            const std::uint32_t own = one == to.at && to.port != 0 ? 1 : 0;
            const std::uint64_t pairs = hosts_[one] - std::min(hosts_[one], own);
            if (pairs == 0) {
                continue;
            }
            report_.pairs += pairs;
            if (hops_[one] == kUnreachable) {
                report_.unreachable += pairs;
            } else {
                report_.longer_than_needed += hops_[one] > shortest[one] ? pairs : 0;
                report_.longest = std::max(report_.longest, hops_[one]);
            }
            if (shortest[one] != kUnreachable) {
                report_.diameter = std::max(report_.diameter, shortest[one]);
            }
        }
    }

    // Lets every host send to `to`: from the farthest switch on, what comes together goes on.
    void flow(const Destination& to) {
        flows_.assign(hosts_.begin(), hosts_.end());
        sort_by_hops();
        for (const SwitchIndex one : sorted_) {
            if (flows_[one] == 0 || hops_[one] == 0) {
                continue;
            }
            const std::uint16_t port = tables_.at(one, to.lid);
            const SwitchIndex next = graph_.ports(one)[port].at;
            flows_[next] += flows_[one];
            if (to.port != 0) {
                loads_[one][port] += flows_[one];
            }
            if (hops_[next] != 0) {
                dependencies_.add(one, port, tables_.at(next, to.lid));
            }
        }
    }

    // Farthest first, those that do not arrive left out.
    void sort_by_hops() {
        std::uint32_t farthest = 0;
        for (const std::uint32_t hops : hops_) {
            farthest = std::max(farthest, hops == kUnreachable ? 0 : hops);
        }
        counts_.assign(farthest + std::size_t{2}, 0);
        std::size_t arriving = 0;
        for (const std::uint32_t hops : hops_) {
            if (hops != kUnreachable) {
                ++counts_[farthest - hops + 1];
                ++arriving;
            }
        }
        for (std::size_t i = 1; i < counts_.size(); ++i) {
            counts_[i] += counts_[i - 1];
        }
        sorted_.resize(arriving);
        for (SwitchIndex one = 0; one < switches_; ++one) {
            if (hops_[one] != kUnreachable) {
                sorted_[counts_[farthest - hops_[one]]++] = one;
            }
        }
    }

    void add_up() {
        for (SwitchIndex one = 0; one < switches_; ++one) {
            const std::span<const Neighbour> ports = graph_.ports(one);
            for (std::size_t port = 1; port < ports.size(); ++port) {
                if (ports[port].at != kNobody) {
                    ++report_.channels;
                    report_.routes += loads_[one][port];
                    report_.most_routes = std::max(report_.most_routes, loads_[one][port]);
                }
            }
        }
    }

    const Graph& graph_;
    const Tables& tables_;
    std::vector<std::uint32_t> hosts_;
    Dependencies dependencies_;
    SwitchIndex switches_;
    std::vector<std::vector<std::uint64_t>> loads_;  // by switch and port
    Report report_;
    // Results for one destination, kept for their storage.
    std::vector<std::uint32_t> hops_;
    std::vector<std::uint64_t> flows_;
    std::vector<SwitchIndex> path_;
    std::vector<SwitchIndex> sorted_;
    std::vector<std::size_t> counts_;
};

}  // namespace

Report check(const Graph& graph, const Tables& tables) {
    return Checker(graph, tables).run();
}

std::string describe(std::span<const Channel> channels, std::span<const std::string> switches) {
    std::string text;
    for (const Channel& channel : channels) {
        text +=
            fmt::format("{}{}:{}", text.empty() ? "" : " ", switches[channel.from], channel.port);
    }
    return text;
}

std::string describe(const Report& report, std::span<const std::string> switches) {
    std::string text = fmt::format(
        "{} of {} pairs reached, {} by more links than needed, at most {} between "
        "switches; routes a link: {} at most, {} on average; ",
        report.pairs - report.unreachable, report.pairs, report.longer_than_needed, report.longest,
        report.most_routes, report.mean_routes());
    return text + (report.credit_loop.empty() ? std::string("no credit loop")
                                              : "a credit loop where all traffic is in one lane: " +
                                                    describe(report.credit_loop, switches));
}

}  // namespace fabric::routing
