// Every (cause, personality) of completion_faults: completions of both sides in order, states,
// events, vendor_err, and what landed. A cause without a case fails.
#include <algorithm>
#include <cerrno>

#include "tests/conformance/fault_stage.hpp"

namespace conformance {
namespace {

const std::vector<FaultCase>& every_case() {
    static const std::vector<FaultCase> kAll = [] {
        std::vector<FaultCase> all;
        for (const auto& part : {requester_cases(), silence_cases(), responder_cases(),
                                 unacknowledged_cases(), device_cases()}) {
            all.insert(all.end(), part.begin(), part.end());
        }
        return all;
    }();
    return kAll;
}

struct Cell {
    const char* personality;
    std::size_t row;
};
void PrintTo(const Cell& cell, std::ostream* out) {  // NOLINT(readability-identifier-naming)
    *out << cell.personality << ", " << every_case()[cell.row].name;
}

std::vector<Cell> every_cell() {
    std::vector<Cell> all;
    for (const char* personality : {"spec", "connectx6", "rxe"}) {
        for (std::size_t row = 0; row < every_case().size(); ++row) {
            all.push_back({personality, row});
        }
    }
    return all;
}

class FaultRow : public Stage, public testing::WithParamInterface<Cell> {};

TEST_P(FaultRow, IsSeenOnBothSides) {
    run(every_case()[GetParam().row], GetParam().personality);
}

INSTANTIATE_TEST_SUITE_P(Every, FaultRow, testing::ValuesIn(every_cell()), [](const auto& row) {
    return std::string(row.param.personality) + '_' + every_case()[row.param.row].name;
});

TEST(FaultRows, EveryCauseHasACaseOrAReason) {
    for (const simverbs::CompletionFault& row : simverbs::kCompletionFaults) {
        const auto is_this = [&row](const auto& entry) { return entry.cause == row.cause; };
        const bool reached = std::ranges::any_of(every_case(), is_this);
        const bool excused = std::ranges::any_of(unreachable_causes(), is_this);
        EXPECT_NE(reached, excused) << row.name;
    }
}

TEST(FaultRows, NoCaseIsImpossibleEverywhere) {
    for (const FaultCase& row : every_case()) {
        EXPECT_FALSE(row.spec.a.empty()) << row.name;
        EXPECT_FALSE(row.connectx6.a.empty()) << row.name;
    }
}

}  // namespace
}  // namespace conformance
