// A client of a served world that is killed, and two others that do not notice.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/server/served_world.hpp"

namespace server_test {
namespace {

int kills() {
    constexpr int kQuick = 10;
    const char* many = std::getenv("SIMVERBS_TEST_KILLS");
    return many == nullptr ? kQuick : static_cast<int>(std::strtol(many, nullptr, 10));
}

// Moments come from a seed, so that a failure can be tried again; the kernel adds its own.
void die_at_some_moment(const Process& victim, std::minstd_rand& moments) {
    constexpr unsigned kWithinUs = 15'000;
    std::this_thread::sleep_for(std::chrono::microseconds(moments() % kWithinUs));
    victim.kill(SIGKILL);
}

// One victim: dies while it opens its device, while it connects, or while data moves both ways.
void live_and_die(const ServedWorld& world, Couple& couple, std::minstd_rand& moments) {
    Process victim = world.client("h2");
    constexpr unsigned kInfantDeaths = 4;
    if (moments() % kInfantDeaths == 0) {
        die_at_some_moment(victim, moments);
        victim.end();
        return;
    }
    const std::string itself = victim.hear();
    const std::string other = couple.a.ask("join " + itself);
    ASSERT_NE(other, "");
    victim.say("connect " + other);
    victim.say("bother");
    die_at_some_moment(victim, moments);
    EXPECT_EQ(victim.end(), 128 + SIGKILL);
    EXPECT_TRUE(couple.a.ask("leave").starts_with("left "));
}

TEST(PeerDeath, DisturbsNobodyElseAndLeavesNothing) {
    constexpr unsigned kSeed = 20;
    std::minstd_rand moments(kSeed);
    ServedWorld world("star:3");
    {
        Couple warm_up(world, "h0", "h1");  // what the server allocates once
        warm_up.begin();
        ASSERT_TRUE(warm_up.finish());
    }
    ASSERT_TRUE(world.is_empty_at_last());
    const Holdings before = world.holdings();
    Couple couple(world, "h0", "h1");
    couple.begin();
    for (int i = 0; i < kills(); ++i) {
        SCOPED_TRACE("kill " + std::to_string(i));
        live_and_die(world, couple, moments);
        ASSERT_TRUE(world.serves());
        ASSERT_FALSE(HasFailure());
    }
    EXPECT_TRUE(couple.finish());
    EXPECT_TRUE(world.is_empty_at_last()) << world.status();
    EXPECT_EQ(world.status().find("queue pairs"), std::string::npos) << world.status();
    const Holdings after = world.holdings();
    EXPECT_EQ(after.descriptors, before.descriptors);
    EXPECT_EQ(after.mappings, before.mappings);
    constexpr std::size_t kRoughlyKib = 4096;
    EXPECT_LT(after.resident_kib, before.resident_kib + kRoughlyKib);
    Couple others(world, "h2", "h0");
    others.begin();
    EXPECT_TRUE(others.finish());
}

TEST(PeerDeath, IsRetryExceededToWhoSendsToIt) {
    ServedWorld world("star:2");
    Couple couple(world, "h0", "h1");
    EXPECT_EQ(couple.a.ask("write"), "status 0");
    couple.b.kill(SIGKILL);
    couple.b.end();
    EXPECT_EQ(couple.a.ask("write"), "status 12");  // IBV_WC_RETRY_EXC_ERR
    EXPECT_EQ(couple.a.end(), 0);
}

}  // namespace
}  // namespace server_test
