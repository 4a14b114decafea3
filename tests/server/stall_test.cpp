// A served world in which everyone waits for somebody else says so where SIMVERBS_WARN asks for it.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/served_world.hpp"

namespace server_test {
namespace {

using testing::HasSubstr;

constexpr const char* kStall = "everyone waits and no event is left, at ";

// A served world that takes SIMVERBS_WARN from the environment of its server.
class WarnedWorld {
  public:
    WarnedWorld(const char* warn, const std::string& schedule)
        : world_(((void)setenv("SIMVERBS_WARN", warn, 1), "star:2"), false,
                 {"--schedule", schedule}) {
        unsetenv("SIMVERBS_WARN");
    }
    ServedWorld& operator*() { return world_; }
    ServedWorld* operator->() { return &world_; }

    [[nodiscard]] Process waiting(const std::string& way, const std::string& host) const {
        return {{SIMVERBS_OUTLIVING_CLIENT, way},
                {"SIMVERBS_SERVER=" + world_.socket(), "SIMVERBS_HOST=" + host}};
    }

  private:
    ServedWorld world_;
};

// Longer than the server takes to find a stall.
void wait_for_long() {
    std::this_thread::sleep_for(std::chrono::seconds(4));
}

using Stalled = std::tuple<const char*, const char*>;  // schedule, how it waits
class StallOf : public testing::TestWithParam<Stalled> {};

TEST_P(StallOf, IsReportedOnceWithWhatQueuePairsWaitFor) {
    const auto& [schedule, way] = GetParam();
    WarnedWorld world("1", schedule);
    Process waits = world.waiting(way, "h0");
    ASSERT_EQ(waits.hear(), "ready");
    Process polls = world.waiting("poll", "h1");
    ASSERT_EQ(polls.hear(), "ready");
    EXPECT_TRUE(world->complains_at_last(kStall)) << world->status();
    EXPECT_THAT(world->complaints(), HasSubstr("no queue pair has left RESET"));
    wait_for_long();
    const std::string said = world->complaints();
    EXPECT_EQ(said.find(kStall), said.rfind(kStall)) << said;
}

INSTANTIATE_TEST_SUITE_P(Ways, StallOf,
                         testing::Combine(testing::Values("free", "canonical"),
                                          testing::Values("poll", "completion-event")),
                         [](const auto& stalled) {
                             std::string name = std::string(std::get<0>(stalled.param)) + "_" +
                                                std::get<1>(stalled.param);
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

TEST(Stall, NamesAQueueThatWasNotArmed) {
    WarnedWorld world("1", "free");
    Process waits = world.waiting("unarmed", "h0");
    ASSERT_EQ(waits.hear(), "ready");
    EXPECT_TRUE(
        world->complains_at_last("has 1 completion and is not armed, so "
                                 "ibv_get_cq_event() does not return: call "
                                 "ibv_req_notify_cq()"))
        << world->complaints();
}

TEST(NoStall, IsReportedWhileAProgramIsElsewhere) {
    WarnedWorld world("1", "free");
    Process polls = world.waiting("poll", "h0");
    ASSERT_EQ(polls.hear(), "ready");
    Process sleeps = world.waiting("descriptor", "h1");  // in poll(2)
    ASSERT_EQ(sleeps.hear(), "ready");
    wait_for_long();
    EXPECT_EQ(world->complaints(), "");
}

TEST(NoStall, IsReportedUnasked) {
    WarnedWorld world("0", "free");
    Process polls = world.waiting("poll", "h0");
    ASSERT_EQ(polls.hear(), "ready");
    wait_for_long();
    EXPECT_EQ(world->complaints(), "");
}

}  // namespace
}  // namespace server_test
