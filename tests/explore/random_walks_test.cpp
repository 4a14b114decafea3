// Random walks: what they draw, and that they draw the same from a seed.
#include "scenarios/explore/random_walks.hpp"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace scenarios {
namespace {

std::vector<Place> packets(std::size_t count) {
    std::vector<Place> places(count);
    for (std::size_t i = 0; i < count; ++i) {
        places[i].packet.host = "h0";
        places[i].packet.end = "h0/c";
        places[i].packet.psn = static_cast<std::uint32_t>(i);
        places[i].packet.opcode = "SEND_ONLY";
    }
    return places;
}

class Walks : public testing::Test {
  protected:
    // Each fault of the first packets, followed by as many packets as without it.
    Walks() {
        for (std::size_t i = 0; i < kPackets; ++i) {
            for (const Choice& choice : choices_.at(i, places_[i])) {
                starts_.push_back({{choice}, places_});
            }
        }
    }

    // The branches of all walks, where those with `failing` faults do not pass.
    [[nodiscard]] std::vector<std::vector<Choice>> all(unsigned depth, std::uint64_t count,
                                                       std::uint64_t seed,
                                                       std::size_t failing = 0) const {
        std::vector<std::vector<Choice>> branches;
        RandomWalks walks(choices_, starts_, depth, count, seed);
        for (auto next = walks.next(); !next.empty(); next = walks.next()) {
            for (std::size_t i = 0; i < next.size(); ++i) {
                if (next[i].size() != failing) {
                    walks.has_passed(i, places_);
                }
                branches.push_back(next[i]);
            }
        }
        return branches;
    }

    static std::string text(const std::vector<std::vector<Choice>>& branches) {
        std::string text;
        for (const auto& branch : branches) {
            for (const Choice& choice : branch) {
                text += choice.name + "; ";
            }
            text += "\n";
        }
        return text;
    }

    static constexpr std::size_t kPackets = 6;
    const Choices choices_{Surroundings{}, {ChoiceGroup::kPackets}, ""};
    const std::vector<Place> places_ = packets(kPackets);
    std::vector<Expansion> starts_;
};

TEST_F(Walks, AddFaultsBehindEachOther) {
    const auto branches = all(4, 300, 1);
    std::set<std::size_t> sizes;
    std::set<std::string> ends;
    for (const auto& branch : branches) {
        sizes.insert(branch.size());
        for (std::size_t i = 1; i < branch.size(); ++i) {
            EXPECT_LT(branch[i - 1].place, branch[i].place);
        }
        if (branch.size() == 4) {
            EXPECT_TRUE(ends.insert(text({branch})).second) << "twice: " << text({branch});
        }
    }
    EXPECT_EQ(sizes, (std::set<std::size_t>{2, 3, 4}));
}

TEST_F(Walks, EndWhereABranchFails) {
    for (const auto& branch : all(4, 300, 1, 3)) {
        EXPECT_LE(branch.size(), 3U);
    }
}

TEST_F(Walks, FollowFromTheSeed) {
    EXPECT_EQ(text(all(3, 50, 7)), text(all(3, 50, 7)));
    EXPECT_NE(text(all(3, 50, 7)), text(all(3, 50, 8)));
}

TEST_F(Walks, FindAllThatThereAreInTheEnd) {
    // Three faults at three of six packets, each lost or damaged.
    std::set<std::string> ends;
    for (const auto& branch : all(3, 4'000, 1)) {
        if (branch.size() == 3) {
            ends.insert(text({branch}));
        }
    }
    EXPECT_EQ(ends.size(), 20U * 2 * 2 * 2);
}

TEST(WalksFromNothing, AreNone) {
    const Choices choices{Surroundings{}, {ChoiceGroup::kPackets}, ""};
    const std::vector<Expansion> none;
    EXPECT_TRUE(RandomWalks(choices, none, 3, 10, 1).next().empty());
}

}  // namespace
}  // namespace scenarios
