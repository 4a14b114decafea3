// Threads at once, each with a name: the same run every time, whoever of them is faster, and where
// one waits for the end of others.
#include <array>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>

#include <sched.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

// One thread's part: traffic between two ends of its own, and messages to the other thread's.
struct Player {
    const char* name;
    std::unique_ptr<End> from;
    std::unique_ptr<End> to;
    std::unique_ptr<End> cross;  // connected to the other player's
    int rounds = 60;
};

// Takes time on a processor, never the same twice; sleeping would be another matter, since then
// virtual time keeps pace with the wall.
void dawdle() {
    thread_local std::random_device entropy;
    std::uint64_t burnt = entropy();
    for (unsigned left = entropy() % 20'000; left > 0; --left) {
        burnt = burnt * 0x9E3779B97F4A7C15 + left;
    }
    if (burnt % 4 == 0) {
        std::this_thread::yield();
    }
}

int post(Player& player, int round) {
    End& from = *player.from;
    End& to = *player.to;
    const auto length = static_cast<std::uint32_t>(1 + (round * 997) % 9000);
    Request request(round % 3 == 0   ? IBV_WR_RDMA_WRITE
                    : round % 3 == 1 ? IBV_WR_RDMA_READ
                                     : IBV_WR_ATOMIC_FETCH_AND_ADD);
    if (round % 3 == 2) {
        request.into(from.range(0, 8)).fetch_and_add(to.address(), to.mr->rkey, 1);
    } else {
        request.from(from.range(4096, length)).to(to.address(65536), to.mr->rkey);
    }
    return request.id(static_cast<std::uint64_t>(round)).post(from);
}

void play(Player& player, std::barrier<>& ready) {
    ASSERT_EQ(simverbs_actor(player.name), 0) << simverbs_last_error();
    ready.arrive_and_wait();
    for (int round = 0; round < player.rounds; ++round) {
        dawdle();
        ASSERT_EQ(player.cross->receive(1, {player.cross->range(0, 64)}), 0);
        ASSERT_EQ(post(player, round), 0);
        dawdle();
        ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(player.cross->range(64, 64)).post(*player.cross),
                  0);
        if (round % 20 == 7) {
            ASSERT_EQ(simverbs_drop_nth("h0-s0", "s0", 3, nullptr), 0);
        }
        ASSERT_EQ(player.from->wait().status, IBV_WC_SUCCESS);
        ASSERT_EQ(player.cross->wait().status, IBV_WC_SUCCESS);
        ASSERT_EQ(player.cross->wait().status, IBV_WC_SUCCESS);
        if (round % 10 == 3) {
            dawdle();
            ibv_mr* mr = ibv_reg_mr(player.from->pd, player.from->at(0), 4096, 0);
            ASSERT_NE(mr, nullptr);
            ASSERT_EQ(ibv_dereg_mr(mr), 0);
        }
        if (round % 25 == 11) {
            ASSERT_EQ(simverbs_advance_ps(3'000'000), 0);
        }
    }
}

class NamedThreads : public TwoHosts {
  protected:
    static Player make_player(const char* name, std::size_t from, std::size_t to) {
        Player player{name, std::make_unique<End>(from, Connection{}),
                      std::make_unique<End>(to, Connection{}),
                      std::make_unique<End>(from, Connection{.rnr_retries = 7})};
        bring_up(*player.from, *player.to, {});
        return player;
    }  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): its caller owns it
    // The digest of a run of both, of which nobody can say who was faster.
    static std::uint64_t run(int left_rounds, int right_rounds) {
        EXPECT_EQ(simverbs_restart(), 0) << simverbs_last_error();
        EXPECT_EQ(simverbs_set_topology("star:4"), 0);
        EXPECT_EQ(simverbs_actor("main"), 0);
        Player left = make_player("left", 0, 1);
        Player right = make_player("right", 2, 3);
        left.rounds = left_rounds;
        right.rounds = right_rounds;
        bring_up(*left.cross, *right.cross, {.rnr_retries = 7});
        std::barrier ready(2);
        std::thread first([&] { play(left, ready); });
        std::thread second([&] { play(right, ready); });
        first.join();
        second.join();
        int deterministic = 0;
        EXPECT_EQ(simverbs_is_deterministic(&deterministic), 0);
        EXPECT_EQ(deterministic, 1) << simverbs_last_error();
        return run_digest();
    }
};

