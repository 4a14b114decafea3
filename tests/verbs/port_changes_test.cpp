// Changes that a subnet manager makes to a port while programs run: the event, what queries say
// from then on, and what becomes of connections.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "newer_verbs.h"
#include "two_hosts.hpp"

namespace verbs_test {
namespace {

constexpr auto kSpeedChange = static_cast<ibv_event_type>(20);  // rdma-core 62

class PortChange : public TwoHosts {
  protected:
    static bool error_names(const char* word) {
        return std::strstr(simverbs_last_error(), word) != nullptr;
    }
    static ibv_port_attr query(const End& end) {
        ibv_port_attr attr{};
        EXPECT_EQ(ibv_query_port(end.context, 1, &attr), 0);
        return attr;
    }
    static std::uint16_t pkey(const End& end, int index) {
        __be16 value = 0;
        EXPECT_EQ(ibv_query_pkey(end.context, 1, index, &value), 0);
        return be16toh(value);
    }
    ibv_wc_status write() {
        EXPECT_EQ(
            Request(IBV_WR_RDMA_WRITE).from(a->range(0, 8)).to(b->address(0), b->mr->rkey).post(*a),
            0);
        return a->wait().status;
    }
    void again() {
        ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
        ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
        bring_up({});
    }
};

TEST_F(PortChange, OfTheLidIsToldAndCutsThePathsThatUseTheOldOne) {
    connect();
    ASSERT_EQ(simverbs_port_set_lid("h1", 1, 77), 0);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_LID_CHANGE});
    EXPECT_TRUE(a->events().empty());
    EXPECT_EQ(query(*b).lid, 77);
    EXPECT_EQ(write(), IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
    again();
    expect_works();
}

TEST_F(PortChange, OfTheLidNeedsOneThatIsFree) {
    connect();
    EXPECT_EQ(simverbs_port_set_lid("h1", 1, 1), EINVAL);
    EXPECT_TRUE(error_names("another port's"));
    EXPECT_EQ(simverbs_port_set_lid("h1", 1, 0), EINVAL);
    EXPECT_EQ(simverbs_port_set_lid("h1", 1, 0xC000), EINVAL);
    EXPECT_TRUE(b->events().empty());
    EXPECT_EQ(query(*b).lid, 2);
    expect_works();
}

TEST_F(PortChange, OfThePartitionsIsToldAndShutsOutWhoIsInNone) {
    connect();
    const std::uint16_t pkeys[] = {0x8001, 0xFFFF};
    ASSERT_EQ(simverbs_port_set_pkeys("h1", 1, pkeys, 2), 0);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_PKEY_CHANGE});
    EXPECT_EQ(pkey(*b, 0), 0x8001);
    EXPECT_EQ(pkey(*b, 1), 0xFFFF);
    EXPECT_EQ(write(), IBV_WC_RETRY_EXC_ERR);
    EXPECT_GT(query(*b).bad_pkey_cntr, 0U);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
}

TEST_F(PortChange, OfThePartitionsMayLeaveAQueuePairWithoutOne) {
    connect();
    const std::uint16_t two[] = {0xFFFF, 0x8001};
    ASSERT_EQ(simverbs_port_set_pkeys("h0", 1, two, 2), 0);
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    ibv_qp_attr attr = init_attr({});
    attr.pkey_index = 1;
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kInitMask), 0);
    ASSERT_EQ(simverbs_port_set_pkeys("h0", 1, two, 1), 0);
    EXPECT_EQ(pkey(*a, 1), 0) << "an entry that nothing matches";
    attr = rtr_attr(*b, {});
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kRtrMask), 0);
    attr = rts_attr({});
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, kRtsMask), 0);
    EXPECT_EQ(write(), IBV_WC_RETRY_EXC_ERR);
}

TEST_F(PortChange, OfThePartitionsHasLimits) {
    connect();
    const std::vector<std::uint16_t> many(query(*a).pkey_tbl_len + 1U, 0xFFFF);
    EXPECT_EQ(simverbs_port_set_pkeys("h0", 1, many.data(), many.size()), EINVAL);
    EXPECT_EQ(simverbs_port_set_pkeys("h0", 1, many.data(), 0), EINVAL);
    EXPECT_TRUE(error_names("1 to"));
    EXPECT_EQ(simverbs_port_set_pkeys("h0", 1, nullptr, 1), EINVAL);
    EXPECT_TRUE(a->events().empty());
}

TEST_F(PortChange, OfTheGidsIsTold) {
    connect();
    std::uint8_t gid[16] = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34};
    ASSERT_EQ(simverbs_port_set_gid("h0", 1, 1, gid), 0);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_GID_CHANGE});
    EXPECT_TRUE(b->events().empty());
    ibv_gid found{};
    ASSERT_EQ(ibv_query_gid(a->context, 1, 1, &found), 0);
    EXPECT_TRUE(std::equal(found.raw, found.raw + 16, gid));
    EXPECT_EQ(simverbs_port_set_gid("h0", 1, 3, gid), EINVAL);
    EXPECT_TRUE(error_names("0 to 2"));
    EXPECT_EQ(simverbs_port_set_gid("h0", 1, 0, nullptr), EINVAL);
    expect_works();
}

TEST_F(PortChange, OfTheSubnetManagerIsTold) {
    connect();
    ASSERT_EQ(simverbs_port_set_sm_lid("h0", 1, 3), 0);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_SM_CHANGE});
    EXPECT_EQ(query(*a).sm_lid, 3);
    EXPECT_EQ(simverbs_port_set_sm_lid("h0", 1, 0), EINVAL);
    EXPECT_TRUE(error_names("0xbfff"));
    expect_works();
}

