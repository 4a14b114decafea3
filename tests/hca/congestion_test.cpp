// RoCE v2 on a switch with several senders for one receiver: marks, notifications and rates.
#include <algorithm>
#include <memory>
#include <vector>

#include <gmock/gmock.h>

#include "fabric/net/link_direction.hpp"

#include "simverbs/hca/queue_pair.hpp"

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

using testing::Each;

// Hosts 0 and 2.. write to host 1.
class Incast {
  public:
    static constexpr std::size_t kWrites = 60;
    static constexpr std::size_t kBytes = 128 * 1024UL;

    Incast(const std::string& personality, std::size_t senders, const std::string& links = "")
        : pair_({.personality = personality,
                 .topology = "eth-star:" + std::to_string(senders + 1) + links,
                 .gid_index = personality == "rxe" ? std::uint8_t{1} : std::uint8_t{3}}) {
        for (std::size_t i = 1; i < senders; ++i) {
            others_.push_back(std::make_unique<Side>(pair_.simulation(), i + 1, pair_.options()));
            Side& other = *others_.back();
            receivers_.push_back(pair_.b.make_qp());
            pair_.connect(other.qp, pair_.b, receivers_.back());
            pair_.connect(receivers_.back(), other, other.qp);
        }
    }

    // Every sender's writes; the longest queue of the switch.
    std::uint64_t run() {
        for_each_sender([this](Side& side) {
            for (std::size_t i = 0; i < kWrites; ++i) {
                side.qp.post(write_of(side, pair_.b, i, 0, kBytes));
            }
        });
        std::uint64_t longest = 0;
        const fabric::LinkDirection& out = *way_out().outgoing();
        while (pair_.simulation().step() != 0) {
            longest = std::max(longest, out.waiting_bytes(0));
            for_each_sender([this](Side& side) {
                const std::uint64_t rate = queue_pair(side).congestion_rate();
                if (rate != 0) {
                    least_rate = std::min(least_rate, rate);
                }
            });
        }
        for_each_sender([](Side& side) {
            EXPECT_THAT(statuses(side.send_cq.poll()),
                        testing::AllOf(testing::SizeIs(kWrites), Each(WcStatus::kSuccess)));
        });
        return longest;
    }

    template <class F>
    void for_each_sender(F&& visit) {
        visit(pair_.a);
        for (const auto& other : others_) {
            visit(*other);
        }
    }

    static QueuePair& queue_pair(Side& side) { return *side.host.hca().qps().find(side.qp.qpn()); }
    [[nodiscard]] const fabric::Port& way_out() {
        return pair_.simulation().network().switch_at(0).port(fabric::PortNumber{2});
    }
    [[nodiscard]] static std::uint64_t counted(const Side& side, HwCounter counter) {
        return side.host.hca().hw_counters(1).value(counter);
    }
    [[nodiscard]] Pair& pair() { return pair_; }

    std::uint64_t least_rate = ~0ULL;

  private:
    Pair pair_;
    std::vector<std::unique_ptr<Side>> others_;
    std::vector<QueuePairHandle> receivers_;
};

// Without a reaction the windows of three senders stand in the queue, 256 KiB and headers each.
// The timers of a limited rate end with the engine that they belong to.
TEST(Congestion, AResetUnderALimitedRateLeavesNoTimer) {
    Incast incast("connectx6", 2);
    Side& sender = incast.pair().a;
    incast.for_each_sender([&incast](Side& side) {
        for (std::size_t i = 0; i < Incast::kWrites; ++i) {
            side.qp.post(write_of(side, incast.pair().b, i, 0, Incast::kBytes));
        }
    });
    Simulation& simulation = incast.pair().simulation();
    while (Incast::queue_pair(sender).congestion_rate() == 0) {
        ASSERT_NE(simulation.step(), 0U) << "nobody was told of congestion";
    }
    incast.pair().advance(fabric::SimDuration(8'000'000));  // its next packet has gone
    sender.send_cq.poll();
    const std::size_t pending = simulation.loop().pending();
    EXPECT_EQ(sender.qp.modify_to(QpState::kReset), 0);
    EXPECT_EQ(pending - simulation.loop().pending(), 4U)
        << "the timers of acknowledgment, alpha, increase and rate";
    EXPECT_EQ(Incast::queue_pair(sender).congestion_rate(), 0U);
    while (simulation.step() != 0) {
    }
    EXPECT_TRUE(sender.send_cq.poll().empty());
}

