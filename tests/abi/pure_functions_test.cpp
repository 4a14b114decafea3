// Strings, rates and structure copies against the distribution's libibverbs: equal answers for
// every input.
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/newer_abi.hpp"
#include "simverbs/abi/provider_abi.hpp"

#include "tests/abi/real_library.hpp"

namespace {

using simverbs::testing::RealLibrary;

constexpr int kFirst = -5;
constexpr int kLast = 300;

template <typename Enum>
void expect_same_names(const char* (*ours)(Enum), const char* (*theirs)(Enum)) {
    for (int value = kFirst; value <= kLast; ++value) {
        EXPECT_STREQ(ours(static_cast<Enum>(value)), theirs(static_cast<Enum>(value))) << value;
    }
    for (const int value : {std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
        EXPECT_STREQ(ours(static_cast<Enum>(value)), theirs(static_cast<Enum>(value))) << value;
    }
}

#define SIMVERBS_REAL(library, name, version) (library).find(simverbs_abi_##name, #name, version)

TEST(AbiStrings, EqualTheDistributionsForEveryValue) {
    const RealLibrary real;
    expect_same_names(simverbs_abi_ibv_node_type_str,
                      SIMVERBS_REAL(real, ibv_node_type_str, "IBVERBS_1.1"));
    expect_same_names(simverbs_abi_ibv_port_state_str,
                      SIMVERBS_REAL(real, ibv_port_state_str, "IBVERBS_1.1"));
    expect_same_names(simverbs_abi_ibv_event_type_str,
                      SIMVERBS_REAL(real, ibv_event_type_str, "IBVERBS_1.1"));
    expect_same_names(simverbs_abi_ibv_wc_status_str,
                      SIMVERBS_REAL(real, ibv_wc_status_str, "IBVERBS_1.1"));
}

TEST(AbiStrings, NamesOpcodesThatDebian12DoesNotName) {
    EXPECT_STREQ(simverbs_abi_ibv_wr_opcode_str(IBV_WR_RDMA_WRITE), "rdma-write");
    EXPECT_STREQ(simverbs_abi_ibv_wr_opcode_str(simverbs::abi::kWrFlush), "flush");
    EXPECT_STREQ(simverbs_abi_ibv_wr_opcode_str(IBV_WR_ATOMIC_WRITE), "atomic-write");
    EXPECT_STREQ(simverbs_abi_ibv_wr_opcode_str(static_cast<ibv_wr_opcode>(12)), "unknown");
    for (const int beyond : {-1, 16}) {
        EXPECT_STREQ(simverbs_abi_ibv_wr_opcode_str(static_cast<ibv_wr_opcode>(beyond)), "unknown");
    }
}

TEST(AbiRates, EqualTheDistributionsForEveryRate) {
    const RealLibrary real;
    const auto to_mult = SIMVERBS_REAL(real, ibv_rate_to_mult, "IBVERBS_1.0");
    const auto to_mbps = SIMVERBS_REAL(real, ibv_rate_to_mbps, "IBVERBS_1.1");
    for (int value = kFirst; value <= kLast; ++value) {
        const auto rate = static_cast<ibv_rate>(value);
        EXPECT_EQ(simverbs_abi_ibv_rate_to_mult(rate), to_mult(rate)) << value;
        EXPECT_EQ(simverbs_abi_ibv_rate_to_mbps(rate), to_mbps(rate)) << value;
    }
}

TEST(AbiRates, EqualTheDistributionsForEveryAmountUpTo2Tbps) {
    const RealLibrary real;
    const auto from_mult = SIMVERBS_REAL(real, mult_to_ibv_rate, "IBVERBS_1.0");
    const auto from_mbps = SIMVERBS_REAL(real, mbps_to_ibv_rate, "IBVERBS_1.1");
    for (int amount = kFirst; amount <= 2'000'000; ++amount) {
        ASSERT_EQ(simverbs_abi_mult_to_ibv_rate(amount), from_mult(amount)) << amount;
        ASSERT_EQ(simverbs_abi_mbps_to_ibv_rate(amount), from_mbps(amount)) << amount;
    }
}

// Both copies start from the same random bytes, destination included, so that a byte that one of
// them touches and the other leaves shows too.
template <typename To, typename From>
void expect_same_copies(void (*ours)(To*, const From*), void (*theirs)(To*, const From*)) {
    std::mt19937 random(20);  // NOLINT(cert-msc51-cpp): the same inputs in every run
    const auto fill = [&random](void* bytes, std::size_t size) {
        for (std::size_t i = 0; i < size; ++i) {
            static_cast<std::uint8_t*>(bytes)[i] = static_cast<std::uint8_t>(random());
        }
    };
    for (int round = 0; round < 1000; ++round) {
        From from;
        std::array<std::uint8_t, sizeof(To)> before{};
        fill(&from, sizeof from);
        fill(before.data(), before.size());
        To expected;
        To actual;
        std::memcpy(static_cast<void*>(&expected), before.data(), before.size());
        std::memcpy(static_cast<void*>(&actual), before.data(), before.size());
        theirs(&expected, &from);
        ours(&actual, &from);
        // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): padding counts here
        ASSERT_EQ(std::memcmp(&expected, &actual, sizeof(To)), 0) << "round " << round;
    }
}

TEST(AbiMarshall, CopiesTheSameBytesAsTheDistributions) {
    const RealLibrary real;
    expect_same_copies(simverbs_abi_ibv_copy_ah_attr_from_kern,
                       SIMVERBS_REAL(real, ibv_copy_ah_attr_from_kern, "IBVERBS_1.1"));
    expect_same_copies(simverbs_abi_ibv_copy_qp_attr_from_kern,
                       SIMVERBS_REAL(real, ibv_copy_qp_attr_from_kern, "IBVERBS_1.0"));
    expect_same_copies(simverbs_abi_ibv_copy_path_rec_from_kern,
                       SIMVERBS_REAL(real, ibv_copy_path_rec_from_kern, "IBVERBS_1.0"));
    expect_same_copies(simverbs_abi_ibv_copy_path_rec_to_kern,
                       SIMVERBS_REAL(real, ibv_copy_path_rec_to_kern, "IBVERBS_1.0"));
}

TEST(AbiFork, NeedsNothingAndAlwaysSucceeds) {
    std::array<char, 64> memory{};
    EXPECT_EQ(simverbs_abi_ibv_fork_init(), 0);
    EXPECT_EQ(simverbs_abi_ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
    EXPECT_EQ(simverbs_abi_ibv_dontfork_range(memory.data(), memory.size()), 0);
    EXPECT_EQ(simverbs_abi_ibv_dofork_range(memory.data(), memory.size()), 0);
}

}  // namespace
