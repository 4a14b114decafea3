#include <gtest/gtest.h>

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

// Traffic of every kind with losses, a wait for a receiver, and a failure in the end.
std::uint64_t digest_of_a_run(std::size_t unrelated_allocations, bool watched) {
    std::vector<std::unique_ptr<std::byte[]>> elsewhere;
    for (std::size_t i = 0; i < unrelated_allocations; ++i) {
        elsewhere.push_back(std::make_unique<std::byte[]>(4096 + i));
    }
    Pair pair;
    if (watched) {
        pair.watch_packets();
    }
    pair.drop_nth(pair.a, 7);
    pair.drop_nth(pair.b, 3);
    const std::vector<Send> sends = {
        send_of(pair.a, 1, 0, 9 * 1024UL), write_of(pair.a, pair.b, 2, 0, 40 * 1024UL),
        read_of(pair.a, pair.b, 3, 0, 40 * 1024UL), fetch_add_of(pair.a, pair.b, 4, 131072, 1)};
    pair.a.qp.post(sends);
    pair.b.qp.post(write_of(pair.b, pair.a, 5, 65536, 20 * 1024UL));
    using namespace std::chrono_literals;
    pair.advance(2ms);
    pair.b.qp.post_receive(11, {pair.b.segment(65536, 9 * 1024UL)});
    pair.drive();
    Send bad = write_of(pair.a, pair.b, 6, 0, 8);
    bad.rkey = 0xBAD;
    pair.a.qp.post(bad);
    pair.drive();
    EXPECT_EQ(pair.a.send_cq.poll().size(), 5U);
    return pair.run_digest();
}

TEST(Determinism, TheSameRunTwiceHasOneDigest) {
    EXPECT_EQ(digest_of_a_run(0, false), digest_of_a_run(0, false));
}

TEST(Determinism, WhereMemoryLiesChangesNothing) {
    EXPECT_EQ(digest_of_a_run(0, false), digest_of_a_run(100, false));
}

TEST(Determinism, LookingAtPacketsChangesNothing) {
    EXPECT_EQ(digest_of_a_run(0, false), digest_of_a_run(0, true));
}

TEST(Determinism, AnotherRunHasAnotherDigest) {
    Pair quiet;
    quiet.a.qp.post(write_of(quiet.a, quiet.b, 1, 0, 8));
    quiet.drive();
    Pair lossy;
    lossy.drop_nth(lossy.a, 1);
    lossy.a.qp.post(write_of(lossy.a, lossy.b, 1, 0, 8));
    lossy.drive();
    EXPECT_NE(quiet.run_digest(), lossy.run_digest());
}

}  // namespace
}  // namespace simverbs::test
