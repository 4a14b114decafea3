// Two hosts that read and write each other's registered memory.
#pragma once

#include <cstdint>
#include <cstring>

#include "two_hosts.hpp"

namespace verbs_test {

inline constexpr std::size_t kAt = 8192;
inline constexpr std::uint32_t kBytes = 256;

class Memory : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        connect();
        for (std::size_t i = 0; i < kBytes; ++i) {
            *a->at(i) = static_cast<std::uint8_t>(i + 1);
        }
    }

    ibv_wc_status write(std::uint64_t address, std::uint32_t rkey, std::uint32_t length = kBytes) {
        EXPECT_EQ(Request(IBV_WR_RDMA_WRITE).from(a->range(0, length)).to(address, rkey).post(*a),
                  0);
        return a->wait().status;
    }
    ibv_wc_status read(std::uint64_t address, std::uint32_t rkey, std::size_t into) {
        EXPECT_EQ(Request(IBV_WR_RDMA_READ).into(a->range(into, kBytes)).to(address, rkey).post(*a),
                  0);
        return a->wait().status;
    }
    bool landed(const void* at) { return std::memcmp(at, a->at(0), kBytes) == 0; }
    void use_personality(const char* name) {
        a.reset();
        b.reset();
        ASSERT_EQ(simverbs_restart(), 0);
        ASSERT_EQ(simverbs_set_personality(name), 0);
        connect();
    }
};

}  // namespace verbs_test
