// The states of an rdma_cm id against an oracle: each comparison and exchange of states in Linux's
// drivers/infiniband/core/cma.c (as of 2025), written down here a second time.
#include "simverbs/model/rdma_cm_transitions.hpp"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace simverbs {
namespace {

struct Exchange {
    std::string_view trigger;
    std::vector<std::string_view> from;
    std::string_view to;
};

// enum rdma_cm_state of Linux's cma_priv.h, without the states of later kernels.
const std::vector<std::string_view> kStates = {
    "IDLE",       "ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_QUERY",    "ROUTE_RESOLVED", "CONNECT",
    "DISCONNECT", "ADDR_BOUND", "LISTEN",        "DEVICE_REMOVAL", "DESTROYING"};

std::vector<Exchange> exchanges() {
    return {
        {"bind", {"IDLE"}, "ADDR_BOUND"},
        {"resolve addr", {"ADDR_BOUND"}, "ADDR_QUERY"},
        {"address found", {"ADDR_QUERY"}, "ADDR_RESOLVED"},
        {"address failed", {"ADDR_QUERY"}, "ADDR_BOUND"},
        {"resolve route", {"ADDR_RESOLVED"}, "ROUTE_QUERY"},
        {"set path", {"ADDR_RESOLVED"}, "ROUTE_RESOLVED"},
        {"path found", {"ROUTE_QUERY"}, "ROUTE_RESOLVED"},
        {"path failed", {"ROUTE_QUERY"}, "ADDR_RESOLVED"},
        {"start listening", {"ADDR_BOUND"}, "LISTEN"},
        {"send request", {"ROUTE_RESOLVED"}, "CONNECT"},
        {"request", {"IDLE"}, "CONNECT"},
        {"disconnected", {"CONNECT"}, "DISCONNECT"},
        {"device removed",
         {"ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_QUERY", "ROUTE_RESOLVED", "CONNECT", "DISCONNECT",
          "ADDR_BOUND", "LISTEN"},
         "DEVICE_REMOVAL"},
        {"destroy",
         {"IDLE", "ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_QUERY", "ROUTE_RESOLVED", "CONNECT",
          "DISCONNECT", "ADDR_BOUND", "LISTEN", "DEVICE_REMOVAL"},
         "DESTROYING"},
    };
}

TEST(RdmaCmTransitions, StatesHaveTheNumbersOfLinux) {
    for (std::size_t i = 0; i < kStates.size(); ++i) {
        EXPECT_EQ(to_string(static_cast<RdmaCmState>(i)), kStates[i]);
    }
}

TEST(RdmaCmTransitions, EveryTriggerInEveryStateDoesWhatLinuxDoes) {
    std::map<std::pair<std::string_view, std::string_view>, std::string_view> oracle;
    for (const Exchange& each : exchanges()) {
        for (const std::string_view from : each.from) {
            oracle[{from, each.trigger}] = each.to;
        }
    }
    for (std::size_t state = 0; state < kRdmaCmStateNames.size(); ++state) {
        for (std::size_t trigger = 0; trigger < kRdmaCmTriggerNames.size(); ++trigger) {
            const auto to =
                next_state(static_cast<RdmaCmState>(state), static_cast<RdmaCmTrigger>(trigger));
            const auto found =
                oracle.find({kRdmaCmStateNames[state], kRdmaCmTriggerNames[trigger]});
            EXPECT_EQ(to ? to_string(*to) : "refused",
                      found == oracle.end() ? "refused" : found->second)
                << kRdmaCmTriggerNames[trigger] << " in " << kRdmaCmStateNames[state];
        }
    }
    EXPECT_EQ(oracle.size(), kRdmaCmTransitions.size());
}

TEST(RdmaCmTransitions, EachRowNamesItsSource) {
    for (const RdmaCmTransition& row : kRdmaCmTransitions) {
        EXPECT_TRUE(row.source.starts_with("Linux ")) << to_string(row.from);
    }
}

}  // namespace
}  // namespace simverbs