TEST_F(PortChange, MayAskToRegisterAgain) {
    connect();
    ASSERT_EQ(simverbs_port_reregister("h1", 1), 0);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_CLIENT_REREGISTER});
    EXPECT_TRUE(a->events().empty());
    expect_works();
}

TEST_F(PortChange, ReachesEveryContextOfTheDevice) {
    connect();
    End second(0, {});
    ASSERT_EQ(simverbs_port_reregister("h0", 1), 0);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_CLIENT_REREGISTER});
    EXPECT_EQ(second.events(), std::vector{IBV_EVENT_CLIENT_REREGISTER});
}

TEST_F(PortChange, OfTheRateSlowsTheLinkAndIsToldOnlyWhereAsked) {
    connect();
    const auto time_of_a_write = [this] {
        const std::int64_t before = now_us();
        EXPECT_EQ(Request(IBV_WR_RDMA_WRITE)
                      .from(a->range(0, 500'000))
                      .to(b->address(0), b->mr->rkey)
                      .post(*a),
                  0);
        EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
        return now_us() - before;
    };
    const std::int64_t fast = time_of_a_write();
    ASSERT_EQ(simverbs_port_set_rate("h0", 1, 1, 1), 0);
    EXPECT_TRUE(a->events().empty()) << "nobody asked";
    EXPECT_EQ(query(*a).active_width, 1);
    EXPECT_EQ(query(*a).active_speed, 1);
    EXPECT_GT(time_of_a_write(), 2000) << "4 Mbit at 2 Gbit/s";
    ASSERT_EQ(simverbs_port_speed_events(1), 0);
    ASSERT_EQ(simverbs_port_set_rate("h0", 1, 2, 32), 0);
    EXPECT_EQ(a->events(), std::vector{kSpeedChange});
    EXPECT_TRUE(b->events().empty()) << "the other end is the switch";
    EXPECT_EQ(time_of_a_write(), fast);
    EXPECT_EQ(simverbs_port_set_rate("h0", 1, 3, 32), EINVAL);
    EXPECT_EQ(simverbs_port_set_rate("h0", 1, 2, 5), EINVAL);
    EXPECT_TRUE(error_names("EDR"));
    ASSERT_EQ(simverbs_port_speed_events(0), 0);
    ASSERT_EQ(simverbs_port_set_rate("h0", 1, 2, 16), 0);
    EXPECT_TRUE(a->events().empty());
}

TEST_F(PortChange, OfTheRateIsWhatThePortSpeedSays) {
    connect();
    std::uint64_t speed = 0;
    ASSERT_EQ(newer_query_port_speed(a->context, 1, &speed), 0);
    EXPECT_EQ(speed, 1000U) << "4x EDR, in units of 100 Mb/s";
    ASSERT_EQ(simverbs_port_set_rate("h0", 1, 1, 16), 0);
    ASSERT_EQ(newer_query_port_speed(a->context, 1, &speed), 0);
    EXPECT_EQ(speed, 140U) << "1x FDR";
    ASSERT_EQ(simverbs_port_set_rate("h0", 1, 2, 256), 0);
    ASSERT_EQ(newer_query_port_speed(a->context, 1, &speed), 0);
    EXPECT_EQ(speed, 8000U) << "4x XDR";
    EXPECT_EQ(newer_query_port_speed(a->context, 0, &speed), EINVAL);
    EXPECT_EQ(newer_query_port_speed(a->context, 257, &speed), EINVAL) << "not port 1";
}

TEST_F(PortChange, NeedsAPortThatThereIs) {
    connect();
    EXPECT_EQ(simverbs_port_reregister("h9", 1), ENOENT);
    EXPECT_TRUE(error_names("h9"));
    EXPECT_EQ(simverbs_port_reregister("s0", 1), ENOENT);
    EXPECT_EQ(simverbs_port_reregister(nullptr, 1), ENOENT);
    EXPECT_EQ(simverbs_port_reregister("h0", 0), ENOENT);
    EXPECT_EQ(simverbs_port_set_lid("h0", 2, 9), ENOENT);
    EXPECT_TRUE(error_names("1 to 1"));
    EXPECT_EQ(simverbs_port_set_rate("h0", 2, 2, 32), ENOENT);
}

TEST_F(PortChange, OfAnEthernetPortIsNoSubnetManagersBusiness) {
    ASSERT_EQ(simverbs_set_topology("eth-pair"), 0);
    connect();
    const std::uint16_t pkey = 0xFFFF;
    const std::uint8_t gid[16] = {};
    EXPECT_EQ(simverbs_port_set_lid("h0", 1, 9), EOPNOTSUPP);
    EXPECT_EQ(simverbs_port_set_pkeys("h0", 1, &pkey, 1), EOPNOTSUPP);
    EXPECT_EQ(simverbs_port_set_gid("h0", 1, 0, gid), EOPNOTSUPP);
    EXPECT_EQ(simverbs_port_set_sm_lid("h0", 1, 9), EOPNOTSUPP);
    EXPECT_EQ(simverbs_port_reregister("h0", 1), EOPNOTSUPP);
    EXPECT_TRUE(error_names("Ethernet"));
    EXPECT_TRUE(a->events().empty());
    EXPECT_EQ(simverbs_port_set_rate("h0", 1, 2, 16), 0);
    expect_works();
}

}  // namespace
}  // namespace verbs_test