TEST_F(NamedThreads, RepeatThemselves) {
    std::set<std::uint64_t> digests;
    for (int i = 0; i < 5; ++i) {
        digests.insert(run(60, 60));
    }
    EXPECT_EQ(digests.size(), 1U);
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(*digests.begin()));
    RecordProperty("threads_digest", text);
}

// The library chooses the processor on which a thread is woken, if threads outnumber processors.
TEST_F(NamedThreads, HaveTheProcessorsThatTheProgramGaveThemAfterEachWait) {
    ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
    ASSERT_EQ(simverbs_set_topology("star:2"), 0);
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    const int count = 2 * CPU_COUNT(&all) + 2;
    std::vector<Player> players;
    for (int i = 0; i < count; ++i) {
        players.push_back(make_player("", 0, 1));
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
        threads.emplace_back([&player = players[static_cast<std::size_t>(i)], all, i] {
            cpu_set_t given = all;
            if (i % 3 == 0) {
                CPU_ZERO(&given);
                CPU_SET(static_cast<unsigned>(sched_getcpu()), &given);
                ASSERT_EQ(sched_setaffinity(0, sizeof given, &given), 0);
            }
            for (int round = 0; round < 300; ++round) {
                ASSERT_EQ(post(player, 3 * round), 0);
                ASSERT_EQ(player.from->wait().status, IBV_WC_SUCCESS);
                cpu_set_t found;
                ASSERT_EQ(sched_getaffinity(0, sizeof found, &found), 0);
                ASSERT_TRUE(CPU_EQUAL(&found, &given)) << "thread " << i << ", round " << round;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

// A thread that ends wakes the one that joins it, and time stands until that one has gone on.
TEST_F(NamedThreads, WhoJoinsActsAtTheInstantAtWhichTheOtherEnded) {
    constexpr int kWorkers = 30;
    std::set<std::uint64_t> digests;
    for (int run = 0; run < 5; ++run) {
        ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
        ASSERT_EQ(simverbs_set_topology("star:4"), 0);
        ASSERT_EQ(simverbs_actor("main"), 0);
        Player left = make_player("left", 0, 1);
        Player right = make_player("right", 2, 3);
        bring_up(*left.cross, *right.cross, {.rnr_retries = 7});
        End own{0, Connection{}};
        End other{1, Connection{}};
        bring_up(own, other, {});
        std::barrier ready(2);
        std::thread busy([&] {
            ASSERT_EQ(simverbs_actor(right.name), 0);
            ready.arrive_and_wait();
            for (int round = 0; round < 3000; ++round) {
                ASSERT_EQ(post(right, 1), 0);
                ASSERT_EQ(right.from->wait().status, IBV_WC_SUCCESS);
            }
        });
        ready.arrive_and_wait();
        for (int worker = 0; worker < kWorkers; ++worker) {
            std::atomic<bool> named = false;  // until then nothing holds time but who waits for it
            std::thread ends([&] {
                ASSERT_EQ(simverbs_actor("left"), 0) << simverbs_last_error();
                named = true;
                ASSERT_EQ(post(left, worker), 0);
                ASSERT_EQ(left.from->wait().status, IBV_WC_SUCCESS);
            });
            while (!named) {
            }
            ends.join();
            ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                          .id(9)
                          .from(own.range(0, 64))
                          .to(other.address(), other.mr->rkey)
                          .post(own),
                      0);
            ASSERT_EQ(own.wait().status, IBV_WC_SUCCESS);
        }
        busy.join();
        digests.insert(run_digest());
    }
    EXPECT_EQ(digests.size(), 1U);
}

// A command may complete requests outside of any step. Whoever polls for them may go on before the
// next step, since time would jump far, and its thread may have ended by then.
TEST_F(NamedThreads, NewsOfACommandIsForgottenWithTheThreadThatTookIt) {
    ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
    ASSERT_EQ(simverbs_set_topology("star:4"), 0);
    Player left = make_player("left", 0, 1);
    End refused{0, Connection{}};
    End without_receives{1, Connection{}};
    bring_up(refused, without_receives, {.rnr_retries = 7});
    ASSERT_EQ(Request(IBV_WR_SEND).id(1).from(refused.range(0, 64)).post(refused), 0);
    for (int round = 0; round < 20; ++round) {
        End polled{2, Connection{}};
        End peer{3, Connection{}};
        bring_up(polled, peer, {});
        ASSERT_EQ(polled.receive(1, {polled.range(0, 64)}), 0);
        std::thread polls([&polled] { EXPECT_EQ(polled.wait().status, IBV_WC_WR_FLUSH_ERR); });
        std::thread other([&] {
            ASSERT_EQ(simverbs_advance_ps(100'000'000), 0);  // an RNR timer is all that is left
            ibv_qp_attr attr{};
            attr.qp_state = IBV_QPS_ERR;
            ASSERT_EQ(ibv_modify_qp(polled.qp, &attr, IBV_QP_STATE), 0);
            polls.join();
            ASSERT_EQ(post(left, 1), 0);
            ASSERT_EQ(left.from->wait().status, IBV_WC_SUCCESS);
        });
        other.join();
    }
}

// One of several that wait looks at the threads that run. Where it goes on itself and then sleeps
// outside the library, the others still find out, and their polls end as no event is left.
TEST_F(NamedThreads, PollsEndWhereAllOthersHaveGoneToSleepElsewhere) {
    ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
    ASSERT_EQ(simverbs_set_topology("star:6"), 0);
    std::array<Player, 2> players{make_player("left", 0, 1), make_player("right", 2, 3)};
    End idle{4, Connection{}};
    for (int round = 0; round < 20; ++round) {
        std::barrier end(3);  // a thread sleeps there, which the library does not see
        const auto works = [&end](Player& player) {
            ASSERT_EQ(post(player, 0), 0);
            ASSERT_EQ(player.from->wait().status, IBV_WC_SUCCESS);
            end.arrive_and_wait();
        };
        std::thread first([&] { works(players[0]); });
        std::thread second([&] { works(players[1]); });
        std::thread polls([&] {
            ibv_wc wc{};
            for (int i = 0; i < 50; ++i) {
                ASSERT_EQ(ibv_poll_cq(idle.cq, 1, &wc), 0);
            }
            end.arrive_and_wait();
        });
        first.join();
        second.join();
        polls.join();
    }
}

// A thread that polls an empty queue is let go on only for what concerns it, but its program may
// look at a flag between two polls: it sees the flag before time jumps to a time limit of anybody.
TEST_F(NamedThreads, AFlagThatIsSetBetweenPollsIsSeenBeforeATimeLimitExpires) {
    ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
    ASSERT_EQ(simverbs_set_topology("star:4"), 0);
    Player left = make_player("left", 0, 1);
    Player right = make_player("right", 2, 3);
    bring_up(*left.cross, *right.cross, {.rnr_retries = 7});
    constexpr std::uint8_t kRnr655ms = 0;
    End refused{0, Connection{}};
    End without_receives{1, Connection{}};
    bring_up(refused, without_receives, {.rnr_retries = 7, .min_rnr_timer = kRnr655ms});
    std::atomic<bool> flag = false;
    std::barrier ready(2);
    std::thread sets([&] {
        ASSERT_EQ(simverbs_actor(left.name), 0) << simverbs_last_error();
        ASSERT_EQ(left.cross->receive(1, {left.cross->range(0, 64)}), 0);
        ready.arrive_and_wait();
        ASSERT_EQ(Request(IBV_WR_SEND).id(1).from(refused.range(0, 64)).post(refused), 0);
        for (int round = 0; round < 10; ++round) {
            ASSERT_EQ(post(left, 1), 0);
            ASSERT_EQ(left.from->wait().status, IBV_WC_SUCCESS);
        }
        flag = true;
        ASSERT_EQ(left.cross->wait().status, IBV_WC_SUCCESS) << "the other has seen the flag";
        std::int64_t now = 0;
        ASSERT_EQ(simverbs_now_ps(&now), 0);
        EXPECT_LT(now, 300'000'000'000) << "no RNR timer of 655 ms has expired";
    });
    std::thread sees([&] {
        ASSERT_EQ(simverbs_actor(right.name), 0) << simverbs_last_error();
        ready.arrive_and_wait();
        ibv_wc wc{};
        while (!flag) {
            ASSERT_EQ(ibv_poll_cq(right.cross->cq, 1, &wc), 0);
        }
        ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(right.cross->range(0, 64)).post(*right.cross), 0);
        ASSERT_EQ(right.cross->wait().status, IBV_WC_SUCCESS);
    });
    sets.join();
    sees.join();
}

}  // namespace
}  // namespace verbs_test
