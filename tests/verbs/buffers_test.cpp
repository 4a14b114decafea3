// ibv_alloc_buf and ibv_reg_mr_ex: what libibverbs does by itself for a device that has no ways of
// its own, with its errors.
#include <cerrno>

#include <unistd.h>

#include "newer_verbs.h"
#include "two_hosts.hpp"

#ifdef __SANITIZE_ADDRESS__
// Its allocator ends a program that asks for more than there is, unless told otherwise. It looks
// for this function among what the program exports.
extern "C" [[gnu::visibility("default")]] const char*
__asan_default_options() {  // NOLINT(bugprone-reserved-identifier)
    return "allocator_may_return_null=1";
}
#endif

namespace verbs_test {
namespace {

constexpr int kAccess = static_cast<int>(kAllAccess);

class Buffers : public TwoHosts {
  protected:
    static constexpr std::size_t kBytes = 10'000;

    void SetUp() override {
        TwoHosts::SetUp();
        connect();
        start = static_cast<std::uint8_t*>(newer_alloc_buf(a->pd, kBytes, &buffer));
        ASSERT_NE(start, nullptr);
        ASSERT_NE(buffer, nullptr);
    }
    void TearDown() override {
        newer_free_buf(buffer);
        TwoHosts::TearDown();
    }
    // Deregistered at once where it can be had.
    int error_of(newer_mr_init_attr attr, ibv_pd* pd = nullptr) {
        errno = 0;
        ibv_mr* mr = newer_reg_mr_ex(pd == nullptr ? a->pd : pd, &attr);
        if (mr == nullptr) {
            return errno;
        }
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
        return 0;
    }
    newer_mr_init_attr of_buffer(void* address, std::size_t length, std::uint64_t more = 0) {
        newer_mr_init_attr attr{};
        attr.comp_mask = NEWER_REG_MR_MASK_BUF | NEWER_REG_MR_MASK_ADDR | more;
        attr.length = length;
        attr.access = kAccess;
        attr.addr = address;
        attr.buf = buffer;
        return attr;
    }

    newer_buf* buffer = nullptr;
    std::uint8_t* start = nullptr;
};

TEST_F(Buffers, BeginAtAPageAndExchangeData) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(start) % static_cast<unsigned>(getpagesize()), 0U);
    ibv_mr* mr = newer_reg_buf_mr(a->pd, buffer, start, kBytes, kAccess);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(mr->context, a->context);
    EXPECT_EQ(mr->pd, a->pd);
    EXPECT_EQ(mr->addr, start);
    EXPECT_EQ(mr->length, kBytes);
    start[kBytes - 1] = 0x5A;
    const auto last = reinterpret_cast<std::uint64_t>(start) + kBytes - 1;
    ASSERT_EQ(
        Request(IBV_WR_RDMA_WRITE).from({last, 1, mr->lkey}).to(b->address(), b->mr->rkey).post(*a),
        0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(*b->at(), 0x5A);
    b->word(8) = 0x1122334455667788;
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .from(b->range(8, 8))
                  .to(reinterpret_cast<std::uint64_t>(start), mr->rkey)
                  .post(*b),
              0);
    EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(start), 0x1122334455667788U);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Buffers, ARegionLiesWithinItsBuffer) {
    EXPECT_EQ(error_of(of_buffer(start, kBytes)), 0);
    EXPECT_EQ(error_of(of_buffer(start + 4096, kBytes - 4096)), 0);
    EXPECT_EQ(error_of(of_buffer(start + 1, kBytes)), EINVAL);
    EXPECT_EQ(error_of(of_buffer(start - 1, 8)), EINVAL);
    EXPECT_EQ(error_of(of_buffer(start + kBytes + 1, 0)), EINVAL);
    EXPECT_EQ(error_of(of_buffer(start + 8, ~std::size_t{0})), EINVAL);
    EXPECT_EQ(newer_reg_buf_mr(a->pd, buffer, start + 1, kBytes, kAccess), nullptr);
}

