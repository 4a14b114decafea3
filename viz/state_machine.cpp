#include "viz/state_machine.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "fabric/net/port_transitions.hpp"

#include "simverbs/model/cm_transitions.hpp"
#include "simverbs/model/cq_transitions.hpp"
#include "simverbs/model/qp_transitions.hpp"
#include "simverbs/model/rdma_cm_transitions.hpp"
#include "simverbs/model/requester_transitions.hpp"
#include "simverbs/model/responder_transitions.hpp"
#include "simverbs/model/srq_transitions.hpp"
#include "simverbs/model/wq_transitions.hpp"

namespace simverbs::viz {
namespace {

using QpKey = std::pair<std::uint32_t, std::uint32_t>;  // node, number

std::vector<std::string_view> names(QpAttrs attrs) {
    std::vector<std::string_view> listed;
    for (const QpAttrName& row : kQpAttrNames) {
        if (attrs.contains(row.attr)) {
            listed.push_back(row.name);
        }
    }
    return listed;
}

std::string_view qp_id(Service service) {
    switch (service) {
        case Service::kRc:
            return "qp_RC";
        case Service::kUc:
            return "qp_UC";
        case Service::kUd:
            return "qp_UD";
        case Service::kXrcIni:
            return "qp_XRC_INI";
        case Service::kXrcTgt:
            return "qp_XRC_TGT";
        case Service::kRawPacket:
            break;
    }
    return "qp_RAW_PACKET";
}

template <class Rows>
std::vector<Move> moves_of(const Rows& rows) {
    std::vector<Move> moves;
    moves.reserve(std::size(rows));
    for (const auto& row : rows) {
        moves.push_back({.from = to_string(row.from),
                         .to = to_string(row.to),
                         .trigger = to_string(row.trigger),
                         .asked = true,
                         .source = row.source});
    }
    return moves;
}

template <class State, class Event, std::size_t kRows>
std::vector<Move> moves_of(std::span<const Transition<State, Event>, kRows> rows, Event asked) {
    std::vector<Move> moves;
    for (const Transition<State, Event>& row : rows) {
        moves.push_back({.from = to_string(row.from),
                         .to = to_string(row.to),
                         .trigger = to_string(row.event),
                         .asked = row.event == asked,
                         .source = row.source});
    }
    return moves;
}

// When it is armed a queue is not looked at: what it was armed with shows when an event ends it.
void count_requests(StateMachine& machine) {
    for (Move& request : machine.moves) {
        if (!request.asked || request.from == to_string(CqState::kArmedSolicited)) {
            continue;
        }
        request.count = 0;
        for (const Move& event : machine.moves) {
            if (!event.asked && event.from == request.to) {
                request.count += event.count;
            }
        }
    }
}

}  // namespace

std::size_t StateMachine::moves_made() const {
    return static_cast<std::size_t>(
        std::count_if(moves.begin(), moves.end(), [](const Move& move) { return move.count > 0; }));
}

namespace {

Move move_of(const QpTransition& row) {
    return {.from = to_string(row.from),
            .to = to_string(row.to),
            .trigger = to_string(row.trigger),
            .asked = row.trigger == QpTrigger::kModify,
            .required = names(row.required),
            .optional = names(row.optional),
            .effect = {},
            .source = row.source};
}

// States that nothing leads to are none, and nothing leads out of them.
void add_qp_states(StateMachine& machine) {
    const auto is_reached = [&machine](std::string_view state) {
        return std::ranges::find(machine.moves, state, &Move::to) != machine.moves.end();
    };
    std::ranges::copy_if(kQpStateNames, std::back_inserter(machine.states), is_reached);
    std::erase_if(machine.moves, [&machine](const Move& move) {
        return std::ranges::find(machine.states, move.from) == machine.states.end();
    });
}

}  // namespace

StateMachine qp_machine(Service service) {
    StateMachine machine{.id = qp_id(service),
                         .title = fmt::format("Queue pair, service {}", to_string(service)),
                         .event = "qp_state"};
    for (const QpTransition& row : kQpTransitions) {
        if (row.services.contains(service)) {
            machine.moves.push_back(move_of(row));
        }
    }
    add_qp_states(machine);
    return machine;
}

StateMachine qp_machine(Service service, const Personality& personality) {
    StateMachine machine{.id = qp_id(service),
                         .title = fmt::format("Queue pair, service {}, personality {}",
                                              to_string(service), personality.name),
                         .event = "qp_state"};
    for (const QpTransition& row : kQpTransitions) {
        const bool is_asked = row.trigger == QpTrigger::kModify;
        if (!row.services.contains(service) ||
            (is_asked && find_modify(personality, row.from, row.to, service) == nullptr)) {
            continue;
        }
        Move move = move_of(row);
        if (const auto to = next_state(personality, row.from, row.trigger, service);
            !is_asked && to) {
            move.to = to_string(*to);
        }
        machine.moves.push_back(std::move(move));
    }
    add_qp_states(machine);
    return machine;
}

StateMachine port_machine() {
    StateMachine machine{.id = "port", .title = "Port", .event = "port_state"};
    for (const fabric::PortState state : fabric::kPortStates) {
        machine.states.push_back(to_string(state));
    }
    machine.moves = moves_of(fabric::kPortTransitions);
    for (Move& move : machine.moves) {
        move.asked = move.trigger.starts_with("set_");
        move.effect = move.to == to_string(fabric::PortState::kActive)     ? "PORT_ACTIVE"
                      : move.from == to_string(fabric::PortState::kActive) ? "PORT_ERR"
                                                                           : std::string_view();
    }
    return machine;
}

StateMachine cq_machine() {
    StateMachine machine{.id = "cq", .title = "Completion queue", .event = "cq_state"};
    machine.states.assign(kCqStateNames.begin(), kCqStateNames.end());
    for (const CqTransition& row : kCqTransitions) {
        machine.moves.push_back({.from = to_string(row.from),
                                 .to = to_string(row.to),
                                 .trigger = to_string(row.trigger),
                                 .asked = row.trigger == CqTrigger::kRequestSolicited ||
                                          row.trigger == CqTrigger::kRequestNext,
                                 .effect = row.effect,
                                 .source = row.source});
    }
    return machine;
}

StateMachine srq_machine() {
    StateMachine machine{.id = "srq", .title = "Shared receive queue", .event = "srq_state"};
    machine.states.assign(kSrqStateNames.begin(), kSrqStateNames.end());
    for (const SrqTransition& row : kSrqTransitions) {
        machine.moves.push_back({.from = to_string(row.from),
                                 .to = to_string(row.to),
                                 .trigger = to_string(row.trigger),
                                 .asked = row.trigger == SrqTrigger::kSetLimit ||
                                          row.trigger == SrqTrigger::kClearLimit,
                                 .effect = row.effect,
                                 .source = row.source});
    }
    return machine;
}

StateMachine wq_machine() {
    StateMachine machine{.id = "wq", .title = "Receive work queue", .event = "wq_state"};
    machine.states.assign(kWqStateNames.begin(), kWqStateNames.end());
    machine.moves = moves_of(kWqTransitions);
    for (Move& move : machine.moves) {
        move.asked = move.trigger == to_string(WqTrigger::kModify);
        move.effect = move.asked ? std::string_view() : "WQ_FATAL";
    }
    return machine;
}

StateMachine requester_machine() {
    StateMachine machine{.id = "requester", .title = "Requester of a queue pair"};
    machine.states.assign(kRequesterStateNames.begin(), kRequesterStateNames.end());
    machine.moves = moves_of(std::span(kRequesterTransitions), RequesterEvent::kStart);
    return machine;
}

StateMachine responder_machine() {
    StateMachine machine{.id = "responder", .title = "Responder of a queue pair"};
    machine.states.assign(kResponderStateNames.begin(), kResponderStateNames.end());
    machine.moves = moves_of(std::span(kResponderTransitions), ResponderEvent::kStart);
    return machine;
}

StateMachine cm_machine(CmSide side) {
    StateMachine machine{.id = side == CmSide::kActive    ? "cm_active"
                               : side == CmSide::kPassive ? "cm_passive"
                                                          : "cm_sidr",
                         .title = side == CmSide::kSidr
                                      ? "Service ID resolution"
                                      : fmt::format("Connection, {} side", to_string(side))};
    machine.ends = {to_string(CmState::kIdle), to_string(CmState::kTimewait)};
    for (const CmTransition& row : kCmTransitions) {
        if (row.sides.contains(side)) {
            machine.moves.push_back({.from = to_string(row.from),
                                     .to = to_string(row.to),
                                     .trigger = to_string(row.trigger),
                                     .asked = is_command(row.trigger),
                                     .source = row.source});
        }
    }
    for (const std::string_view state : kCmStateNames) {
        if (std::any_of(machine.moves.begin(), machine.moves.end(),
                        [state](const Move& move) { return move.to == state; })) {
            machine.states.push_back(state);
        }
    }
    return machine;
}

StateMachine lap_machine() {
    StateMachine machine{.id = "cm_lap", .title = "Loading of an alternate path"};
    machine.ends = {to_string(LapState::kIdle)};
    machine.states.assign(kLapStateNames.begin(), kLapStateNames.end());
    machine.moves = moves_of(std::span(kLapTransitions), LapTrigger::kSendLap);
    for (Move& move : machine.moves) {
        move.asked = move.trigger.starts_with("send ");
    }
    return machine;
}

StateMachine rdma_cm_machine() {
    StateMachine machine{.id = "rdma_cm", .title = "rdma_cm id"};
    machine.ends = {to_string(RdmaCmState::kDeviceRemoval), to_string(RdmaCmState::kDestroying)};
    machine.states.assign(kRdmaCmStateNames.begin(), kRdmaCmStateNames.end());
    machine.moves.reserve(kRdmaCmTransitions.size());
    for (const RdmaCmTransition& row : kRdmaCmTransitions) {
        machine.moves.push_back({.from = to_string(row.from),
                                 .to = to_string(row.to),
                                 .trigger = to_string(row.event),
                                 .asked = is_command(row.event),
                                 .source = row.source});
    }
    return machine;
}

std::vector<StateMachine> all_machines() {
    std::vector<StateMachine> machines;
    machines.reserve(kServices.size() + 4);
    for (const ServiceProperties& row : kServices) {
        machines.push_back(qp_machine(row.service));
    }
    machines.push_back(port_machine());
    machines.push_back(cq_machine());
    machines.push_back(srq_machine());
    machines.push_back(wq_machine());
    return machines;
}

void count_moves(StateMachine& machine, const Trace& trace) {
    const bool is_qp = machine.event == "qp_state";
    std::map<QpKey, std::string_view> services;
    machine.counted = true;
    for (const Record& record : trace.records) {
        if (record.name == "queue_pair") {
            services[{record.node, record.id("qpn")}] = record.text("service");
        }
        const bool stays = is_qp && record.name == "qp_stayed";
        if (record.name != machine.event && !stays) {
            continue;
        }
        if (is_qp) {
            const auto service = services.find({record.node, record.id("qpn")});
            if (service == services.end() || machine.id.substr(3) != service->second) {
                continue;
            }
        }
        const auto row =
            std::find_if(machine.moves.begin(), machine.moves.end(), [&](const Move& move) {
                return move.from == record.text(stays ? "state" : "from") &&
                       move.to == record.text(stays ? "state" : "to") &&
                       move.trigger == record.text("trigger");
            });
        if (row == machine.moves.end()) {
            ++machine.unlisted;
        } else {
            ++row->count;
        }
    }
    if (machine.event == "cq_state") {
        count_requests(machine);
    }
}

}  // namespace simverbs::viz