TEST(Congestion, NotificationsKeepTheQueueShort) {
    Incast deaf("rxe", 3);
    const std::uint64_t without = deaf.run();
    EXPECT_GT(without, 600'000U);
    EXPECT_EQ(deaf.way_out().counters().marked, 0U);
    EXPECT_EQ(deaf.counted(deaf.pair().b, HwCounter::kNpCnpSent), 0U);

    Incast dcqcn("spec", 3);
    dcqcn.run();
    Side& receiver = dcqcn.pair().b;
    EXPECT_GT(dcqcn.way_out().counters().marked, 0U);
    EXPECT_EQ(dcqcn.counted(receiver, HwCounter::kNpEcnMarkedRocePackets),
              dcqcn.way_out().counters().marked);
    EXPECT_GT(dcqcn.counted(receiver, HwCounter::kNpCnpSent), 3U);
    EXPECT_LT(dcqcn.counted(receiver, HwCounter::kNpCnpSent),
              dcqcn.counted(receiver, HwCounter::kNpEcnMarkedRocePackets));
    std::uint64_t handled = 0;
    dcqcn.for_each_sender(
        [&](Side& side) { handled += dcqcn.counted(side, HwCounter::kRpCnpHandled); });
    EXPECT_EQ(handled, dcqcn.counted(receiver, HwCounter::kNpCnpSent));
    EXPECT_LT(dcqcn.least_rate, 50'000'000'001U);
    EXPECT_EQ(dcqcn.way_out().counters().total_discards(), 0U);
}

// Once the first cut has worked, the queue stays about where marks begin (400 kB), shorter than the
// three windows.
TEST(Congestion, SettlesNearTheFirstMark) {
    Incast dcqcn("spec", 3);
    dcqcn.for_each_sender([&](Side& side) {
        for (std::size_t i = 0; i < Incast::kWrites; ++i) {
            side.qp.post(write_of(side, dcqcn.pair().b, i, 0, Incast::kBytes));
        }
    });
    dcqcn.pair().advance(fabric::SimDuration(500'000'000));
    std::uint64_t longest = 0;
    const fabric::LinkDirection& out = *dcqcn.way_out().outgoing();
    for (int i = 0; i < 1000; ++i) {
        dcqcn.pair().advance(fabric::SimDuration(1'000'000));
        longest = std::max(longest, out.waiting_bytes(0));
    }
    EXPECT_LT(longest, 600'000U);
    EXPECT_GT(longest, 400'000U);
}

TEST(Congestion, NothingIsLeftPendingWhenAllIsSent) {
    Incast dcqcn("spec", 3);
    dcqcn.run();
    EXPECT_TRUE(dcqcn.pair().simulation().loop().empty());
    dcqcn.for_each_sender(
        [](Side& side) { EXPECT_EQ(Incast::queue_pair(side).congestion_rate(), 0U); });
}

// Six windows are more than the megabyte of the queue: without PFC it drops, and RC sends again.
TEST(Congestion, WithoutPfcTheTailIsDroppedAndSentAgain) {
    Incast deaf("rxe", 6, ",pfc=none");
    deaf.run();
    EXPECT_GT(deaf.way_out().counters().discarded(fabric::DropReason::kQueueFull), 0U);
}

TEST(Congestion, WithPfcTheWindowsWaitInTheSwitch) {
    Incast deaf("rxe", 6);
    EXPECT_GT(deaf.run(), 1U << 20);
    EXPECT_EQ(deaf.way_out().counters().total_discards(), 0U);
}

TEST(Congestion, OneFlowIsNeverMarked) {
    Pair pair({.topology = "eth-star:2", .gid_index = 3});
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 256 * 1024UL));
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), testing::ElementsAre(WcStatus::kSuccess));
    EXPECT_EQ(pair.b.host.hca().hw_counters(1).value(HwCounter::kNpEcnMarkedRocePackets), 0U);
}

// IBA A17.9.3: BTH and 16 bytes that are reserved; to the marked packet's sender, by a queue pair
// that reacts at once with half of its port's rate.
TEST(Congestion, ANotificationHalvesTheRateAndTimeRestoresIt) {
    Pair pair({.topology = "eth-pair", .gid_index = 3});
    pair.watch_packets();
    QueuePair& sender = Incast::queue_pair(pair.a);
    Incast::queue_pair(pair.b).congestion_seen();
    Incast::queue_pair(pair.b).congestion_seen();  // too soon for another
    pair.advance(fabric::SimDuration(1'000'000));
    EXPECT_THAT(pair.packets_of(pair.b), testing::SizeIs(1));
    EXPECT_EQ(pair.b.host.hca().hw_counters(1).value(HwCounter::kNpCnpSent), 1U);
    EXPECT_EQ(pair.b.host.hca().hw_counters(1).value(HwCounter::kNpEcnMarkedRocePackets), 2U);
    EXPECT_EQ(pair.a.host.hca().hw_counters(1).value(HwCounter::kRpCnpHandled), 1U);
    EXPECT_NEAR(static_cast<double>(sender.congestion_rate()), 50e9, 1e6);
    // 1000 + 28 bytes a packet at 50 Gb/s: 164.48 ns apart instead of 88.
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 100 * 1024UL));
    const fabric::SimTime began = pair.now();
    pair.drive_until_sent(pair.a);
    EXPECT_GT(pair.now() - began, fabric::SimDuration(100 * 160'000));
    EXPECT_LT(pair.now() - began, fabric::SimDuration(100 * 170'000 + 2'000'000));
    pair.drive();
    EXPECT_EQ(sender.congestion_rate(), 0U);
    EXPECT_LT(pair.now() - began, fabric::SimDuration(100'000'000)) << "no limit for who is idle";
}

TEST(Congestion, ADeviceThatDoesNotReactStaysAsItIs) {
    Pair pair({.personality = "rxe", .topology = "eth-pair", .gid_index = 1});
    Incast::queue_pair(pair.a).congestion_notified();
    EXPECT_EQ(Incast::queue_pair(pair.a).congestion_rate(), 0U);
    EXPECT_EQ(pair.a.host.hca().hw_counters(1).value(HwCounter::kRpCnpHandled), 0U);
}

}  // namespace
}  // namespace simverbs::test
