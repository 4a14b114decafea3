// One thread waits on a word, another releases it: no release is missed, whichever comes first.
#include "simverbs/threads/wake_word.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace simverbs {
namespace {

using namespace std::chrono_literals;

void release(WakeWord& word) {
    if (word.release()) {
        word.wake();
    }
}

TEST(WakeWord, IsReleasedForTheTicketThatWasTakenBefore) {
    WakeWord word;
    const std::uint32_t ticket = word.ticket();
    EXPECT_FALSE(word.is_released(ticket));
    EXPECT_FALSE(word.release()) << "nobody sleeps";
    EXPECT_TRUE(word.is_released(ticket));
    EXPECT_FALSE(word.is_released(word.ticket()));
}

TEST(WakeWord, AReleaseBeforeTheSleepEndsIt) {
    WakeWord word;
    const std::uint32_t ticket = word.ticket();
    release(word);
    word.sleep(ticket);
    EXPECT_TRUE(word.sleep_for(ticket, 1h));
    EXPECT_TRUE(word.spin(ticket, 1h));
}

TEST(WakeWord, ALimitEndsTheWait) {
    WakeWord word;
    const std::uint32_t ticket = word.ticket();
    EXPECT_FALSE(word.spin(ticket, 1us));
    EXPECT_FALSE(word.sleep_for(ticket, 1us));
    EXPECT_TRUE(word.release()) << "after its limit the owner may sleep again";
}

TEST(WakeWord, ASpinEndsWhenItsOwnerIsAskedToLead) {
    WakeWord word;
    const std::uint32_t ticket = word.ticket();
    EXPECT_FALSE(word.take_asked());
    word.ask();
    EXPECT_FALSE(word.is_released(ticket));
    EXPECT_FALSE(word.spin(ticket, 1h));
    EXPECT_TRUE(word.take_asked());
    EXPECT_FALSE(word.take_asked()) << "once for each time";
    EXPECT_EQ(word.ticket(), ticket);
}

TEST(WakeWord, AReleaseTakesBackWhatWasAsked) {
    WakeWord word;
    const std::uint32_t ticket = word.ticket();
    word.ask();
    EXPECT_FALSE(word.release()) << "nobody sleeps";
    EXPECT_TRUE(word.spin(ticket, 1h));
    EXPECT_FALSE(word.take_asked());
    EXPECT_FALSE(word.sleep_for(word.ticket(), 1us));
}

TEST(WakeWord, WakesAnOwnerThatSleepsAndOneThatSpins) {
    constexpr int kRounds = 20'000;
    WakeWord ping;
    WakeWord pong;
    std::atomic<int> rounds{0};
    std::uint32_t next = ping.ticket();
    std::thread other([&, ticket = next]() mutable {
        for (int i = 0; i < kRounds; ++i) {
            ping.sleep(ticket);
            ticket = ping.ticket();
            ++rounds;
            release(pong);
        }
    });
    for (int i = 0; i < kRounds; ++i) {
        const std::uint32_t ticket = pong.ticket();
        release(ping);
        if (i % 2 == 0 || !pong.spin(ticket, 10us)) {
            pong.sleep(ticket);
        }
        ASSERT_EQ(rounds, i + 1);
    }
    other.join();
}

}  // namespace
}  // namespace simverbs
