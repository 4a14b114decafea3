// Trains and single packets are one run: whatever is looked at, at whatever time, and whatever
// happens between two packets of a message.
#include <array>

#include <gmock/gmock.h>

#include "tests/hca/random_traffic.hpp"
#include "tests/hca/train_history.hpp"

namespace simverbs::test {
namespace {

using namespace std::chrono_literals;

TEST(Train, OneEventBringsSeveralPackets) {
    const auto events_of = [](Packets packets, std::size_t length) {
        History run(packets);
        const std::uint64_t before = run.events();
        run.pair.a.qp.post(write_of(run.pair.a, run.pair.b, 1, 0, length));
        run.pair.drive();
        EXPECT_EQ(run.pair.b.bytes(0, length), run.pair.a.bytes(0, length));
        return run.events() - before;
    };
    EXPECT_EQ(events_of(Packets::kSingle, kNinePackets), 10U) << "nine packets, one answer";
    EXPECT_EQ(events_of(Packets::kAsTrains, kNinePackets), 3U);
    EXPECT_LT(events_of(Packets::kAsTrains, 256 * 1024UL) * 4,
              events_of(Packets::kSingle, 256 * 1024UL));
}

// Each packet of the one arrives among those of the other.
TEST(Train, ArrivesAsAWholeAmongOtherEvents) {
    const auto events_of = [](Packets packets) {
        History run(packets, {.topology = "star:2"});
        const std::uint64_t before = run.events();
        run.pair.a.qp.post(write_of(run.pair.a, run.pair.b, 1, 0, 100'000));
        run.pair.b.qp.post(write_of(run.pair.b, run.pair.a, 2, 100'000, 100'000));
        run.pair.drive();
        EXPECT_EQ(run.pair.b.bytes(0, 100'000), run.pair.a.bytes(0, 100'000));
        EXPECT_EQ(run.pair.a.bytes(100'000, 100'000), run.pair.b.bytes(100'000, 100'000));
        return run.events() - before;
    };
    EXPECT_LT(events_of(Packets::kAsTrains) * 8, events_of(Packets::kSingle));
}

TEST(Train, WhatStandsOnAnEthernetLinkIsOneToo) {
    PairOptions options{.topology = "eth-pair", .gid_index = 3};
    expect_one_run(
        {[](History& run) { run.pair.a.qp.post(write_of(run.pair.a, run.pair.b, 1, 0, 100'000)); },
         until(3us), to_the_end},
        options);
}

// Each packet carries what the one before it has placed.
TEST(Train, OntoItsOwnSourceLandsPacketByPacket) {
    for (const std::size_t distance : {0U, 3U, 1000U, 1500U, 5000U}) {
        expect_one_run({[distance](History& run) {
                            Side& a = run.pair.a;
                            const Region aliased =
                                run.pair.b.register_memory(a.memory.data(), a.memory.size());
                            Send send = write_of(a, run.pair.b, 1, 0, 20 * 1024UL);
                            send.remote_address = a.address(distance);
                            send.rkey = aliased.rkey;
                            a.qp.post(send);
                        },
                        to_the_end});
    }
}

TEST(Train, IsAsFarAsItsPacketsAtAnyTime) {
    for (const WrOpcode opcode : {WrOpcode::kRdmaWrite, WrOpcode::kSend, WrOpcode::kRdmaRead,
                                  WrOpcode::kRdmaWriteWithImm}) {
        std::vector<std::function<void(History&)>> steps;
        steps.emplace_back([opcode](History& run) {
            Send send = write_of(run.pair.a, run.pair.b, 1, 0, 40 * 1024 + 7);
            send.opcode = opcode;
            run.pair.b.qp.post_receive(
                11, {run.pair.b.segment(100'000, 5'000), run.pair.b.segment(50'000, 40'000)});
            run.pair.a.qp.post(send);
        });
        for (int i = 0; i < 80; ++i) {
            steps.push_back(until(fabric::SimDuration(71'234)));
        }
        steps.emplace_back(to_the_end);
        expect_one_run(steps);
    }
}

// Those that arrive within a window are one event each; those that do not are cut.
TEST(Train, WalkedWindowByWindowIsOneRun) {
    for (const std::string topology : {"pair", "star:2"}) {
        for (const std::int64_t window : {71'234, 1'071'234, 5'071'234}) {
            SCOPED_TRACE(testing::Message() << topology << ", " << window << " ps");
            std::vector<Step> steps;
            steps.emplace_back([](History& run) {
                run.pair.a.qp.post(write_of(run.pair.a, run.pair.b, 1, 0, 100'000));
                run.pair.b.qp.post(write_of(run.pair.b, run.pair.a, 2, 100'000, 80'000));
            });
            for (std::int64_t time = 0; time < 20'000'000; time += window) {
                steps.push_back(walk(fabric::SimDuration(window)));
            }
            steps.emplace_back(to_the_end);
            expect_one_run(steps, {.topology = topology});
        }
    }
}

TEST(Train, WalkedFarIsFewEvents) {
    const auto events_of = [](Packets packets) {
        History run(packets, {.topology = "star:2"});
        const std::uint64_t before = run.events();
        run.pair.a.qp.post(write_of(run.pair.a, run.pair.b, 1, 0, 100'000));
        run.pair.b.qp.post(write_of(run.pair.b, run.pair.a, 2, 100'000, 100'000));
        walk(1ms)(run);
        EXPECT_EQ(run.pair.b.bytes(0, 100'000), run.pair.a.bytes(0, 100'000));
        return run.events() - before;
    };
    EXPECT_LT(events_of(Packets::kAsTrains) * 8, events_of(Packets::kSingle));
}

TEST(Train, RandomTrafficThatIsWalkedIsOneRun) {
    for (std::uint64_t seed = 51; seed <= 70; ++seed) {
        SCOPED_TRACE(seed);
        const std::string topology = seed % 2 == 0 ? "pair" : "star:3";
        RandomTraffic(seed).run(60, {.topology = topology}, Links::kFast, walk);
        if (testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

TEST(Train, WhateverHappensAmongNinePacketsHasOneOutcome) {
    try_acts(kNinePackets, {}, 0, 3);
}

TEST(Train, LosingAnyAnswerHasOneOutcome) {
    for (std::uint64_t nth = 1; nth <= 12; ++nth) {
        expect_one_run({[nth](History& run) {
                            run.pair.drop_nth(run.pair.b, nth);
                            run.pair.a.qp.post(
                                write_of(run.pair.a, run.pair.b, 1, 0, 150 * 1024UL));
                        },
                        until(20us), to_the_end});
    }
}

TEST(Train, LosingAnyPacketHasOneOutcome) {
    for (std::uint64_t nth = 1; nth <= 40; ++nth) {
        expect_one_run(
            {[](History& run) {
                 run.pair.a.qp.post(write_of(run.pair.a, run.pair.b, 1, 0, 80 * 1024UL));
                 run.pair.b.qp.post(write_of(run.pair.b, run.pair.a, 1, 100 * 1024UL, 80 * 1024UL));
             },
             until(1us), [nth](History& run) { run.pair.drop_nth(run.pair.a, nth); }, until(20us),
             to_the_end});
    }
}

TEST(Train, RandomTrafficIsOneRun) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        SCOPED_TRACE(seed);
        RandomTraffic(seed).run(60, {});
        if (testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

}  // namespace
}  // namespace simverbs::test
