// Trains that pass switches and single packets are one run.
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/hca/random_traffic.hpp"
#include "tests/hca/train_history.hpp"

namespace simverbs::test {
namespace {

TEST(TrainPassage, OneEventAtTheSwitchBringsSeveralPackets) {
    const auto events_of = [](Packets packets, std::size_t length) {
        History run(packets, {.topology = "star:3"});
        const std::uint64_t before = run.events();
        run.pair.a.qp.post(write_of(run.pair.a, run.pair.b, 1, 0, length));
        run.pair.drive();
        EXPECT_EQ(run.pair.b.bytes(0, length), run.pair.a.bytes(0, length));
        return run.events() - before;
    };
    EXPECT_EQ(events_of(Packets::kSingle, 9 * 1024UL), 20U)
        << "nine packets, one answer, two links";
    EXPECT_EQ(events_of(Packets::kAsTrains, 9 * 1024UL), 6U);
    EXPECT_LT(events_of(Packets::kAsTrains, 256 * 1024UL) * 10,
              events_of(Packets::kSingle, 256 * 1024UL));
}

TEST(TrainPassage, ResponsesComeTogether) {
    const auto events_of = [](Packets packets) {
        History run(packets, {.topology = "star:3"});
        const std::uint64_t before = run.events();
        run.pair.a.qp.post(read_of(run.pair.a, run.pair.b, 1, 0, 256 * 1024UL));
        run.pair.drive();
        EXPECT_EQ(run.pair.a.bytes(0, 256 * 1024UL), run.pair.b.bytes(0, 256 * 1024UL));
        return run.events() - before;
    };
    EXPECT_LT(events_of(Packets::kAsTrains) * 4, events_of(Packets::kSingle));
}

// Two switches, two hosts at each, and links with the given properties.
class Chain {
  public:
    explicit Chain(std::string_view properties)
        : file_(testing::TempDir() + "chain_" + std::to_string(getpid()) + ".yaml") {
        std::ofstream file(file_);
        file << "hosts: {h0..3: {}}\nswitches: {s0..1: {}}\nlinks:\n";
        for (const std::string_view ends : {"h0, s0", "h2, s0", "s0, s1", "h1, s1", "h3, s1"}) {
            file << "  - {ends: [" << ends << "], " << properties << "}\n";
        }
    }
    ~Chain() { std::remove(file_.c_str()); }
    Chain(const Chain&) = delete;
    Chain& operator=(const Chain&) = delete;

    [[nodiscard]] const std::string& file() const { return file_; }

  private:
    std::string file_;
};

// Room for seven packets of 1024 bytes, which is less than is under way without waits.
constexpr std::string_view kSmallBuffers = "buffer: 8448B";

constexpr std::size_t kFortyPackets = 40 * 1024 - 100;

TEST(TrainPassage, WhateverHappensThroughASwitchHasOneOutcome) {
    try_acts(kNinePackets, {.topology = "star:3"}, 2, 9);
}

TEST(TrainPassage, WhateverHappensThroughTwoSwitchesHasOneOutcome) {
    const Chain chain(kSmallBuffers);
    try_acts(kFortyPackets, {.topology = chain.file()}, 5, 67);
}

// At every instant, for minutes.
TEST(TrainPassage, DISABLED_WhateverHappensAtEachInstantHasOneOutcome) {
    try_acts(kNinePackets, {.topology = "star:3"});
    try_acts(kNinePackets, {.topology = Chain("buffer: 128KiB").file()});
    try_acts(kFortyPackets, {.topology = Chain(kSmallBuffers).file()}, 0, 3);
}

void try_random_traffic(const std::string& topology, std::uint64_t first, std::uint64_t last,
                        Links links = Links::kFast) {
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        SCOPED_TRACE(seed);
        RandomTraffic(seed).run(60, {.topology = topology}, links);
        if (testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

TEST(TrainPassage, RandomTrafficIsOneRun) {
    const Chain small(kSmallBuffers);
    try_random_traffic("star:3", 1, 15);
    try_random_traffic(small.file(), 16, 30);
}

TEST(TrainPassage, RandomTrafficOnLinksOfTwoLanesIsOneRun) {
    const Chain lanes("buffer: 24KiB, vls: 2");
    try_random_traffic(lanes.file(), 31, 40);
}

TEST(TrainPassage, RandomTrafficWithTimeoutsIsOneRun) {
    const Chain slow("rate: 1xSDR");
    try_random_traffic(slow.file(), 41, 48, Links::kSlow);
}

TEST(TrainPassage, DISABLED_MuchRandomTrafficIsOneRun) {
    const Chain small(kSmallBuffers);
    try_random_traffic("star:3", 100, 300);
    try_random_traffic(small.file(), 300, 500);
    const Chain lanes("buffer: 24KiB, vls: 2");
    try_random_traffic(lanes.file(), 500, 600);
    const Chain slow("rate: 1xSDR");
    try_random_traffic(slow.file(), 600, 700, Links::kSlow);
}

}  // namespace
}  // namespace simverbs::test
