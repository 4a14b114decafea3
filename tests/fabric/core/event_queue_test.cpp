// The queue of pending events against a std::map, under loads that bring it into each of its forms:
// few events, many, rows of equal times, a crowd of near events before events far away, and events
// that are taken back from anywhere.
#include "fabric/core/event_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "fabric/core/random.hpp"

namespace fabric {
namespace {

class QueueCheck {
  public:
    explicit QueueCheck(const std::string& name) : random_(1, "queue_check", name) {}

    void push(std::int64_t delay, std::uint32_t node = 0) {
        ++sequence_;
        const EventKey key(EventClass::kFrameArrival, NodeId{node}, PortNumber{1}, sequence_);
        const SimTime time = now_ + SimDuration(delay);
        queue_.push({time, key, nullptr, sequence_});
        expected_.emplace(std::pair(time, key), sequence_);
    }

    // Takes the earliest event; `handle` pushes what this one causes.
    template <typename Handle>
    void run_one(Handle&& handle) {
        ASSERT_FALSE(expected_.empty());
        const auto first = expected_.begin();
        const Event* const top = queue_.top();
        ASSERT_NE(top, nullptr);
        ASSERT_EQ(std::pair(top->time, top->key), first->first);
        ASSERT_EQ(top->argument, first->second);
        now_ = top->time;
        queue_.open_top(top);
        expected_.erase(first);
        check_next();
        handle();
        check_next();
        queue_.close_top();
        check_next();
    }
    void run_one() {
        run_one([] {});
    }

    void remove_one() {
        if (expected_.empty()) {
            return;
        }
        auto chosen = expected_.begin();
        std::advance(chosen, below(expected_.size()));
        const auto [time, key] = chosen->first;
        EXPECT_FALSE(queue_.remove(time + 1_ps, key));
        EXPECT_TRUE(queue_.remove(time, key));
        EXPECT_FALSE(queue_.remove(time, key));
        expected_.erase(chosen);
        check_next();
    }

    void run_all() {
        while (!expected_.empty() && !::testing::Test::HasFatalFailure()) {
            run_one();
        }
        EXPECT_TRUE(queue_.empty());
        EXPECT_EQ(queue_.top(), nullptr);
    }

    std::int64_t below(std::uint64_t bound) {
        return static_cast<std::int64_t>(random_.below(bound));
    }
    [[nodiscard]] std::size_t size() const { return expected_.size(); }

  private:
    void check_next() {
        ASSERT_EQ(queue_.size(), expected_.size());
        ASSERT_EQ(queue_.next_time(),
                  expected_.empty() ? SimTime::max() : expected_.begin()->first.first);
    }

    EventQueue queue_;
    std::map<std::pair<SimTime, EventKey>, std::uint64_t> expected_;
    RandomStream random_;
    SimTime now_ = kSimStart;
    std::uint32_t sequence_ = 0;
};

// Each event has one successor, within delays of very different lengths.
TEST(EventQueue, KeepsOrderWhateverTheNumberPending) {
    for (const int pending : {1, 20, 33, 100, 3000}) {
        SCOPED_TRACE(pending);
        QueueCheck check("hold");
        const auto delay = [&check] {
            return check.below(10) == 0 ? check.below(1'000'000'000) : check.below(2'000'000);
        };
        for (int i = 0; i < pending; ++i) {
            check.push(delay());
        }
        for (int i = 0; i < 20 * pending && !HasFatalFailure(); ++i) {
            check.run_one([&] { check.push(delay()); });
        }
        check.run_all();
    }
}

// Hosts in step: hundreds of events of one instant, pushed in the order of their keys or against
// it.
TEST(EventQueue, KeepsOrderOfEventsOfOneInstant) {
    for (const bool ascends : {true, false}) {
        QueueCheck check("step");
        constexpr std::uint32_t kHosts = 300;
        for (int round = 0; round < 20 && !HasFatalFailure(); ++round) {
            for (std::uint32_t i = 0; i < kHosts; ++i) {
                const std::uint32_t node = ascends ? i : kHosts - i;
                check.push(80'000 * (round + 1), node);
                check.push(580'000 * (round + 1), node);
            }
            for (std::uint32_t i = 0; i < kHosts; ++i) {
                check.run_one();
            }
        }
        check.run_all();
    }
}

// Crowds come and go before events that are far away, some of them in one slot with the crowd.
TEST(EventQueue, KeepsOrderOfCrowdsBeforeEventsFarAway) {
    QueueCheck check("crowds");
    for (int round = 0; round < 60 && !HasFatalFailure(); ++round) {
        const std::int64_t far = std::int64_t{1} << (20 + check.below(25));
        for (int i = 0; i < 60; ++i) {
            check.push(far + check.below(static_cast<std::uint64_t>(far)));
        }
        for (int i = 0; i < 400 && check.size() > 0; ++i) {
            check.run_one([&] {
                for (int child = 0; i < 150 && child < 2; ++child) {
                    check.push(check.below(10'000));
                }
            });
        }
    }
    check.run_all();
}

// From picoseconds to days, many of them equal; bursts, pauses, and events that are taken back.
TEST(EventQueue, KeepsOrderWhateverIsPushedAndTakenBack) {
    for (int round = 0; round < 40 && !HasFatalFailure(); ++round) {
        QueueCheck check("any " + std::to_string(round));
        const std::uint64_t magnitudes = static_cast<std::uint64_t>(2 + check.below(45));
        const auto push_some = [&](std::uint64_t most) {
            for (std::int64_t count = check.below(most); count > 0; --count) {
                const std::int64_t magnitude = check.below(magnitudes);
                check.push(check.below(3) == 0 ? std::int64_t{1} << magnitude
                                               : check.below(std::uint64_t{2} << magnitude));
            }
        };
        for (int step = 0; step < 300 && !HasFatalFailure(); ++step) {
            push_some(check.below(10) == 0 ? 200 : 3);
            for (std::int64_t count = check.below(30); count > 0 && check.size() > 0; --count) {
                check.run_one([&] {
                    if (check.below(4) == 0) {
                        check.remove_one();
                    }
                    push_some(check.size() < 500 ? 3 : 1);
                });
                if (check.below(4) == 0) {
                    check.remove_one();
                }
            }
        }
        check.run_all();
    }
}

}  // namespace
}  // namespace fabric