TEST_F(Buffers, ARegionIsOfTheDomainThatTheBufferWasAllocatedIn) {
    ibv_pd* other = ibv_alloc_pd(a->context);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(error_of(of_buffer(start, 8), other), EINVAL);
    EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(Buffers, NeitherADescriptorNorLessThanAnAddressGoesWithABuffer) {
    newer_mr_init_attr attr = of_buffer(start, 8);
    attr.comp_mask = NEWER_REG_MR_MASK_BUF;
    EXPECT_EQ(error_of(attr), EINVAL);
    EXPECT_EQ(error_of(of_buffer(start, 8, NEWER_REG_MR_MASK_FD)), EINVAL);
    EXPECT_EQ(error_of(of_buffer(start, 8, NEWER_REG_MR_MASK_FD_OFFSET)), EINVAL);
    EXPECT_EQ(error_of(of_buffer(start, 8, NEWER_REG_MR_MASK_DMAH)), EOPNOTSUPP);
}

TEST_F(Buffers, AreNoDmaBufs) {
    errno = 0;
    EXPECT_EQ(newer_export_buf_dmabuf_fd(buffer), -1);
    EXPECT_EQ(errno, ENODATA);
}

TEST_F(Buffers, ThatDoNotFitAreEnomem) {
    newer_buf* huge = nullptr;
    errno = 0;
    EXPECT_EQ(newer_alloc_buf(a->pd, ~std::size_t{0} / 2, &huge), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(huge, nullptr);
}

TEST_F(Buffers, AParentDomainThatAllowsUnprotectedMemoryAllocatesThem) {
    ibv_parent_domain_init_attr attr{};
    attr.pd = a->pd;
    attr.comp_mask = NEWER_PARENT_DOMAIN_ALLOW_CC_UNPROTECTED_ALLOC;
    ibv_pd* parent = ibv_alloc_parent_domain(a->context, &attr);
    ASSERT_NE(parent, nullptr);
    newer_buf* shared = nullptr;
    void* memory = newer_alloc_buf(parent, 64, &shared);
    ASSERT_NE(memory, nullptr);
    ibv_mr* mr = newer_reg_buf_mr(parent, shared, memory, 64, kAccess);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(mr->pd, parent);
    EXPECT_EQ(newer_reg_buf_mr(a->pd, shared, memory, 64, kAccess), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    newer_free_buf(shared);
    EXPECT_EQ(ibv_dealloc_pd(parent), 0);
    attr.comp_mask = 1U << 3;
    EXPECT_EQ(ibv_alloc_parent_domain(a->context, &attr), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

class ExtendedRegistration : public Buffers {
  protected:
    newer_mr_init_attr plain(std::uint64_t mask) {
        newer_mr_init_attr attr{};
        attr.comp_mask = mask;
        attr.length = 64;
        attr.access = kAccess;
        attr.addr = a->at(4096);
        attr.iova = 0x7000'0000 + a->address(4096) % 4096;
        return attr;
    }
};

TEST_F(ExtendedRegistration, NamesMemoryByItsAddressOrByAnother) {
    EXPECT_EQ(error_of(plain(NEWER_REG_MR_MASK_ADDR)), 0);
    newer_mr_init_attr attr = plain(NEWER_REG_MR_MASK_ADDR | NEWER_REG_MR_MASK_IOVA);
    ibv_mr* mr = newer_reg_mr_ex(a->pd, &attr);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(mr->addr, a->at(4096));
    b->word() = 77;
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE).from(b->range(0, 8)).to(attr.iova + 8, mr->rkey).post(*b),
              0);
    EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(a->word(4104), 77U);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(ExtendedRegistration, ChecksMemoryAsThePlainCallDoes) {
    newer_mr_init_attr attr = plain(NEWER_REG_MR_MASK_ADDR);
    attr.access = IBV_ACCESS_REMOTE_WRITE;  // without LOCAL_WRITE
    EXPECT_EQ(error_of(attr), EINVAL);
    attr = plain(NEWER_REG_MR_MASK_ADDR);
    attr.addr = nullptr;
    EXPECT_EQ(error_of(attr), EFAULT);
}

TEST_F(ExtendedRegistration, NeedsAnAddressOrAWholeDmaBuf) {
    constexpr std::uint64_t kWholeDmaBuf =
        NEWER_REG_MR_MASK_FD | NEWER_REG_MR_MASK_FD_OFFSET | NEWER_REG_MR_MASK_IOVA;
    EXPECT_EQ(error_of(plain(0)), EINVAL);
    EXPECT_EQ(error_of(plain(NEWER_REG_MR_MASK_IOVA)), EINVAL);
    EXPECT_EQ(error_of(plain(NEWER_REG_MR_MASK_ADDR | NEWER_REG_MR_MASK_FD_OFFSET)), EINVAL);
    EXPECT_EQ(error_of(plain(NEWER_REG_MR_MASK_FD | NEWER_REG_MR_MASK_IOVA)), EINVAL);
    EXPECT_EQ(error_of(plain(NEWER_REG_MR_MASK_FD | NEWER_REG_MR_MASK_FD_OFFSET)), EINVAL);
    EXPECT_EQ(error_of(plain(kWholeDmaBuf | NEWER_REG_MR_MASK_ADDR)), EINVAL);
    EXPECT_EQ(error_of(plain(kWholeDmaBuf)), EOPNOTSUPP);
}

TEST_F(ExtendedRegistration, RefusesDmaHandlesAndBitsThatItDoesNotKnow) {
    EXPECT_EQ(error_of(plain(NEWER_REG_MR_MASK_ADDR | NEWER_REG_MR_MASK_DMAH)), EOPNOTSUPP);
    EXPECT_EQ(error_of(plain(NEWER_REG_MR_MASK_ADDR | 1U << 6)), EOPNOTSUPP);
}

}  // namespace
}  // namespace verbs_test
