// Whose turn it is, of threads and the fabric, in orders that are numbers.
#include "simverbs/threads/turn_order.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace simverbs {
namespace {

constexpr std::uint64_t kOrders = 600;
constexpr int kTurns = 3000;

std::shared_ptr<ThreadEntry> thread(std::uint32_t child) {
    auto entry = std::make_shared<ThreadEntry>();
    entry->path = {child};
    entry->is_announced = true;
    return entry;
}

class OrderOfTurns : public testing::Test {
  protected:
    OrderOfTurns() {
        for (std::uint32_t rank = 0; rank < all_.size(); ++rank) {
            all_[rank]->rank = rank;
        }
    }

    // "0120f": three threads and the fabric, who always have a choice.
    std::string turns(std::uint64_t order, int count) {
        TurnOrder turns(order);
        for (Actor* const actor : all_) {
            turns.take(*actor);
        }
        std::string text;
        for (int i = 0; i < count; ++i) {
            text += name(turns.choose(all_, true));
        }
        // The digest tells orders apart, and nothing else.
        EXPECT_EQ(texts_.emplace(turns.turns_digest(), text).first->second, text);
        EXPECT_EQ(digests_.emplace(text, turns.turns_digest()).first->second, turns.turns_digest());
        return text;
    }

    [[nodiscard]] char name(const Actor* actor) const {
        return actor == &first_ ? '0' : actor == &second_ ? '1' : actor == &third_ ? '2' : 'f';
    }

    Actor first_{thread(1)};
    Actor second_{thread(2)};
    Actor third_{thread(3)};
    std::array<Actor*, 3> all_{&first_, &second_, &third_};
    std::map<std::uint64_t, std::string> texts_;  // by digest
    std::map<std::string, std::uint64_t> digests_;
};

TEST_F(OrderOfTurns, IsTheSameForTheSameNumber) {
    for (std::uint64_t order = 1; order < 20; ++order) {
        EXPECT_EQ(turns(order, kTurns), turns(order, kTurns)) << order;
    }
}

TEST_F(OrderOfTurns, BeginsWithEachAboutEquallyOften) {
    std::map<char, std::uint64_t> first;
    for (std::uint64_t order = 0; order < kOrders; ++order) {
        ++first[turns(order, 1).front()];
    }
    EXPECT_EQ(first.size(), 4U);
    for (const auto& [name, count] : first) {
        EXPECT_GT(count, kOrders / 4 / 2) << name;
    }
}

TEST_F(OrderOfTurns, ChangesThreeTimesAtMostAndMoreOftenEarly) {
    std::set<std::size_t> changes;
    std::uint64_t early = 0;
    std::uint64_t all = 0;
    for (std::uint64_t order = 0; order < kOrders; ++order) {
        const std::string text = turns(order, kTurns);
        std::size_t found = 0;
        for (std::size_t i = 1; i < text.size(); ++i) {
            if (text[i] != text[i - 1]) {
                ++found;
                ++all;
                early += i < 64 ? 1 : 0;
            }
        }
        changes.insert(found);
    }
    EXPECT_EQ(changes, (std::set<std::size_t>{0, 1, 2, 3}));
    EXPECT_GT(early, all / 4);
    EXPECT_LT(early, all * 3 / 4);
}

TEST_F(OrderOfTurns, IsNoChoiceWithOneCandidate) {
    TurnOrder turns(7);
    turns.take(first_);
    const std::array<Actor*, 1> one{&first_};
    EXPECT_EQ(turns.choose(one, false), &first_);
    EXPECT_EQ(turns.turns_digest(), 0U);
    turns.choose(one, true);
    EXPECT_NE(turns.turns_digest(), 0U);
}

TEST_F(OrderOfTurns, KnowsAThreadByItsPlaceInTheTreeOfCreations) {
    const TurnOrder turns(7);
    Actor again(thread(2));
    again.rank = 17;
    turns.take(second_);
    turns.take(third_);
    turns.take(again);
    EXPECT_EQ(again.priority, second_.priority);
    EXPECT_NE(third_.priority, second_.priority);
}

}  // namespace
}  // namespace simverbs
