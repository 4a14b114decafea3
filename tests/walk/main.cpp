// random_walk [--steps N] [--seed S] [--threads T] [--topology NAME]
//
// With several threads each walks by itself, in one world: N steps a thread, seeds S, S + 1, ...
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "simverbs/simverbs.h"

#include "tests/walk/walk.hpp"

namespace walk {
namespace {

thread_local std::string replay;
thread_local unsigned long long current_step = 0;

struct Arguments {
    std::uint64_t steps = 20'000;
    std::uint64_t seed = 1;
    std::uint64_t threads = 1;
    std::string topology = "star:2";
};

Arguments parse(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        if (name == "--topology") {
            arguments.topology = argv[i + 1];
            continue;
        }
        const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 0);
        if (name == "--steps") {
            arguments.steps = value;
        } else if (name == "--seed") {
            arguments.seed = value;
        } else if (name == "--threads") {
            arguments.threads = value;
        } else {
            std::fprintf(stderr, "random_walk: what is %s?\n", argv[i]);
            std::exit(2);
        }
    }
    return arguments;
}

void run(const Arguments& arguments, std::uint64_t seed, std::barrier<>& ready) {
    set_replay("random_walk --steps " + std::to_string(arguments.steps) + " --seed " +
               std::to_string(arguments.seed) + " --threads " + std::to_string(arguments.threads) +
               " --topology " + arguments.topology + " (walk of seed " + std::to_string(seed) +
               ")");
    const std::string name = "walk-" + std::to_string(seed);
    require(simverbs_actor(name.c_str()) == 0, "simverbs_actor");
    ready.arrive_and_wait();
    Walk walk(seed);
    for (std::uint64_t step = 0; step < arguments.steps; ++step) {
        set_step(step);
        walk.step();
    }
    walk.finish();
    std::printf("seed %llu: %llu completions, %llu of them successes\n",
                static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(walk.ledger().completions()),
                static_cast<unsigned long long>(walk.ledger().with_status(IBV_WC_SUCCESS)));
    for (std::size_t status = 1; status < Ledger::kStatuses; ++status) {
        if (const std::uint64_t count = walk.ledger().with_status(status); count > 0) {
            std::printf("  %8llu %s\n", static_cast<unsigned long long>(count),
                        ibv_wc_status_str(static_cast<ibv_wc_status>(status)));
        }
    }
}

}  // namespace

void set_replay(const std::string& arguments) {
    replay = arguments;
}

void set_step(unsigned long long step) {
    current_step = step;
}

void fail(const std::string& what) {
    std::fprintf(stderr, "%s\n  at step %llu of: %s\n", what.c_str(), current_step, replay.c_str());
    std::abort();
}

}  // namespace walk

int main(int argc, char** argv) {
    const walk::Arguments arguments = walk::parse(argc, argv);
    walk::require(simverbs_set_topology(arguments.topology.c_str()) == 0, "topology");
    std::barrier ready(static_cast<std::ptrdiff_t>(arguments.threads));
    std::vector<std::thread> threads;
    for (std::uint64_t i = 1; i < arguments.threads; ++i) {
        threads.emplace_back(
            [&arguments, &ready, i] { walk::run(arguments, arguments.seed + i, ready); });
    }
    walk::run(arguments, arguments.seed, ready);
    for (std::thread& thread : threads) {
        thread.join();
    }
    walk::require(simverbs_restart() == 0, "simverbs_restart when everything is destroyed");
    return 0;
}
