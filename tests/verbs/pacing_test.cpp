// Packet pacing: the rate limit of a queue pair, in virtual time.
#include "raw_packets.hpp"

namespace verbs_test {
namespace {

constexpr std::uint32_t kByteAMicrosecond = 8'000;  // kbps

class Pacing : public RawPackets {
  protected:
    static int limit(ibv_qp* qp, std::uint32_t kbps) {
        ibv_qp_attr attr{};
        attr.rate_limit = kbps;
        return ibv_modify_qp(qp, &attr, IBV_QP_RATE_LIMIT);
    }
    int limit_bursts(std::uint32_t kbps, std::uint32_t burst, std::uint16_t typical = 0,
                     std::uint32_t comp_mask = 0) {
        ibv_qp_rate_limit_attr attr{kbps, burst, typical, comp_mask};
        return ibv_modify_qp_rate_limit(sender, &attr);
    }
    // When each of five frames arrives, in microseconds after they were posted.
    std::vector<std::int64_t> arrivals() {
        for (std::uint64_t id = 0; id < 5; ++id) {
            EXPECT_EQ(post_receive(receiver, *b, id), 0);
        }
        const std::int64_t start = now_us();
        for (std::uint64_t id = 0; id < 5; ++id) {
            EXPECT_EQ(post_send(), 0);
        }
        std::vector<std::int64_t> times;
        for (std::uint64_t id = 0; id < 5; ++id) {
            EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
            times.push_back(now_us() - start);
        }
        for (std::uint64_t id = 0; id < 5; ++id) {
            EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
        }
        return times;
    }
    // Rounds down, so that nothing is left of the time that the fabric itself takes.
    static std::vector<std::int64_t> in_hundreds(std::vector<std::int64_t> times) {
        for (std::int64_t& time : times) {
            time = time / 100 * 100;
        }
        return times;
    }
    using Times = std::vector<std::int64_t>;
};

TEST_F(Pacing, IsSaidByTheDevice) {
    ibv_device_attr_ex attr{};
    ASSERT_EQ(ibv_query_device_ex(a->context, nullptr, &attr), 0);
    EXPECT_EQ(attr.packet_pacing_caps.supported_qpts, 1U << IBV_QPT_RAW_PACKET);
    EXPECT_GT(attr.packet_pacing_caps.qp_rate_limit_min, 0U);
    EXPECT_GT(attr.packet_pacing_caps.qp_rate_limit_max, attr.packet_pacing_caps.qp_rate_limit_min);
}

TEST_F(Pacing, FramesGoAtTheRateAndNotFaster) {
    write_datagram();
    ASSERT_EQ(steer(Rule(eth_to_b())), 0);
    EXPECT_EQ(in_hundreds(arrivals()), (Times{0, 0, 0, 0, 0}));
    ASSERT_EQ(limit(sender, kByteAMicrosecond), 0);
    EXPECT_EQ(in_hundreds(arrivals()), (Times{0, 100, 200, 300, 400}));
    ASSERT_EQ(limit(sender, 2 * kByteAMicrosecond), 0);
    pass(1);
    EXPECT_EQ(in_hundreds(arrivals()), (Times{0, 0, 100, 100, 200}));
    ASSERT_EQ(limit(sender, 0), 0);
    EXPECT_EQ(in_hundreds(arrivals()), (Times{0, 0, 0, 0, 0}));
}

TEST_F(Pacing, ABurstGoesAtOnce) {
    write_datagram();
    ASSERT_EQ(steer(Rule(eth_to_b())), 0);
    ASSERT_EQ(limit_bursts(kByteAMicrosecond, 2 * kFrameBytes, 100), 0);
    EXPECT_EQ(in_hundreds(arrivals()), (Times{0, 0, 200, 200, 400}));
}

TEST_F(Pacing, MayBeginOnTheWayToRts) {
    write_datagram();
    ASSERT_EQ(steer(Rule(eth_to_b())), 0);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(ibv_modify_qp(sender, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.rate_limit = kByteAMicrosecond;
    EXPECT_EQ(ibv_modify_qp(sender, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_RATE_LIMIT), EINVAL);
    ASSERT_EQ(ibv_modify_qp(sender, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
    attr.qp_state = IBV_QPS_RTR;
    ASSERT_EQ(ibv_modify_qp(sender, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(ibv_modify_qp(sender, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), 0);
    EXPECT_EQ(in_hundreds(arrivals()), (Times{0, 100, 200, 300, 400}));
    // A reset forgets it.
    attr.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(ibv_modify_qp(sender, &attr, IBV_QP_STATE), 0);
    start(sender);
    EXPECT_EQ(in_hundreds(arrivals()), (Times{0, 0, 0, 0, 0}));
}

TEST_F(Pacing, ThatCannotBeIsRefusedAndChangesNothing) {
    write_datagram();
    ASSERT_EQ(steer(Rule(eth_to_b())), 0);
    ASSERT_EQ(limit(sender, kByteAMicrosecond), 0);
    EXPECT_EQ(limit(sender, 1), EINVAL);
    EXPECT_EQ(limit(sender, 0xFFFFFFFF), EINVAL);
    EXPECT_EQ(limit(a->qp, kByteAMicrosecond), EINVAL);  // RC
    EXPECT_EQ(limit_bursts(0, 100), EINVAL);
    EXPECT_EQ(limit_bursts(0, 0, 100), EINVAL);
    EXPECT_EQ(limit_bursts(kByteAMicrosecond, 0, 0, 1), EINVAL);
    EXPECT_EQ(in_hundreds(arrivals()), (Times{0, 100, 200, 300, 400}));
}

TEST_F(Pacing, SendsThatWaitAreFlushedAndForgotten) {
    write_datagram();
    ASSERT_EQ(limit(sender, kByteAMicrosecond), 0);
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(post_send(), 0);
    }
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(sender, &attr, IBV_QP_STATE), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(a->wait().status, IBV_WC_WR_FLUSH_ERR);
}

}  // namespace
}  // namespace verbs_test
