// Memory of the device (ibv_alloc_dm(3)) through the C API: copies, keys, limits.
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "registered_memory.hpp"

namespace verbs_test {
namespace {

class DeviceMemory : public Memory {
  protected:
    static ibv_dm* allocate(const End& end, std::size_t length, std::uint32_t log_alignment = 0) {
        ibv_alloc_dm_attr attr{};
        attr.length = length;
        attr.log_align_req = log_alignment;
        errno = 0;
        return ibv_alloc_dm(end.context, &attr);
    }
    static constexpr unsigned kRights = kAllAccess | IBV_ACCESS_ZERO_BASED;
};

TEST_F(DeviceMemory, IsReachedByCopyingAndByKeys) {
    ibv_dm* dm = allocate(*b, 4096, 6);
    ASSERT_NE(dm, nullptr);
    EXPECT_EQ(dm->context, b->context);
    ibv_mr* mr = ibv_reg_dm_mr(b->pd, dm, 1024, 2048, kRights);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(mr->length, 2048U);
    EXPECT_EQ(write(64, mr->rkey), IBV_WC_SUCCESS);
    std::uint8_t bytes[kBytes] = {};
    EXPECT_EQ(ibv_memcpy_from_dm(bytes, dm, 1024 + 64, kBytes), 0);
    EXPECT_TRUE(landed(bytes));
    std::memset(bytes, 0x3C, sizeof bytes);
    EXPECT_EQ(ibv_memcpy_to_dm(dm, 1024, bytes, kBytes), 0);
    EXPECT_EQ(read(0, mr->rkey, 16384), IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(a->at(16384), bytes, kBytes), 0);
    ASSERT_EQ(Request(IBV_WR_ATOMIC_FETCH_AND_ADD)
                  .into(a->range(32768, 8))
                  .fetch_and_add(8, mr->rkey, 1)
                  .post(*a),
              0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(a->word(32768), 0x3C3C3C3C3C3C3C3CU);
    std::uint64_t word = 0;
    EXPECT_EQ(ibv_memcpy_from_dm(&word, dm, 1024 + 8, sizeof word), 0);
    EXPECT_EQ(word, 0x3C3C3C3C3C3C3C3DU);
    EXPECT_EQ(write(2048 - kBytes + 1, mr->rkey), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_free_dm(dm), EBUSY);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(DeviceMemory, SendsAndReceives) {
    ibv_dm* from = allocate(*a, 4096);
    ibv_dm* to = allocate(*b, 4096);
    ibv_mr* out = ibv_reg_dm_mr(a->pd, from, 0, 4096, kRights);
    ibv_mr* in = ibv_reg_dm_mr(b->pd, to, 0, 4096, kRights);
    EXPECT_EQ(ibv_memcpy_to_dm(from, 0, a->at(0), kBytes), 0);
    ASSERT_EQ(b->receive(1, {{512, kBytes, in->lkey}}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).from({0, kBytes, out->lkey}).post(*a), 0);
    // A copy on its way keeps what it carried, though the region and its memory go.
    EXPECT_EQ(ibv_dereg_mr(out), 0);
    EXPECT_EQ(ibv_free_dm(from), 0);
    EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
    std::uint8_t bytes[kBytes] = {};
    EXPECT_EQ(ibv_memcpy_from_dm(bytes, to, 512, kBytes), 0);
    EXPECT_TRUE(landed(bytes));
    EXPECT_EQ(ibv_dereg_mr(in), 0);
    EXPECT_EQ(ibv_free_dm(to), 0);
}

TEST_F(DeviceMemory, HasLimits) {
    EXPECT_EQ(allocate(*b, 0), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(allocate(*b, 64, 20), nullptr);
    EXPECT_EQ(errno, EINVAL);
    ibv_dm* all = allocate(*b, 131'072);
    ASSERT_NE(all, nullptr);
    EXPECT_EQ(allocate(*b, 1), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(ibv_free_dm(all), 0);
    ibv_dm* dm = allocate(*b, 64);
    ASSERT_NE(dm, nullptr);
    std::uint64_t word = 0;
    EXPECT_EQ(ibv_memcpy_to_dm(dm, 57, &word, 8), EINVAL);
    EXPECT_EQ(ibv_memcpy_from_dm(&word, dm, 65, 0), EINVAL);
    EXPECT_EQ(ibv_memcpy_from_dm(&word, dm, 56, 8), 0);
    EXPECT_EQ(word, 0U) << "it begins as zeros";
    const auto registers = [this, dm](std::uint64_t offset, std::size_t length, unsigned access) {
        errno = 0;
        return ibv_reg_dm_mr(b->pd, dm, offset, length, access) == nullptr ? errno : 0;
    };
    EXPECT_EQ(registers(0, 64, kAllAccess), EINVAL) << "without ZERO_BASED";
    EXPECT_EQ(registers(1, 64, kRights), EINVAL);
    EXPECT_EQ(registers(0, 0, kRights), EINVAL);
    EXPECT_EQ(registers(0, 64, kRights | IBV_ACCESS_MW_BIND), EINVAL);
    EXPECT_EQ(ibv_free_dm(dm), 0);
}

// mlx5_access_dm() copies words of 4 bytes; Linux looks at the range of a region alone.
TEST_F(DeviceMemory, OfConnectX6IsCopiedByWordsOfFourBytes) {
    use_personality("connectx6");
    ibv_dm* dm = allocate(*b, 64);
    ASSERT_NE(dm, nullptr);
    std::uint64_t word = 7;
    EXPECT_EQ(ibv_memcpy_to_dm(dm, 4, &word, 8), 0);
    EXPECT_EQ(ibv_memcpy_to_dm(dm, 2, &word, 4), EINVAL);
    EXPECT_EQ(ibv_memcpy_to_dm(dm, 4, &word, 6), EINVAL);
    EXPECT_EQ(ibv_memcpy_from_dm(&word, dm, 1, 4), EINVAL);
    EXPECT_EQ(ibv_memcpy_from_dm(&word, dm, 0, 3), EINVAL);
    EXPECT_EQ(ibv_memcpy_from_dm(&word, dm, 60, 8), EFAULT);
    EXPECT_EQ(ibv_memcpy_from_dm(&word, dm, 4, 8), 0);
    EXPECT_EQ(word, 7U);
    ibv_mr* empty = ibv_reg_dm_mr(b->pd, dm, 0, 0, kRights);
    ASSERT_NE(empty, nullptr);
    EXPECT_EQ(write(0, empty->rkey), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(empty), 0);
    EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(DeviceMemory, IsNotReregistered) {
    ibv_dm* dm = allocate(*b, 64);
    ibv_mr* mr = ibv_reg_dm_mr(b->pd, dm, 0, 64, kRights);
    EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                           static_cast<int>(kRights)),
              IBV_REREG_MR_ERR_CMD);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_free_dm(dm), 0);
}

}  // namespace
}  // namespace verbs_test
