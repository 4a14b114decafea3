#include "simverbs/model/hw_counters.hpp"

#include <gtest/gtest.h>

#include "simverbs/faults/packet_faults.hpp"

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

std::uint64_t counted(const Side& side, HwCounter counter) {
    return side.host.hca().hw_counters(1).value(counter);
}

// All that are not 0, by name.
std::vector<std::pair<std::string_view, std::uint64_t>> all(const Side& side) {
    std::vector<std::pair<std::string_view, std::uint64_t>> found;
    for (const HwCounterRow& row : kHwCounters) {
        if (const std::uint64_t value = counted(side, row.counter); value != 0) {
            found.emplace_back(row.name, value);
        }
    }
    return found;
}

using Counts = std::vector<std::pair<std::string_view, std::uint64_t>>;

TEST(HwCounters, OnAGoodDayCountWhatWasExecuted) {
    Pair pair;
    pair.b.qp.post_receive(11, {pair.b.segment(0, 1024)});
    const std::vector<Send> sends = {
        send_of(pair.a, 1, 0, 1024), write_of(pair.a, pair.b, 2, 0, 4096),
        read_of(pair.a, pair.b, 3, 0, 4096), fetch_add_of(pair.a, pair.b, 4, 65536, 1)};
    pair.a.qp.post(sends);
    pair.drive();
    EXPECT_EQ(all(pair.a), Counts{});
    EXPECT_EQ(
        all(pair.b),
        (Counts{{"rx_atomic_requests", 1}, {"rx_read_requests", 1}, {"rx_write_requests", 1}}));
}

TEST(HwCounters, OfALostRequestNameBothSidesOfItsNak) {
    Pair pair;
    pair.drop_nth(pair.a, 2);
    pair.a.qp.post(std::vector<Send>{write_of(pair.a, pair.b, 1, 0, 4096)});
    pair.drive();
    EXPECT_EQ(counted(pair.a, HwCounter::kPacketSeqErr), 1U);
    EXPECT_EQ(counted(pair.a, HwCounter::kLocalAckTimeoutErr), 0U);
    EXPECT_EQ(counted(pair.b, HwCounter::kOutOfSequence), 2U) << "the third and the fourth";
    EXPECT_EQ(counted(pair.b, HwCounter::kDuplicateRequest), 0U);
}

// The port of an InfiniBand device counts it, and nothing else of the device sees it.
TEST(HwCounters, OfACorruptPacketAreThePorts) {
    Pair pair;
    pair.fault_nth(pair.a, 2, std::make_unique<CorruptPacket>(20, 1));
    pair.a.qp.post(std::vector<Send>{write_of(pair.a, pair.b, 1, 0, 4096)});
    pair.drive();
    EXPECT_EQ(pair.b.host.hca().port(1).counters().rcv_errors, 1U);
    EXPECT_EQ(pair.a.host.hca().port(1).counters().rcv_errors, 0U);
    EXPECT_EQ(counted(pair.b, HwCounter::kOutOfSequence), 2U);
    EXPECT_EQ(counted(pair.b, HwCounter::kRxIcrcEncapsulated), 0U);
}

TEST(HwCounters, OfALostAcknowledgmentATimeoutAndADuplicate) {
    Pair pair;
    pair.drop_nth(pair.b, 1);
    pair.a.qp.post(std::vector<Send>{write_of(pair.a, pair.b, 1, 0, 1024)});
    pair.drive();
    EXPECT_EQ(all(pair.a), (Counts{{"local_ack_timeout_err", 1}}));
    EXPECT_EQ(all(pair.b), (Counts{{"duplicate_request", 1}, {"rx_write_requests", 1}}));
}

TEST(HwCounters, OfALostReadResponseTheNextAnswerImpliesIt) {
    Pair pair;
    pair.drop_nth(pair.b, 1);
    const std::vector<Send> sends = {read_of(pair.a, pair.b, 1, 0, 1024),
                                     write_of(pair.a, pair.b, 2, 0, 1024)};
    pair.a.qp.post(sends);
    pair.drive();
    EXPECT_EQ(all(pair.a), (Counts{{"implied_nak_seq_err", 1}}));
}

TEST(HwCounters, OfAReceiverThatIsNotReady) {
    PairOptions options;
    options.rnr_retry = 2;
    Pair pair(options);
    pair.a.qp.post(std::vector<Send>{send_of(pair.a, 1, 0, 64)});
    pair.drive();
    EXPECT_EQ(all(pair.a), (Counts{{"req_cqe_error", 1}, {"rnr_nak_retry_err", 3}}));
    EXPECT_EQ(all(pair.b), (Counts{{"out_of_buffer", 3}}));
}

TEST(HwCounters, OfAKeyThatOpensNothing) {
    Pair pair;
    Send wrong = write_of(pair.a, pair.b, 1, 0, 64);
    wrong.rkey ^= 0x5500;
    pair.a.qp.post(std::vector<Send>{wrong, write_of(pair.a, pair.b, 2, 0, 64)});
    pair.b.qp.post_receive(11, {pair.b.segment(0, 64)});
    pair.drive();
    EXPECT_EQ(all(pair.a), (Counts{{"req_cqe_error", 1},
                                   {"req_cqe_flush_error", 1},
                                   {"req_remote_access_errors", 1}}));
    EXPECT_EQ(all(pair.b), (Counts{{"resp_cqe_flush_error", 1}, {"resp_remote_access_errors", 1}}));
}

TEST(HwCounters, OfAMessageThatDoesNotFit) {
    Pair pair;
    pair.b.qp.post_receive(11, {pair.b.segment(0, 16)});
    pair.a.qp.post(std::vector<Send>{send_of(pair.a, 1, 0, 64)});
    pair.drive();
    EXPECT_EQ(all(pair.a), (Counts{{"req_cqe_error", 1}, {"req_remote_invalid_request", 1}}));
    EXPECT_EQ(all(pair.b), (Counts{{"resp_cqe_error", 1}, {"resp_local_length_error", 1}}));
}

}  // namespace
}  // namespace simverbs::test
