// The life of an object as a picture needs it: states and moves, made from the rows of
// simverbs/model and fabric/net, and how often a trace made each move.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simverbs/model/cm_transitions.hpp"
#include "simverbs/model/personality.hpp"
#include "simverbs/model/services.hpp"

#include "viz/trace_file.hpp"

namespace simverbs::viz {

struct Move {
    std::string_view from;
    std::string_view to;
    std::string_view trigger;
    bool asked;  // by the program or the subnet manager; else it happens
    std::vector<std::string_view> required{};
    std::vector<std::string_view> optional{};
    std::string_view effect{};
    std::string_view source{};
    std::uint64_t count = 0;  // of a trace
};

struct StateMachine {
    std::string_view id;  // a name for files and DOT: "qp_RC"
    std::string title;
    std::string_view event{};  // of the trace that tells a move; "": no trace does
    std::vector<std::string_view> states;
    std::vector<Move> moves;
    std::vector<std::string_view> ends{};  // where even two moves of one trigger leave one box
    bool counted = false;                  // `count` means something
    std::uint64_t unlisted = 0;  // moves of the trace that are no row: a mistake of the model

    [[nodiscard]] std::size_t moves_made() const;
};

// Every move that a personality has.
StateMachine qp_machine(Service service);
// The moves of that personality alone, which the title names.
StateMachine qp_machine(Service service, const Personality& personality);
StateMachine port_machine();
StateMachine cq_machine();
StateMachine srq_machine();
StateMachine wq_machine();

// The two engines of a connected queue pair.
StateMachine requester_machine();
StateMachine responder_machine();

// A connection of the communication manager, and the loading of its alternate path.
StateMachine cm_machine(CmSide side);
StateMachine lap_machine();
// An id of rdma_cm, as Linux has it.
StateMachine rdma_cm_machine();

// All whose moves a trace tells, queue pairs service by service.
std::vector<StateMachine> all_machines();

// Adds the moves of `trace`. Of a queue pair's machine those of its service; queue pairs whose
// service the trace does not tell count for none.
void count_moves(StateMachine& machine, const Trace& trace);

}  // namespace simverbs::viz
