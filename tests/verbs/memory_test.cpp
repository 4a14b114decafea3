// Registered memory in all its kinds through the C API: what each key opens, what the verbs answer,
// and what is left of a region that changed.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "registered_memory.hpp"

namespace verbs_test {
namespace {

// Re-registration

TEST_F(Memory, ReregisteringTheAccessTakesRightsAway) {
    ibv_mr* mr = ibv_reg_mr(b->pd, b->at(kAt), 4096, kAllAccess);
    const std::uint32_t old = mr->rkey;
    EXPECT_EQ(write(b->address(kAt), old), IBV_WC_SUCCESS);
    ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
              0);
    EXPECT_NE(mr->rkey, old);
    EXPECT_EQ(mr->addr, b->at(kAt));
    EXPECT_EQ(read(b->address(kAt), mr->rkey, 16384), IBV_WC_SUCCESS);
    EXPECT_EQ(write(b->address(kAt), mr->rkey), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memory, AKeyFromBeforeOpensNothing) {
    ibv_mr* mr = ibv_reg_mr(b->pd, b->at(kAt), 4096, kAllAccess);
    const std::uint32_t old = mr->rkey;
    ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAllAccess), 0);
    EXPECT_EQ(write(b->address(kAt), old), IBV_WC_REM_ACCESS_ERR);
    EXPECT_FALSE(landed(b->at(kAt)));
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memory, ReregisteringTheTranslationMovesTheRegion) {
    ibv_mr* mr = ibv_reg_mr(b->pd, b->at(kAt), 4096, kAllAccess);
    ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, b->at(65536), 8192, 0), 0);
    EXPECT_EQ(mr->addr, b->at(65536));
    EXPECT_EQ(mr->length, 8192U);
    EXPECT_EQ(write(b->address(65536 + 4096), mr->rkey), IBV_WC_SUCCESS);
    EXPECT_TRUE(landed(b->at(65536 + 4096)));
    EXPECT_EQ(write(b->address(kAt), mr->rkey), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memory, ReregisteringThePdMovesTheUse) {
    ibv_pd* pd = ibv_alloc_pd(b->context);
    ibv_mr* mr = ibv_reg_mr(b->pd, b->at(kAt), 4096, kAllAccess);
    ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, nullptr, 0, 0), 0);
    EXPECT_EQ(mr->pd, pd);
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
    EXPECT_EQ(write(b->address(kAt), mr->rkey), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

TEST_F(Memory, ReregistrationHasCodesOfItsOwn) {
    ibv_mr* mr = b->mr;
    const auto answer = [mr](int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
        errno = 0;
        return ibv_rereg_mr(mr, flags, pd, address, length, access);
    };
    constexpr int kMove = IBV_REREG_MR_CHANGE_TRANSLATION;
    EXPECT_EQ(answer(0x80, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(answer(kMove, nullptr, b->at(0), 0, 0), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(answer(kMove, nullptr, nullptr, 8192, 0), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(answer(kMove, nullptr, b->at(0), 8192, IBV_ACCESS_LOCAL_WRITE),
              IBV_REREG_MR_ERR_INPUT)
        << "access without CHANGE_ACCESS";
    EXPECT_EQ(answer(0, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_CMD);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(answer(IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_CMD);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(answer(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE),
              IBV_REREG_MR_ERR_CMD);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(answer(kMove, nullptr, reinterpret_cast<void*>(4096), 4096, 0), IBV_REREG_MR_ERR_CMD);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(write(b->address(kAt), mr->rkey), IBV_WC_SUCCESS) << "it is as it was";
}

TEST_F(Memory, ARegionWithAWindowIsNotReregistered) {
    ibv_mr* mr = ibv_reg_mr(b->pd, b->at(kAt), 4096, kAllAccess | IBV_ACCESS_MW_BIND);
    ibv_mw* mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_1);
    ibv_mw_bind bind{};
    bind.send_flags = IBV_SEND_SIGNALED;
    bind.bind_info = {mr, b->address(kAt), 64, IBV_ACCESS_REMOTE_READ};
    ASSERT_EQ(ibv_bind_mw(b->qp, mw, &bind), 0);
    EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
              IBV_REREG_MR_ERR_CMD);
    EXPECT_EQ(errno, EBUSY);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memory, OfConnectX6KeepsItsKeysWhenReregistered) {
    use_personality("connectx6");
    ibv_mr* mr = ibv_reg_mr(b->pd, b->at(kAt), 4096, kAllAccess);
    const std::uint32_t old = mr->rkey;
    ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, b->at(65536), 4096, 0), 0);
    EXPECT_EQ(mr->rkey, old);
    EXPECT_EQ(write(b->address(65536), old), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memory, OfRxeHasNeitherReregistrationNorSpecialKinds) {
    use_personality("rxe");
    EXPECT_EQ(ibv_rereg_mr(b->mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
              IBV_REREG_MR_ERR_CMD);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_alloc_dm_attr attr{};
    attr.length = 64;
    errno = 0;
    EXPECT_EQ(ibv_alloc_dm(b->context, &attr), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    errno = 0;
    EXPECT_EQ(ibv_alloc_null_mr(b->pd), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_sge sge = b->range(0, 64);
    EXPECT_EQ(ibv_advise_mr(b->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EOPNOTSUPP);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(b->pd, b->at(0), 64, IBV_ACCESS_ON_DEMAND), nullptr);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(b->pd, b->at(0), 64, 1 << 8), nullptr) << "FLUSH_GLOBAL";
    EXPECT_EQ(errno, EINVAL);
}

// Addresses

TEST_F(Memory, ThatIsZeroBasedIsNamedByOffset) {
    ibv_mr* mr = ibv_reg_mr(b->pd, b->at(kAt + 24), 4096, kAllAccess | IBV_ACCESS_ZERO_BASED);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(write(128, mr->rkey), IBV_WC_SUCCESS);
    EXPECT_TRUE(landed(b->at(kAt + 24 + 128)));
    EXPECT_EQ(write(b->address(kAt + 24), mr->rkey), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memory, OfConnectX6KnowsNoZeroBase) {
    use_personality("connectx6");
    ibv_mr* mr = ibv_reg_mr(b->pd, b->at(kAt), 4096, kAllAccess | IBV_ACCESS_ZERO_BASED);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(write(b->address(kAt), mr->rkey), IBV_WC_SUCCESS);
    EXPECT_EQ(write(128, mr->rkey), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memory, WithAnIovaHasThePageOffsetOfItsAddress) {
    constexpr std::uint64_t kIova = 0x7000000;
    ibv_mr* mr = ibv_reg_mr_iova(b->pd, b->at(kAt), 4096, kIova, kAllAccess);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(write(kIova + 64, mr->rkey), IBV_WC_SUCCESS);
    EXPECT_TRUE(landed(b->at(kAt + 64)));
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr_iova(b->pd, b->at(kAt + 8), 4096, kIova, kAllAccess), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Memory, TakesTheAccessFlagsThatOnlyConcernSpeed) {
    for (const unsigned flag : {unsigned{IBV_ACCESS_RELAXED_ORDERING}, unsigned{IBV_ACCESS_HUGETLB},
                                1U << 25, 1U << 8, 1U << 9}) {
        ibv_mr* mr = ibv_reg_mr_iova2(b->pd, b->at(kAt), 4096, b->address(kAt), kAllAccess | flag);
        ASSERT_NE(mr, nullptr) << flag;
        EXPECT_EQ(write(b->address(kAt), mr->rkey), IBV_WC_SUCCESS) << flag;
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
    }
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(b->pd, b->at(kAt), 4096, 1 << 10), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Memory, OfADmabufIsNotSupported) {
    errno = 0;
    EXPECT_EQ(ibv_reg_dmabuf_mr(b->pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

// On demand

TEST_F(Memory, OnDemandMayBeMappedAfterItsRegistration) {
    constexpr std::size_t kPages = 8192;
    void* pages = mmap(nullptr, kPages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(b->pd, pages, kPages, kAllAccess), nullptr);
    EXPECT_EQ(errno, EFAULT);
    ibv_mr* mr = ibv_reg_mr(b->pd, pages, kPages, kAllAccess | IBV_ACCESS_ON_DEMAND);
    ASSERT_NE(mr, nullptr);
    ASSERT_EQ(mprotect(pages, kPages, PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(write(reinterpret_cast<std::uint64_t>(pages), mr->rkey), IBV_WC_SUCCESS);
    EXPECT_TRUE(landed(pages));
    take_away(pages, kPages);
    EXPECT_EQ(write(reinterpret_cast<std::uint64_t>(pages), mr->rkey), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memory, ImplicitOnDemandIsAllThereIs) {
    ibv_mr* mr = ibv_reg_mr(b->pd, nullptr, SIZE_MAX, kAllAccess | IBV_ACCESS_ON_DEMAND);
    ASSERT_NE(mr, nullptr);
    std::vector<std::uint8_t> elsewhere(kBytes);
    EXPECT_EQ(write(reinterpret_cast<std::uint64_t>(elsewhere.data()), mr->rkey), IBV_WC_SUCCESS);
    EXPECT_TRUE(landed(elsewhere.data()));
    ASSERT_EQ(b->receive(1, {{reinterpret_cast<std::uint64_t>(elsewhere.data()), 8, mr->lkey}}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).from(a->range(8, 8)).post(*a), 0);
    EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(elsewhere[0], *a->at(8));
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(write(4096, mr->rkey), IBV_WC_REM_ACCESS_ERR) << "nothing is mapped there";
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memory, AdviceIsLookedAt) {
    ibv_mr* mr = ibv_reg_mr(b->pd, b->at(kAt), 4096, IBV_ACCESS_ON_DEMAND);
    ibv_sge sge{b->address(kAt), 4096, mr->lkey};
    const auto advise = [this, &sge](ibv_advise_mr_advice advice, std::uint32_t flags = 0) {
        return ibv_advise_mr(b->pd, advice, flags, &sge, 1);
    };
    constexpr auto kPrefetch = IBV_ADVISE_MR_ADVICE_PREFETCH;
    EXPECT_EQ(advise(kPrefetch), 0);
    EXPECT_EQ(advise(kPrefetch, IBV_ADVISE_MR_FLAG_FLUSH), 0);
    EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT), 0);
    EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE), EPERM) << "it may not be written";
    EXPECT_EQ(advise(static_cast<ibv_advise_mr_advice>(9)), EOPNOTSUPP);
    EXPECT_EQ(advise(kPrefetch, 2), EINVAL);
    EXPECT_EQ(ibv_advise_mr(b->pd, kPrefetch, 0, &sge, 0), EINVAL);
    sge.length = 4097;
    EXPECT_EQ(advise(kPrefetch), EFAULT);
    sge = b->range(0, 64);
    EXPECT_EQ(advise(kPrefetch), ENOENT) << "not on demand";
    sge.lkey = mr->lkey;
    ibv_pd* pd = ibv_alloc_pd(b->context);
    EXPECT_EQ(ibv_advise_mr(pd, kPrefetch, 0, &sge, 1), EPERM);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// No memory, and memory elsewhere

TEST_F(Memory, ThatIsNullReadsAsZerosAndTakesEverything) {
    ibv_mr* null = ibv_alloc_null_mr(a->pd);
    ASSERT_NE(null, nullptr);
    std::memset(b->at(kAt), 0xFF, 64);
    // Eight bytes of memory, eight of nothing, eight of memory.
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .from(a->range(0, 8))
                  .from({0, 8, null->lkey})
                  .from(a->range(16, 8))
                  .to(b->address(kAt), b->mr->rkey)
                  .post(*a),
              0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(b->at(kAt), a->at(0), 8), 0);
    EXPECT_EQ(b->word(kAt + 8), 0U);
    EXPECT_EQ(std::memcmp(b->at(kAt + 16), a->at(16), 8), 0);
    EXPECT_EQ(*b->at(kAt + 24), 0xFF);
    // The middle of a READ is thrown away.
    std::memset(a->at(32768), 0, 64);
    ASSERT_EQ(Request(IBV_WR_RDMA_READ)
                  .into(a->range(32768, 8))
                  .into({12345, 8, null->lkey})
                  .into(a->range(32768 + 8, 8))
                  .to(b->address(kAt), b->mr->rkey)
                  .post(*a),
              0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(a->at(32768), b->at(kAt), 8), 0);
    EXPECT_EQ(std::memcmp(a->at(32768 + 8), b->at(kAt + 16), 8), 0);
    EXPECT_EQ(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
              IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(ibv_dereg_mr(null), 0);
}

TEST_F(Memory, ThatIsNullHasNoRemoteKey) {
    ibv_mr* null = ibv_alloc_null_mr(b->pd);
    EXPECT_EQ(null->rkey, 0U);
    EXPECT_EQ(write(0, null->lkey | 1U), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(null), 0);
}

// The limit on registered memory

class LockedMemory : public Memory {
  protected:
    void TearDown() override {
        unsetenv("SIMVERBS_MEMLOCK");
        Memory::TearDown();
    }
};

TEST_F(LockedMemory, IsLimitedByTheEnvironment) {
    constexpr std::size_t kBoth = 2 * End::kBytes;  // what both ends have registered already
    setenv("SIMVERBS_MEMLOCK", std::to_string(kBoth + 8192).c_str(), 1);
    ibv_mr* first = ibv_reg_mr(b->pd, b->at(kAt), 4096, kAllAccess);
    ASSERT_NE(first, nullptr);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(b->pd, b->at(kAt + 100), 4096, kAllAccess), nullptr) << "two pages";
    EXPECT_EQ(errno, ENOMEM);
    ibv_mr* second = ibv_reg_mr(b->pd, b->at(kAt + 100), 64, kAllAccess);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(ibv_rereg_mr(second, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, b->at(0), 64, 0),
              IBV_REREG_MR_ERR_CMD);
    EXPECT_EQ(errno, ENOMEM);
    ibv_mr* on_demand = ibv_reg_mr(b->pd, b->at(0), 65536, kAllAccess | IBV_ACCESS_ON_DEMAND);
    EXPECT_NE(on_demand, nullptr) << "pins nothing";
    EXPECT_EQ(ibv_dereg_mr(on_demand), 0);
    EXPECT_EQ(ibv_dereg_mr(first), 0);
    first = ibv_reg_mr(b->pd, b->at(kAt), 4096, kAllAccess);
    EXPECT_NE(first, nullptr) << "what was deregistered counts no more";
    EXPECT_EQ(ibv_dereg_mr(first), 0);
    EXPECT_EQ(ibv_dereg_mr(second), 0);
}

// The kernel gives back what a context has pinned when it is closed. What the library allocated for
// the objects left on it is the program's leak, here as with devices.
TEST_F(LockedMemory, CountsNoRegionOfAClosedDevice) {
    static std::array<ibv_mr*, 3> left;  // static: LeakSanitizer reports what nothing points to
    setenv("SIMVERBS_MEMLOCK", std::to_string(2 * End::kBytes + 8192).c_str(), 1);
    for (ibv_mr*& mr : left) {
        ibv_context* context = ibv_open_device(b->context->device);
        ASSERT_NE(context, nullptr);
        ibv_pd* pd = ibv_alloc_pd(context);
        mr = ibv_reg_mr(pd, b->at(kAt), 8192, kAllAccess);
        ASSERT_NE(mr, nullptr);
        EXPECT_EQ(ibv_reg_mr(pd, b->at(kAt), 1, kAllAccess), nullptr);
        EXPECT_EQ(ibv_close_device(context), 0);
    }
}

// As devices have it for users other than root (ulimit -l).
TEST_F(LockedMemory, IsLimitedByTheProcesssLimit) {
    constexpr std::size_t kBoth = 2 * End::kBytes;
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
    rlimit lowered = before;
    lowered.rlim_cur = kBoth + 4096;
    ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &lowered), 0) << std::strerror(errno);
    setenv("SIMVERBS_MEMLOCK", "rlimit", 1);
    ibv_mr* first = ibv_reg_mr(b->pd, b->at(kAt), 4096, kAllAccess);
    EXPECT_NE(first, nullptr) << std::strerror(errno);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(b->pd, b->at(kAt), 1, kAllAccess), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    unsetenv("SIMVERBS_MEMLOCK");
    ibv_mr* second = ibv_reg_mr(b->pd, b->at(kAt), 1, kAllAccess);
    EXPECT_NE(second, nullptr) << "without it there is no limit";
    EXPECT_EQ(ibv_dereg_mr(second), 0);
    EXPECT_EQ(ibv_dereg_mr(first), 0);
    EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

TEST_F(LockedMemory, ALimitThatIsNoNumberAllowsNothing) {
    setenv("SIMVERBS_MEMLOCK", "64k", 1);
    testing::internal::CaptureStderr();
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(b->pd, b->at(kAt), 4096, kAllAccess), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "simverbs: SIMVERBS_MEMLOCK='64k' is neither a number of bytes nor rlimit\n");
}

// ATOMIC_WRITE and FLUSH

class AtomicWrite : public Memory {
  protected:
    ibv_wc ask(const ibv_sge& from, std::uint64_t address, unsigned flags = 0) {
        EXPECT_EQ(
            Request(IBV_WR_ATOMIC_WRITE).from(from).to(address, b->mr->rkey).with(flags).post(*a),
            0);
        return a->wait();
    }
};

TEST_F(AtomicWrite, LandsEightBytes) {
    const ibv_wc wc = ask(a->range(0, 8), b->address(kAt));
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_ATOMIC_WRITE);
    EXPECT_EQ(b->word(kAt), a->word(0));
    EXPECT_EQ(b->word(kAt + 8), 0U);
    EXPECT_EQ(ask(a->range(8, 8), b->address(kAt), IBV_SEND_INLINE).status, IBV_WC_SUCCESS);
    EXPECT_EQ(b->word(kAt), a->word(8));
    EXPECT_TRUE(b->drain().empty());
}

TEST_F(AtomicWrite, IsOfEightBytes) {
    EXPECT_EQ(ask(a->range(0, 4), b->address(kAt)).status, IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(b->word(kAt), 0U);
}

TEST_F(AtomicWrite, IsAligned) {
    EXPECT_EQ(ask(a->range(0, 8), b->address(kAt + 4)).status, IBV_WC_REM_INV_REQ_ERR);
    EXPECT_EQ(b->word(kAt), 0U);
    EXPECT_EQ(b->word(kAt + 8), 0U);
}

TEST_F(AtomicWrite, StaysWithinItsRegion) {
    EXPECT_EQ(ask(a->range(0, 8), b->address(End::kBytes)).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(AtomicWrite, IsUnknownToADeviceThatDoesNotReportIt) {
    use_personality("connectx6");
    EXPECT_EQ(
        Request(IBV_WR_ATOMIC_WRITE).from(a->range(0, 8)).to(b->address(kAt), b->mr->rkey).post(*a),
        EINVAL);
}

TEST_F(AtomicWrite, AFlushCannotBeSaidInAnIbvSendWr) {
    EXPECT_EQ(Request(static_cast<ibv_wr_opcode>(14)).to(b->address(kAt), b->mr->rkey).post(*a),
              EINVAL);
    expect_works();
}

}  // namespace
}  // namespace verbs_test
