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

TEST_F(Doubled, AnAtomicIsExecutedOnce) {
    simverbs_fault fault = on_request(SIMVERBS_FAULT_DUPLICATE, 1);
    fault.with.times = 2;
    const std::uint32_t id = inject(fault);
    b->word(0) = 5;
    ASSERT_EQ(Request(IBV_WR_ATOMIC_FETCH_AND_ADD)
                  .id(1)
                  .into(a->range(8, 8))
                  .fetch_and_add(b->address(0), b->mr->rkey, 10)
                  .post(*a),
              0);
    expect(*a, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(fired(id), 1U);
    EXPECT_EQ(a->word(8), 5U);
    expect_silence();
    EXPECT_EQ(b->word(0), 15U) << "three requests, one addition";
    expect_both_live();
}

// The copy of one READ's request comes when those behind it have come: they are answered once.
TEST_F(Doubled, ReadsUnderWayAreAnsweredWithoutATimeout) {
    for (std::uint32_t nth = 1; nth <= kReads; ++nth) {
        simverbs_fault doubles = fault_of(SIMVERBS_FAULT_DUPLICATE);
        doubles.match.from = "h0";
        doubles.match.opcode = "RDMA_READ_REQUEST";
        doubles.match.link = "h0-s0";
        doubles.match.transmitter = "h0";
        doubles.nth = nth;
        simverbs_fault delays = fault_of(SIMVERBS_FAULT_DELAY);
        delays.match.from = "h0";
        delays.match.opcode = "RDMA_READ_REQUEST";
        delays.match.link = "h1-s0";
        delays.match.transmitter = "s0";
        delays.nth = nth + 1;
        delays.with.duration_ps = 2 * kMicrosecond;
        const std::uint32_t doubled = inject(doubles);
        const std::uint32_t delayed = inject(delays);
        const auto start = now_us();
        for (std::uint32_t k = 0; k < kReads; ++k) {
            read(k);
        }
        for (std::uint32_t k = 0; k < kReads; ++k) {
            expect(*a, k, IBV_WC_SUCCESS);
        }
        EXPECT_EQ(fired(doubled), 1U) << nth;
        EXPECT_EQ(fired(delayed), 1U) << nth;
        EXPECT_LT(now_us() - start, 1'000) << "READ " << nth << " doubled; a timeout is 67 ms";
    }
    expect_silence();
    expect_both_live();
}

}  // namespace
}  // namespace verbs_test
