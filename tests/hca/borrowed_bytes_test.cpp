// READ responses whose bytes stay where they are until somebody could notice.
#include "simverbs/hca/borrowed_bytes.hpp"

#include <array>
#include <cstddef>
#include <vector>

#include <gmock/gmock.h>

#include "fabric/core/event_loop.hpp"
#include "fabric/net/deferred_arrivals.hpp"

#include "simverbs/hca/placement.hpp"

#include "tests/hca/random_traffic.hpp"
#include "tests/hca/train_history.hpp"

namespace simverbs::test {
namespace {

class BorrowedBytesTest : public testing::Test {
  protected:
    [[nodiscard]] Payload payload(std::uint64_t offset, std::uint32_t length) {
        span_ = {reinterpret_cast<std::uint64_t>(bytes_.data()), 8192};
        return {&memory_, &span_, offset, length, 1};
    }
    [[nodiscard]] std::byte placed(BorrowedBytes& bytes) const {
        std::byte first{};
        Payload one = bytes.payload();
        one.length = 1;
        EXPECT_EQ(gather_payload(one, &first), CopyOutcome::kCopied);
        return first;
    }

    HostMemory memory_{MemoryOf::kAnother};
    std::array<std::byte, 8192> bytes_{};
    MemorySpan span_;
    fabric::EventLoop loop_;
    fabric::DeferredArrivals later_{loop_};
    SnapshotPool snapshots_{Snapshot::kTrainBytes};
    Borrowings all_{snapshots_};
};

TEST_F(BorrowedBytesTest, AreThoseOfTheSourceUntilTheyAreTaken) {
    BorrowedBytes* const bytes = all_.borrow(payload(4096, 2048), later_);
    ASSERT_NE(bytes, nullptr);
    EXPECT_TRUE(all_.has_some_of(memory_));
    EXPECT_FALSE(later_.empty());
    bytes_[4096] = std::byte{1};
    EXPECT_EQ(placed(*bytes), std::byte{1});
    later_.settle();
    EXPECT_TRUE(later_.empty());
    EXPECT_FALSE(all_.has_some_of(memory_));
    bytes_[4096] = std::byte{2};
    EXPECT_EQ(placed(*bytes), std::byte{1}) << "as when it was taken";
    bytes->release();
}

TEST_F(BorrowedBytesTest, GoBackWithTheLastFrame) {
    BorrowedBytes* const bytes = all_.borrow(payload(0, 2048), later_);
    bytes->retain();
    bytes->release();
    EXPECT_TRUE(all_.has_some_of(memory_));
    bytes->release();
    EXPECT_FALSE(all_.has_some_of(memory_));
    BorrowedBytes* const again = all_.borrow(payload(2048, 2048), later_);
    EXPECT_EQ(again, bytes) << "nothing is allocated";
    bytes_[2048] = std::byte{3};
    EXPECT_EQ(placed(*again), std::byte{3});
    again->release();
    later_.settle();
}

TEST_F(BorrowedBytesTest, AreFewAtATime) {
    std::vector<BorrowedBytes*> all;
    while (BorrowedBytes* const bytes = all_.borrow(payload(0, 2048), later_)) {
        all.push_back(bytes);
        ASSERT_LT(all.size(), 100U);
    }
    EXPECT_GT(all.size(), 4U);
    all_.settle();
    BorrowedBytes* const bytes = all_.borrow(payload(0, 2048), later_);
    EXPECT_NE(bytes, nullptr) << "what has been taken does not count";
    bytes->release();
    for (BorrowedBytes* const one : all) {
        one->release();
    }
}

TEST_F(BorrowedBytesTest, AreOfAnotherProcessThatThisReaches) {
    HostMemory own(MemoryOf::kThisProcess);
    Payload from = payload(0, 2048);
    from.space = &own;
    EXPECT_EQ(all_.borrow(from, later_), nullptr);
    from = payload(0, 2048);
    span_.kind = MemoryKind::kDevice;
    EXPECT_EQ(all_.borrow(from, later_), nullptr);
    EXPECT_TRUE(later_.empty());
}

constexpr std::size_t kFortyPackets = 40 * 1024UL;

// As a server does whose programs have news that they have not seen: to the last event by then.
Step step_exactly(fabric::SimDuration duration) {
    return [duration](History& run) {
        Simulation& simulation = run.pair.simulation();
        const fabric::SimTime end = run.pair.now() + duration;
        while (simulation.loop().next_time().value_or(fabric::SimTime::max()) <= end) {
            simulation.step_exactly();
        }
    };
}

TEST(Borrowed, BytesAreThoseOfTheTimeOfSending) {
    const PairOptions options{.topology = "star:3", .memory = MemoryOf::kAnother};
    const Step post = [](History& run) {
        run.pair.a.qp.post(read_of(run.pair.a, run.pair.b, 1, 0, kFortyPackets));
    };
    const Step write = [](History& run) { run.pair.b.fill(0, Side::kMemoryBytes, 79); };
    for (const fabric::SimDuration time :
         instants_of(WrOpcode::kRdmaRead, kFortyPackets, options)) {
        SCOPED_TRACE(testing::Message() << "written after " << time.count() << " ps");
        expect_one_run({post, until(time), write, to_the_end}, options);
        for (const auto move : {until, step_exactly}) {
            expect_one_run({one_by_one({post, move(time), write, to_the_end})}, options);
        }
    }
}

TEST(Borrowed, TrafficIsThatOfSinglePackets) {
    for (std::uint64_t seed = 101; seed <= 140; ++seed) {
        SCOPED_TRACE(seed);
        const std::string topology = seed % 2 == 0 ? "pair" : "star:3";
        RandomTraffic(seed).run(60, {.topology = topology, .memory = MemoryOf::kAnother},
                                Links::kFast, seed % 3 == 0 ? walk : until);
        if (testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

TEST(Borrowed, WhateverHappensHasOneOutcome) {
    try_acts(kNinePackets, {.topology = "star:3", .memory = MemoryOf::kAnother}, 1, 23);
}

}  // namespace
}  // namespace simverbs::test
