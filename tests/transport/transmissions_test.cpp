#include "simverbs/transport/transmissions.hpp"

#include <gtest/gtest.h>

namespace simverbs::test {
namespace {

Transmissions from(Psn first) {
    Transmissions transmissions;
    transmissions.start(first);
    return transmissions;
}

// Sends [begin, end); the numbers in a row.
std::string send(Transmissions& transmissions, std::uint32_t begin, std::uint32_t end) {
    std::string numbers;
    for (std::uint32_t psn = begin; psn != end; ++psn) {
        numbers += std::to_string(transmissions.next(Psn(psn))) + ' ';
        transmissions.add(Psn(psn), 1);
    }
    return numbers;
}

TEST(Transmissions, AreCountedForEachPsn) {
    Transmissions all = from(Psn(5));
    EXPECT_EQ(send(all, 5, 10), "1 1 1 1 1 ");
    EXPECT_EQ(send(all, 7, 9), "2 2 ");
    EXPECT_EQ(send(all, 7, 12), "3 3 2 1 1 ");
    EXPECT_EQ(send(all, 9, 14), "3 2 2 1 1 ") << "10 and 11 were in the third run as well";
    EXPECT_EQ(send(all, 14, 15), "1 ");
}

TEST(Transmissions, OfOnePsnMayBeMany) {
    Transmissions all = from(Psn(1));
    send(all, 1, 2);
    for (std::uint32_t nth = 2; nth <= 5000; ++nth) {
        ASSERT_EQ(all.next(Psn(1)), nth);
        all.add(Psn(1), 1);
    }
    for (std::uint32_t nth = 5001; nth <= 70'000; ++nth) {
        all.add(Psn(1), 1);
    }
    EXPECT_EQ(all.next(Psn(1)), 65'535);
    EXPECT_EQ(all.next(Psn(2)), 1);
}

TEST(Transmissions, CountWhatWasPassedOverOnce) {
    Transmissions all = from(Psn(1));
    all.add(Psn(4), 1);
    EXPECT_EQ(all.next(Psn(2)), 2) << "an acknowledgment of 4 is one of 2 as well";
    EXPECT_EQ(all.next(Psn(5)), 1);
}

TEST(Transmissions, OfDuplicatesInAnyOrder) {
    Transmissions all = from(Psn(1));
    send(all, 1, 9);
    EXPECT_EQ(send(all, 5, 9), "2 2 2 2 ");
    EXPECT_EQ(send(all, 1, 5), "2 2 2 2 ");
    EXPECT_EQ(send(all, 9, 10), "1 ");
    EXPECT_EQ(send(all, 5, 6), "3 ");
}

TEST(Transmissions, BeginAfreshWhenPsnsComeAgain) {
    Transmissions all = from(Psn(0));
    send(all, 0, 10);
    send(all, 3, 10);
    constexpr std::uint32_t kStep = 1U << 20;
    std::uint32_t psn = 10;
    for (; psn + kStep < Psn::kModulus; psn += kStep) {
        EXPECT_EQ(all.next(Psn(psn)), 1);
        all.add(Psn(psn), kStep);
    }
    all.add(Psn(psn), Psn::kModulus - psn);
    EXPECT_EQ(send(all, 0, 12), "1 1 1 1 1 1 1 1 1 1 1 1 ");
    EXPECT_EQ(send(all, Psn::kModulus - 2, Psn::kModulus), "2 2 ");
    EXPECT_EQ(all.next(Psn(0)), 2);
}

TEST(Transmissions, AreNotCountedAcrossAStart) {
    Transmissions all = from(Psn(1));
    send(all, 1, 5);
    send(all, 1, 5);
    all.start(Psn(1));
    EXPECT_EQ(all.next(Psn(1)), 1);
}

}  // namespace
}  // namespace simverbs::test
