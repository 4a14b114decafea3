#include "simverbs/cli/examples.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace simverbs::cli {
namespace {

struct ExampleRow {
    std::string_view command;  // "fabric link"; "" for `simverbs` itself
    std::string_view example;
};

// A test runs each of them, in a folder with the files that they name, beside a world of star:2.
constexpr auto kExamples = std::to_array<ExampleRow>({
    {"", "simverbs run star:2 h0='ibv_rc_pingpong' h1='ibv_rc_pingpong 127.0.0.1'"},
    {"run",
     "simverbs run star:2 --pcap run.pcapng h0='ibv_rc_pingpong' \\\n"
     "    h1='ibv_rc_pingpong 127.0.0.1'"},
    {"exec", "simverbs exec --topology star:4 --trace run.jsonl -- ibv_devinfo"},
    {"up", "simverbs up fat-tree:4 --world tree --trace run.jsonl"},
    {"on", "simverbs on h0 -- ibv_devinfo -v"},
    {"status", "simverbs status --verbose"},
    {"down", "simverbs down --force"},
    {"fabric", "simverbs fabric show h0"},
    {"fabric show", "simverbs fabric show h0-s0"},
    {"fabric link", "simverbs fabric link h0-s0 down --for 20ms"},
    {"fabric port", "simverbs fabric port h0:1 pkey 1=0x8001 2=0x7fff"},
    {"fabric sm", "simverbs fabric sm --json"},
    {"fabric counters", "simverbs fabric counters h0:1 --reset"},
    {"watch", "simverbs watch --interval 200ms --count 3"},
    {"scenario", "simverbs scenario failing.yaml --set run.seed=7 --trace run.jsonl"},
    {"explain", "simverbs explain run.jsonl"},
    {"check", "simverbs check scenarios/library/status_success.yaml"},
    {"sweep", "simverbs sweep failing.yaml --seeds 10 --keep failures"},
    {"explore", "simverbs explore ping.yaml --only packets,links --html found.html"},
    {"explore run", "simverbs explore run star:2 h0='ibv_devinfo' --only calls"},
    {"shrink", "simverbs shrink failing.yaml --seed 7 -o small.yaml"},
    {"viz", "simverbs viz report run.jsonl -o run.html"},
    {"viz qp", "simverbs viz qp --service UD --trace run.jsonl -o qp.dot"},
    {"viz port", "simverbs viz port -o port.dot"},
    {"viz cq", "simverbs viz cq -o cq.dot"},
    {"viz srq", "simverbs viz srq -o srq.dot"},
    {"viz wq", "simverbs viz wq -o wq.dot"},
    {"viz requester", "simverbs viz requester -o requester.dot"},
    {"viz responder", "simverbs viz responder -o responder.dot"},
    {"viz cm", "simverbs viz cm --side passive -o cm.dot"},
    {"viz lap", "simverbs viz lap -o lap.dot"},
    {"viz rdma_cm", "simverbs viz rdma_cm -o rdma_cm.dot"},
    {"viz ladder", "simverbs viz ladder run.jsonl --packets --to 1ms -o run.svg"},
    {"viz timeline", "simverbs viz timeline run.jsonl -o run.json"},
    {"viz topology", "simverbs viz topology run.jsonl -o topology.dot"},
    {"viz coverage", "simverbs viz coverage run.jsonl --badge coverage.svg"},
    {"viz report", "simverbs viz report run.jsonl -o run.html"},
    {"topology", "simverbs topology check torus:4x4"},
    {"topology check", "simverbs topology check fat-tree:4 --routes"},
    {"topology show", "simverbs topology show ring:3"},
    {"topology convert", "simverbs topology convert star:3 --to ibnetdiscover"},
    {"lab", "simverbs lab list"},
    {"lab list", "simverbs lab list"},
    {"lab start", "simverbs lab start 1 --python"},
    {"lab check", "simverbs lab check 1"},
    {"lab watch", "simverbs lab watch 1 --no-pictures"},
    {"lab hint", "simverbs lab hint 1"},
    {"lab solution", "simverbs lab solution 1"},
    {"lab grade", "simverbs lab grade class -o grades.csv"},
    {"lab prove", "simverbs lab prove 1 --no-wrong"},
    {"lab rubric", "simverbs lab rubric"},
    {"settings", "SIMVERBS_SEED=7 simverbs settings"},
    {"doctor", "simverbs doctor -- ibv_devinfo"},
    {"completion", "source <(simverbs completion bash)"},
});

void add_examples(CLI::App& command, const std::string& words) {
    const auto* const row = std::ranges::find(kExamples, words, &ExampleRow::command);
    if (row != kExamples.end()) {
        const std::string before = command.get_footer();
        command.footer(before + "\n\nExample:\n  " + std::string(row->example));
    }
    for (CLI::App* const each :
         command.get_subcommands([](const CLI::App* /*each*/) { return true; })) {
        add_examples(*each, words.empty() ? each->get_name() : words + " " + each->get_name());
    }
}

}  // namespace

void add_examples(CLI::App& app) {
    add_examples(app, "");
}

}  // namespace simverbs::cli
