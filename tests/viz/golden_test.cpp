// The diagrams of queue pairs and of the communication manager, as they were when somebody looked
// at them, and that Graphviz takes all.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "simverbs/model/personalities.hpp"
#include "simverbs/model/services.hpp"

#include "drawing.hpp"
#include "viz/graphviz.hpp"
#include "viz/state_diagram.hpp"
#include "viz/state_machine.hpp"

namespace simverbs::viz {
namespace {

std::string read_file(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

// The machines whose moves no trace tells.
std::vector<StateMachine> uncounted_machines() {
    std::vector<StateMachine> machines{requester_machine(), responder_machine(), lap_machine(),
                                       rdma_cm_machine()};
    for (const CmSide side : kCmSides) {
        machines.push_back(cm_machine(side));
    }
    return machines;
}

// Those, and queue pairs by service.
std::vector<StateMachine> golden_machines() {
    std::vector<StateMachine> machines = uncounted_machines();
    for (const ServiceProperties& row : kServices) {
        machines.push_back(qp_machine(row.service, kSpec));
    }
    return machines;
}

TEST(StateDiagram, IsTheOneThatWasLookedAt) {
    for (const StateMachine& machine : golden_machines()) {
        const std::string path =
            std::string(SIMVERBS_GOLDEN) + "/" + std::string(machine.id) + ".dot";
        EXPECT_EQ(state_diagram(machine), read_file(path)) << path;
    }
}

TEST(StateDiagram, APersonalityHasItsOwnMoves) {
    const auto has = [](const StateMachine& machine, std::string_view from, std::string_view to) {
        return std::ranges::any_of(
            machine.moves, [&](const Move& move) { return move.from == from && move.to == to; });
    };
    EXPECT_TRUE(has(qp_machine(Service::kRc, kSpec), "RESET", "ERR"));
    EXPECT_FALSE(has(qp_machine(Service::kRc, kRxe), "RESET", "ERR"));
    EXPECT_FALSE(has(qp_machine(Service::kRc, kConnectX6), "RESET", "ERR"));
    EXPECT_NE(qp_machine(Service::kUd, kRxe).title.find("personality rxe"), std::string::npos);
}

// The records that a trace may have made of a machine's moves.
enum class Made { kNotCounted, kNone, kEverySecond, kAll };

TEST(StateDiagram, IsReadableWhateverMovesWereMade) {
    for (StateMachine& machine : all_machines()) {
        for (const Made made : {Made::kNotCounted, Made::kNone, Made::kEverySecond, Made::kAll}) {
            machine.counted = made != Made::kNotCounted;
            for (std::size_t i = 0; i < machine.moves.size(); ++i) {
                machine.moves[i].count =
                    made == Made::kAll || (made == Made::kEverySecond && i % 2 == 0) ? 12345 : 0;
            }
            const auto picture = draw(state_diagram(machine), "svg");
            ASSERT_TRUE(picture) << machine.title << ": " << picture.error();
            for (const std::string_view state : machine.states) {
                EXPECT_NE(picture->find(state), std::string::npos) << machine.title << state;
            }
            viz_test::expect_readable(
                *picture, machine.title + ", " + std::to_string(static_cast<int>(made)));
        }
    }
}

TEST(StateDiagram, WithoutCountsIsReadable) {
    for (const StateMachine& machine : uncounted_machines()) {
        const auto picture = draw(state_diagram(machine), "svg");
        ASSERT_TRUE(picture) << machine.title << ": " << picture.error();
        viz_test::expect_readable(*picture, machine.title);
    }
}

TEST(StateDiagram, SaysWhichMovesWereMadeAndWhichNever) {
    StateMachine machine = qp_machine(Service::kRc);
    Trace trace;
    const auto add = [&trace](std::string name, std::vector<Field> fields) {
        trace.records.push_back({.node = 3, .name = std::move(name), .fields = std::move(fields)});
    };
    const auto word = [](std::string name, std::string text) {
        return Field{std::move(name), 0, std::move(text), true};
    };
    add("queue_pair", {{"qpn", 17}, word("service", "RC")});
    add("queue_pair", {{"qpn", 18}, word("service", "UD")});
    for (const std::int64_t qpn : {17, 17, 18, 19}) {
        add("qp_state",
            {{"qpn", qpn}, word("from", "RESET"), word("to", "INIT"), word("trigger", "modify")});
    }
    count_moves(machine, trace);
    EXPECT_EQ(machine.moves_made(), 1U) << "another service's and unknown ones do not count";
    EXPECT_EQ(machine.moves.front().count, 2U);
    EXPECT_EQ(machine.unlisted, 0U);
    const std::string text = state_diagram(machine);
    EXPECT_NE(text.find("&#215; 2"), std::string::npos);
    EXPECT_NE(text.find("never"), std::string::npos);

    add("qp_state",
        {{"qpn", 17}, word("from", "ERR"), word("to", "RTS"), word("trigger", "modify")});
    count_moves(machine, trace);
    EXPECT_EQ(machine.unlisted, 1U) << "a move that no row has is a mistake, not a picture";
}

}  // namespace
}  // namespace simverbs::viz
