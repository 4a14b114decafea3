// Things that a client process may do to itself: memory that it takes away, exec, fork; a server
// that may not reach its memory; a server that dies.
#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "tests/server/served_world.hpp"

namespace server_test {
namespace {

// Values of enum ibv_wc_status.
constexpr const char* kSuccess = "status 0";
constexpr const char* kFlushed = "status 5";
constexpr const char* kRemoteAccess = "status 10";
constexpr const char* kRetryExceeded = "status 12";

TEST(ClientMemory, CrossesWhereTheServerMayNotReachIt) {
    ServedWorld world("star:2", true);
    Couple couple(world, "h0", "h1");
    EXPECT_EQ(couple.a.ask("write"), kSuccess);
    couple.begin();
    EXPECT_TRUE(couple.finish());
}

TEST(ClientMemory, OfAKilledClientIsNotWaitedForWhereItCopiesItself) {
    ServedWorld world("star:3", true);
    Couple couple(world, "h0", "h1");
    couple.begin();
    Process victim = world.client("h2");
    const std::string other = couple.a.ask("join " + victim.hear());
    victim.say("connect " + other);
    victim.say("bother");
    EXPECT_EQ(victim.hear(), "connected");
    EXPECT_EQ(victim.hear(), "bothering");
    victim.kill(SIGKILL);  // and stays a zombie for now
    EXPECT_TRUE(couple.a.ask("leave").starts_with("left "));
    EXPECT_TRUE(couple.finish());
    victim.end();
}

TEST(ClientMemory, OfAStoppedClientHoldsNobodyElseWhereItCopiesItself) {
    ServedWorld world("star:3", true);
    Couple couple(world, "h0", "h1");
    couple.begin();
    Process sleeper = world.client("h2");
    const std::string other = couple.a.ask("join " + sleeper.hear());
    EXPECT_EQ(sleeper.ask("connect " + other), "connected");
    sleeper.kill(SIGSTOP);
    EXPECT_TRUE(world.forgets(sleeper)) << world.status();  // hung up on, after a while
    EXPECT_TRUE(couple.finish());
}

TEST(ClientMemory, ThatIsUnmappedGivesProtectionErrorsOnBothSides) {
    ServedWorld world("star:2");
    Couple couple(world, "h0", "h1");
    EXPECT_EQ(couple.b.ask("unmap"), "unmapped");
    EXPECT_EQ(couple.a.ask("write"), kRemoteAccess);
    EXPECT_EQ(couple.b.ask("write"), kFlushed);  // the responder's queue pair is in error
    EXPECT_EQ(couple.a.end(), 0);
    EXPECT_EQ(couple.b.end(), 0);
    EXPECT_TRUE(world.serves());
}

TEST(ClientMemory, ThatIsUnmappedGivesProtectionErrorsWhereItCopiesItself) {
    ServedWorld world("star:2", true);
    Couple couple(world, "h0", "h1");
    EXPECT_EQ(couple.b.ask("unmap"), "unmapped");
    EXPECT_EQ(couple.a.ask("write"), kRemoteAccess);
    EXPECT_TRUE(world.serves());
}

TEST(ClientLife, AnotherProgramInItsPlaceIsAHostWithoutPower) {
    ServedWorld world("star:2");
    Couple couple(world, "h0", "h1");
    EXPECT_EQ(couple.b.ask("exec"), "another program");
    EXPECT_EQ(couple.b.ask("it lives"), "it lives");  // cat: the exec is behind it
    EXPECT_EQ(couple.a.ask("write"), kRetryExceeded);
    EXPECT_EQ(couple.a.end(), 0);
    EXPECT_TRUE(world.is_empty_at_last()) << world.status();
}

TEST(ClientLife, AChildsInheritedObjectsAnswerEio) {
    ServedWorld world("star:2");
    Couple couple(world, "h0", "h1");
    EXPECT_EQ(couple.a.ask("fork"), "child 0");
    couple.begin();  // the parent is none the wiser
    EXPECT_TRUE(couple.finish());
}

TEST(ClientLife, WithoutItsServerAnswersEioAndHangsNowhere) {
    ServedWorld world("star:2");
    Couple couple(world, "h0", "h1");
    world.server().kill(SIGKILL);
    world.server().end();
    EXPECT_EQ(couple.a.ask("orphan"), "orphaned");
    EXPECT_EQ(couple.b.ask("orphan"), "orphaned");
    EXPECT_EQ(couple.a.end(), 0);
    EXPECT_EQ(couple.b.end(), 0);
}

}  // namespace
}  // namespace server_test
