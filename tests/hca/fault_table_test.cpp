#include <algorithm>
#include <cctype>

#include <gmock/gmock.h>

#include "tests/hca/fault_causes.hpp"

namespace simverbs::test {
namespace {

using testing::ElementsAreArray;

constexpr std::uint64_t kRequestId = 1;
constexpr std::uint64_t kBehindId = 2;
constexpr std::uint64_t kReceiveId = 11;

std::string test_name(const testing::TestParamInfo<FaultScenario>& info) {
    std::string name;
    for (const char c : std::string(to_string(info.param.cause))) {
        name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    }
    return name;
}

class FaultTable : public testing::TestWithParam<FaultScenario> {};

std::vector<AsyncEvent> events_of(const FaultSide& side) {
    return side.event ? std::vector<AsyncEvent>{*side.event} : std::vector<AsyncEvent>{};
}

void expect_requester(Pair& pair, const CompletionFault& row, QpState after) {
    std::vector<WcStatus> expected = {*row.requester.status};
    if (after == QpState::kErr) {
        expected.push_back(WcStatus::kWrFlushErr);
    }
    const std::vector<Cqe> sent = pair.a.send_cq.poll();
    ASSERT_THAT(statuses(sent), ElementsAreArray(expected));
    EXPECT_EQ(sent[0].wr_id, kRequestId);
    if (after == QpState::kErr) {
        // Whatever keeps an answer away, a requester only knows that none came.
        const FaultCause seen =
            row.detector == Detector::kTimer ? FaultCause::kPacketsLost : row.cause;
        EXPECT_EQ(sent[0].vendor_error, static_cast<std::uint32_t>(seen));
        EXPECT_EQ(sent[1].wr_id, kBehindId);
        EXPECT_EQ(statuses(pair.a.receive_cq.poll()), std::vector{WcStatus::kWrFlushErr});
    }
    EXPECT_EQ(pair.a.qp.state(), after);
    EXPECT_EQ(pair.a.take_events(), events_of(row.requester));
}

void expect_responder(Pair& pair, const CompletionFault& row, QpState after, std::size_t receives) {
    const std::vector<Cqe> received = pair.b.receive_cq.poll();
    std::vector<WcStatus> expected;
    if (row.responder.status) {
        expected.push_back(*row.responder.status);
    }
    if (after == QpState::kErr) {
        expected.resize(receives, WcStatus::kWrFlushErr);
    }
    ASSERT_THAT(statuses(received), ElementsAreArray(expected));
    for (std::size_t i = 0; i < received.size(); ++i) {
        EXPECT_EQ(received[i].wr_id, kReceiveId + i);
    }
    if (row.responder.status && *row.responder.status != WcStatus::kSuccess) {
        EXPECT_EQ(received[0].vendor_error, static_cast<std::uint32_t>(row.cause));
    }
    EXPECT_EQ(pair.b.qp.state(), after);
    EXPECT_EQ(pair.b.take_events(), events_of(row.responder));
}

TEST_P(FaultTable, BothSidesAreAsTheRowSays) {
    PairOptions options;
    if (GetParam().options) {
        GetParam().options(options);
    }
    Pair pair(options);
    pair.a.fill(0, 4096, 1);
    pair.b.fill(0, 4096, 2);
    Exchange exchange = good_exchange(pair);
    if (GetParam().arrange) {
        GetParam().arrange(pair, exchange);
    }
    for (std::size_t i = 0; i < exchange.receives.size(); ++i) {
        pair.b.qp.post_receive(kReceiveId + i, exchange.receives[i]);
    }
    pair.a.qp.post_receive(21, {pair.a.segment(0, 8)});
    const std::vector<std::byte> memory_of_a = pair.a.memory;
    const std::vector<std::byte> memory_of_b = pair.b.memory;
    const QpState responder_before = pair.b.qp.state();
    Send behind = write_of(pair.a, pair.b, kBehindId, 16384, 8);
    behind.flags = {};
    const std::vector<Send> both = {exchange.request, behind};
    pair.a.qp.post(both);
    if (GetParam().after_posting) {
        GetParam().after_posting(pair);
    }
    pair.drive();

    const CompletionFault& row = fault_row(GetParam().cause);
    expect_requester(pair, row, state_after(row.requester, QpState::kRts, Service::kRc));
    expect_responder(pair, row, state_after(row.responder, responder_before, Service::kRc),
                     exchange.receives.size());
    if (GetParam().cause == FaultCause::kSuccess) {
        EXPECT_EQ(pair.b.bytes(4096, 64), pair.a.bytes(0, 64));
    } else {
        EXPECT_TRUE(pair.a.memory == memory_of_a) << "bytes landed at the requester";
        EXPECT_TRUE(pair.b.memory == memory_of_b) << "bytes landed at the responder";
    }
}

INSTANTIATE_TEST_SUITE_P(Rc, FaultTable, testing::ValuesIn(fault_scenarios()), test_name);

TEST(FaultTable, EveryProtocolCauseOfRcIsReachedOrExcused) {
    for (const CompletionFault& row : kCompletionFaults) {
        const bool concerns_rc =
            row.kind == FaultKind::kProtocol && row.services.contains(Service::kRc);
        const auto is_this = [&row](const auto& entry) { return entry.cause == row.cause; };
        const bool reached = std::ranges::any_of(fault_scenarios(), is_this);
        const bool excused = std::ranges::any_of(excused_causes(), is_this);
        EXPECT_EQ(reached || excused, concerns_rc) << row.name;
        EXPECT_FALSE(reached && excused) << row.name;
    }
}

}  // namespace
}  // namespace simverbs::test
