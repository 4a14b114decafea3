// Packets that the fabric doubles: whoever gets one again answers it again; nobody waits longer.
#include "injection.hpp"

namespace verbs_test {
namespace {

class Doubled : public Injection {
  protected:
    static constexpr std::uint32_t kReads = 4;
    static constexpr std::uint32_t kPacketsEach = 40;

    void SetUp() override {
        Injection::SetUp();
        connect();
    }
    void read(std::uint64_t id) {
        ASSERT_EQ(Request(IBV_WR_RDMA_READ)
                      .id(id)
                      .into(a->range((id % 2) * kPacketsEach * kPacket, kPacketsEach * kPacket))
                      .to(b->address(0), b->mr->rkey)
                      .post(*a),
                  0);
    }
};

// One READ after the other is doubled, while those behind it are under way.
TEST_F(Doubled, ReadsUnderWayAreAnsweredWithoutATimeout) {
    for (std::uint32_t nth = 1; nth <= kReads; ++nth) {
        simverbs_fault fault = fault_of(SIMVERBS_FAULT_DUPLICATE);
        fault.match.from = "h0";
        fault.match.opcode = "RDMA_READ_REQUEST";
        fault.match.direction = SIMVERBS_REQUESTS;
        fault.nth = nth;
        fault.with.times = 2;
        const std::uint32_t id = inject(fault);
        const auto start = now_us();
        for (std::uint32_t k = 0; k < kReads; ++k) {
            read(k);
        }
        for (std::uint32_t k = 0; k < kReads; ++k) {
            expect(*a, k, IBV_WC_SUCCESS);
        }
        EXPECT_EQ(fired(id), 1U) << nth;
        EXPECT_LT(now_us() - start, 1'000) << "READ " << nth << " doubled; a timeout is 67 ms";
    }
    expect_silence();
    expect_both_live();
}

}  // namespace
}  // namespace verbs_test
