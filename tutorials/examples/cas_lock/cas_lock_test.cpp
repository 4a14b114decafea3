#include "cas_lock.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>

#include <gtest/gtest.h>

#include <simverbs/connect.hpp>
#include <simverbs/gtest.hpp>

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kFirst = 1;
constexpr std::uint64_t kSecond = 2;

// A contender. It has the fixture's region of h1 as the place of the lock.
struct Contender {
    Contender(simverbs::TwoHostsEnd& home, simverbs::TwoHostsEnd& memory, std::uint64_t owner)
        : error(cas_lock_open(
              &lock, home.context,
              {reinterpret_cast<std::uintptr_t>(memory.bytes.data()), memory.mr->rkey}, owner)) {
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_RC;
        init.send_cq = init.recv_cq = memory.cq;
        init.cap.max_send_wr = init.cap.max_recv_wr = 1;
        init.cap.max_send_sge = init.cap.max_recv_sge = 1;
        peer = ibv_create_qp(memory.pd, &init);
        if (error == 0) {
            connect();
        }
    }
    ~Contender() {
        ibv_destroy_qp(peer);
        cas_lock_close(&lock);
    }
    Contender(const Contender&) = delete;
    Contender& operator=(const Contender&) = delete;

    void connect() { simverbs::connect(*lock.qp, *peer, {.timeout = 8, .retries = 2}); }

    cas_lock lock{};
    int error;
    ibv_qp* peer = nullptr;
};

class CasLock : public simverbs::TwoHosts {
  protected:
    [[nodiscard]] std::uint64_t& word() {
        return *reinterpret_cast<std::uint64_t*>(h1.bytes.data());
    }

    // The first owner is cut off for a second, and the second one, which takes it for dead, breaks
    // the lock. Then the first one is back, and releases what it believes to have.
    void release_after_a_cut(const std::function<void(Contender& first)>& release) {
        Contender first(h0, h1, kFirst);
        Contender second(h1, h1, kSecond);
        EXPECT_EQ(cas_lock_try(&first.lock), CAS_LOCK_OK);
        const simverbs::Fault cut = simverbs::link_down("h0-s0", 1s).inject();
        simverbs::advance(10ms);
        EXPECT_EQ(cas_lock_break(&second.lock, kFirst), CAS_LOCK_OK);
        simverbs::advance(2s);
        release(first);
        EXPECT_EQ(word(), kSecond) << "the lock is not the second owner's any more";
    }
};

TEST_F(CasLock, HasOneOwner) {
    Contender first(h0, h1, kFirst);
    Contender second(h0, h1, kSecond);
    EXPECT_EQ(cas_lock_try(&first.lock), CAS_LOCK_OK);
    EXPECT_EQ(cas_lock_acquire(&second.lock, 3), CAS_LOCK_HELD);
    EXPECT_EQ(second.lock.before, kFirst);
    EXPECT_EQ(cas_lock_release(&first.lock), CAS_LOCK_OK);
    EXPECT_EQ(cas_lock_acquire(&second.lock, 3), CAS_LOCK_OK);
    EXPECT_EQ(word(), kSecond);
}

TEST_F(CasLock, LeavesNothingOpenWhereAnObjectCannotBeMade) {
    const simverbs::Fault fault = simverbs::call_fails("h0", "ibv_create_qp", ENOMEM).inject();
    cas_lock lock{};
    EXPECT_EQ(cas_lock_open(&lock, h0.context, {}, kFirst), ENOMEM);
    EXPECT_THAT(fault, simverbs::Fired(1));  // the fixture looks for what is left
}

TEST_F(CasLock, IsTakenOnceWhenTheAnswerIsLost) {
    Contender first(h0, h1, kFirst);
    const simverbs::Fault lost = simverbs::drop().opcode("ATOMIC_ACKNOWLEDGE").inject();
    EXPECT_EQ(cas_lock_try(&first.lock), CAS_LOCK_OK);
    EXPECT_THAT(lost, simverbs::Fired(1));
    EXPECT_EQ(cas_lock_release(&first.lock), CAS_LOCK_OK);
}

TEST_F(CasLock, IsFoundTakenAfterAConnectionThatFailed) {
    Contender first(h0, h1, kFirst);
    {
        const simverbs::Fault lost =
            simverbs::drop().opcode("ATOMIC_ACKNOWLEDGE").every_time().inject();
        EXPECT_EQ(cas_lock_try(&first.lock), CAS_LOCK_UNREACHABLE);
        EXPECT_EQ(first.lock.status, IBV_WC_RETRY_EXC_ERR) << simverbs::explain();
    }
    EXPECT_EQ(word(), kFirst) << "the swap was made, although its answer never came";
    first.connect();
    EXPECT_EQ(cas_lock_try(&first.lock), CAS_LOCK_OK);
}

TEST_F(CasLock, IsNotReleasedByAnOwnerThatHasLostIt) {
    release_after_a_cut(
        [](Contender& first) { EXPECT_EQ(cas_lock_release(&first.lock), CAS_LOCK_LOST); });
}

// Fails: an owner that releases with a plain WRITE of 0.
TEST_F(CasLock, DISABLED_IsNotReleasedByAWriteOfAnOwnerThatHasLostIt) {
    release_after_a_cut([this](Contender& /*first*/) {
        h0.bytes.fill(0);
        h0.write(h1, 8);
        EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
    });
}

}  // namespace
