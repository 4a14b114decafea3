// Pieces of work in processes: what they leave, in which process they run, and how they end.
#include "scenarios/engine/process_pool.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace scenarios {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string own_process() {
    return std::to_string(getpid());
}

// Starts so many pieces, and returns what came of them.
std::map<std::size_t, ProcessPool::Done> run(ProcessPool& pool, std::size_t pieces) {
    std::map<std::size_t, ProcessPool::Done> all;
    std::size_t next = 0;
    while (next < pieces || !pool.is_idle()) {
        while (next < pieces && !pool.is_full()) {
            pool.start(next++);
        }
        for (const ProcessPool::Done& done : pool.wait()) {
            EXPECT_TRUE(all.emplace(done.id, done).second) << done.id << " is done twice";
        }
    }
    return all;
}

std::set<std::string> texts(const std::map<std::size_t, ProcessPool::Done>& all) {
    std::set<std::string> found;
    for (const auto& [id, done] : all) {
        EXPECT_THAT(done.error, IsEmpty()) << id;
        found.insert(done.text);
    }
    return found;
}

TEST(ProcessPool, AProcessDoesSoManyPieces) {
    const auto work = [](std::size_t, ProcessPool::Reached&) { return own_process(); };
    ProcessPool each_its_own(work, {.jobs = 2});
    EXPECT_THAT(texts(run(each_its_own, 10)), SizeIs(10));
    ProcessPool five_each(work, {.pieces_of_process = 5});
    EXPECT_THAT(texts(run(five_each, 12)), SizeIs(3));
    ProcessPool in_two(work, {.jobs = 2, .pieces_of_process = 50});
    EXPECT_THAT(texts(run(in_two, 40)), SizeIs(2));
}

TEST(ProcessPool, TextsArriveWhole) {
    ProcessPool pool(
        [](std::size_t id, ProcessPool::Reached&) {
            return std::string(id * 100'000, static_cast<char>('a' + id));
        },
        {.jobs = 3, .pieces_of_process = 4});
    for (const auto& [id, done] : run(pool, 12)) {
        EXPECT_EQ(done.text, std::string(id * 100'000, static_cast<char>('a' + id)));
    }
}

// It may have died of what others left in the memory of the process.
TEST(ProcessPool, APieceWhoseProcessDiesAfterOthersIsDoneAgain) {
    static int before = 0;
    ProcessPool pool(
        [](std::size_t id, ProcessPool::Reached&) {
            if (id == 5 || (id == 3 && before > 0)) {
                std::abort();
            }
            ++before;
            return own_process();
        },
        {.pieces_of_process = 100});
    const auto all = run(pool, 8);
    EXPECT_THAT(all.at(3).error, IsEmpty());
    EXPECT_THAT(all.at(5).error, HasSubstr("died of Aborted"));
    EXPECT_EQ(all.at(2).text, all.at(0).text);
    EXPECT_NE(all.at(3).text, all.at(2).text);
    EXPECT_EQ(all.at(4).text, all.at(3).text);
    EXPECT_NE(all.at(6).text, all.at(4).text);
    EXPECT_EQ(all.at(7).text, all.at(6).text);
}

TEST(ProcessPool, AProcessThatIsKilledBetweenPiecesHarmsNone) {
    ProcessPool pool([](std::size_t, ProcessPool::Reached&) { return own_process(); },
                     {.pieces_of_process = 100});
    pool.start(0);
    const auto first = pool.wait();
    ASSERT_THAT(first, SizeIs(1));
    kill(static_cast<pid_t>(std::stol(first.front().text)), SIGKILL);
    pool.start(1);
    const auto second = pool.wait();
    ASSERT_THAT(second, SizeIs(1));
    EXPECT_THAT(second.front().error, IsEmpty());
    EXPECT_NE(second.front().text, first.front().text);
}

TEST(ProcessPool, TheLimitIsOfEachPiece) {
    ProcessPool pool(
        [](std::size_t id, ProcessPool::Reached&) {
            while (id == 2) {
                pause();
            }
            return own_process();
        },
        {.limit = std::chrono::seconds(2), .pieces_of_process = 100});
    const auto all = run(pool, 4);
    EXPECT_THAT(all.at(2).error, HasSubstr("too long"));
    EXPECT_EQ(all.at(1).text, all.at(0).text);
    EXPECT_THAT(all.at(3).error, IsEmpty());
    EXPECT_NE(all.at(3).text, all.at(1).text);
}

TEST(ProcessPool, SaysHowAProcessEnded) {
    ProcessPool pool(
        [](std::size_t id, ProcessPool::Reached&) -> std::string { _exit(id == 0 ? 0 : 3); }, {});
    const auto all = run(pool, 2);
    EXPECT_EQ(all.at(0).error, "its process ended with 0");
    EXPECT_EQ(all.at(1).error, "its process ended with 3");
}

// Pieces that listen to SIGTERM leave their text.
TEST(ProcessPool, StopsWhereTheOnlookerSaysSo) {
    static volatile std::sig_atomic_t asked = 0;
    ProcessPool pool(
        [](std::size_t id, ProcessPool::Reached& reached) {
            if (id == 1) {
                std::signal(SIGTERM, [](int) { asked = 1; });
                reached = 7;
                while (asked == 0) {
                    usleep(1000);
                }
            }
            return std::string("left");
        },
        {.pieces_of_process = 100}, [](std::int64_t reached) { return reached != 7; });
    pool.start(0);
    ASSERT_THAT(pool.wait(), SizeIs(1));
    pool.start(1);
    const auto left = pool.wait();
    EXPECT_TRUE(pool.is_stopped());
    ASSERT_THAT(left, SizeIs(1));
    EXPECT_EQ(left.front().id, 1U);
    EXPECT_EQ(left.front().text, "left");
    EXPECT_TRUE(pool.is_idle());
}

}  // namespace
}  // namespace scenarios
