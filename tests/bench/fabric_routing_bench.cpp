// Fat trees of growing size: how long they take to be generated, built and brought up, routed and
// checked, and what memory that took at its peak. Usage: fabric_routing_bench [K...]; a process a
// size, since a peak never falls.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/core/event_loop.hpp"
#include "fabric/net/network.hpp"
#include "fabric/sm/routing/checks.hpp"
#include "fabric/sm/routing/engines.hpp"
#include "fabric/sm/routing/topology_graph.hpp"
#include "fabric/sm/startup_sm.hpp"
#include "fabric/topology/generators.hpp"
#include "fabric/trace/bus.hpp"

namespace {

using namespace fabric;  // NOLINT(google-build-using-namespace)

template <class Work>
auto timed(double& seconds, Work&& work) {
    const auto begin = std::chrono::steady_clock::now();
    auto result = work();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
}

void print_engine(const char* name, const routing::Graph& graph,
                  const std::function<routing::Tables()>& route) {
    double routed = 0;
    double checked = 0;
    const routing::Tables tables = timed(routed, route);
    const routing::Report report = timed(checked, [&] { return routing::check(graph, tables); });
    fmt::print(
        "  {:9} route {:6.2f} s, check {:6.2f} s; {} of {} pairs, {} too long, {} credit "
        "loop, routes a link: {} at most, {} on average\n",
        name, routed, checked, report.pairs - report.unreachable, report.pairs,
        report.longer_than_needed, report.credit_loop.empty() ? "no" : "a", report.most_routes,
        report.mean_routes());
}

void measure(std::uint32_t ports) {
    double generated = 0;
    double graphed = 0;
    const Topology topology = timed(generated, [ports] { return make_fat_tree(ports); });
    const routing::NamedGraph named = timed(graphed, [&] { return routing::graph_of(topology); });
    const routing::Graph& graph = named.graph;
    fmt::print("fat-tree:{}: {} hosts, {} switches; generated {:.2f} s, graph {:.2f} s\n", ports,
               ports * ports * ports / 4, graph.switch_count(), generated, graphed);
    print_engine("fat-tree", graph, [&] { return *routing::fat_tree(graph, named.switches); });
    print_engine("up-down", graph,
                 [&] { return routing::up_down(graph, routing::find_roots(graph)); });
    print_engine("min-hop", graph, [&] { return routing::min_hop(graph); });
    double built = 0;
    double up = 0;
    EventLoop loop;
    trace::Bus bus;
    const auto network =
        timed(built, [&] { return std::make_unique<Network>(loop, bus, topology); });
    const auto sm = timed(up, [&] {
        auto manager = std::make_unique<StartupSm>(*network);
        manager->bring_up();
        return manager;
    });
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    fmt::print("  network built {:.2f} s, brought up {:.2f} s; peak {} MiB\n", built, up,
               usage.ru_maxrss / 1024);
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::uint32_t> sizes{4, 8, 16, 24, 36};
    if (argc > 1) {
        sizes.clear();
        for (int i = 1; i < argc; ++i) {
            constexpr int kDecimal = 10;
            sizes.push_back(static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, kDecimal)));
        }
    }
    for (const std::uint32_t ports : sizes) {
        std::fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            measure(ports);
            std::fflush(stdout);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) {
            return 1;
        }
    }
    return 0;
}
