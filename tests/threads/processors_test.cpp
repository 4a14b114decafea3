// Threads that are confined to the processor of another one, and use all of them again.
#include "simverbs/threads/processors.hpp"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

namespace simverbs {
namespace {

cpu_set_t allowed_to(pid_t thread) {
    cpu_set_t set;
    EXPECT_EQ(sched_getaffinity(thread, sizeof set, &set), 0);
    return set;
}

// Tells its number, and waits until it is let go.
class Sleeper {
  public:
    Sleeper()
        : thread_([this] {
              id_ = gettid();
              id_.notify_one();
              ends_.wait(false);
          }) {
        id_.wait(0);
    }
    ~Sleeper() {
        ends_ = true;
        ends_.notify_one();
        thread_.join();
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    [[nodiscard]] pid_t id() const { return id_; }

  private:
    std::atomic<pid_t> id_{0};
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

TEST(Processors, AreThoseOfTheProcess) {
    const cpu_set_t mine = allowed_to(0);
    const Processors processors;
    EXPECT_EQ(processors.count(), static_cast<unsigned>(CPU_COUNT(&mine)));
    EXPECT_TRUE(processors.are_all_allowed(0));
}

TEST(Processors, AThreadIsConfinedAndUsesAllOfThemAgain) {
    const cpu_set_t all = allowed_to(0);
    const Processors processors;
    const Sleeper sleeper;
    ASSERT_TRUE(processors.confine_to_this_one(sleeper.id()));
    const cpu_set_t one = allowed_to(sleeper.id());
    EXPECT_EQ(CPU_COUNT(&one), 1);
    processors.allow_all(sleeper.id());
    const cpu_set_t again = allowed_to(sleeper.id());
    EXPECT_TRUE(CPU_EQUAL(&again, &all));
}

TEST(Processors, AThreadThatIsThereNoMoreCannotBeConfined) {
    const Processors processors;
    pid_t gone = 0;
    {
        const Sleeper sleeper;
        gone = sleeper.id();
    }
    EXPECT_FALSE(processors.confine_to_this_one(gone));
}

TEST(Processors, WithAChoiceOfItsOwnAThreadMayNotUseAll) {
    const Processors processors;
    std::thread([&processors] {
        EXPECT_TRUE(processors.confine_to_this_one(0));
        EXPECT_EQ(processors.are_all_allowed(0), processors.count() == 1);
        processors.allow_all(0);
        EXPECT_TRUE(processors.are_all_allowed(0));
    }).join();
}

// The program may choose while the thread sleeps.
TEST(Processors, AThreadWithAChoiceOfItsOwnIsLeftAlone) {
    const Processors processors;
    const Sleeper sleeper;
    ASSERT_TRUE(processors.confine_to_this_one(sleeper.id()));
    EXPECT_EQ(processors.confine_to_this_one(sleeper.id()), processors.count() == 1);
    const cpu_set_t chosen = allowed_to(sleeper.id());
    EXPECT_EQ(CPU_COUNT(&chosen), 1);
}

}  // namespace
}  // namespace simverbs
