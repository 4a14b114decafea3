#include "fabric/core/actor.hpp"

#include <thread>

#include <gtest/gtest.h>

namespace fabric {
namespace {

struct IdleActor final : ActorHook {
    [[nodiscard]] ActorId id() const override { return ActorId{1}; }
    void wait() override {}
};

TEST(Actor, BelongsToOneThread) {
    IdleActor actor;
    EXPECT_EQ(set_current_actor(&actor), nullptr);
    EXPECT_EQ(current_actor(), &actor);
    std::thread([] { EXPECT_EQ(current_actor(), nullptr); }).join();
    EXPECT_EQ(set_current_actor(nullptr), &actor);
}

}  // namespace
}  // namespace fabric
