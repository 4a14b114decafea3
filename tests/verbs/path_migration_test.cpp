// Alternate paths: loading, arming, and the three ways of migrating.
#include <cerrno>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class Migration : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        Connection with;
        with.retries = 0;
        connect(with);
    }
    // Both ends are on one switch: the alternate path is the same wire by another name.
    static int load(End& end, End& peer, ibv_mig_state state, std::uint16_t lid = 0) {
        ibv_port_attr port{};
        EXPECT_EQ(ibv_query_port(peer.context, 1, &port), 0);
        ibv_qp_attr attr{};
        attr.alt_ah_attr.dlid = lid == 0 ? port.lid : lid;
        attr.alt_ah_attr.port_num = 1;
        attr.alt_port_num = 1;
        attr.alt_timeout = 15;
        attr.path_mig_state = state;
        return ibv_modify_qp(end.qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);
    }
    static int set(End& end, ibv_mig_state state) {
        ibv_qp_attr attr{};
        attr.path_mig_state = state;
        return ibv_modify_qp(end.qp, &attr, IBV_QP_PATH_MIG_STATE);
    }
    static ibv_mig_state state_of(End& end) { return end.query().path_mig_state; }
    // Packets in both directions tell both ends that the other is ready.
    void arm() {
        ASSERT_EQ(load(*a, *b, IBV_MIG_REARM), 0);
        ASSERT_EQ(load(*b, *a, IBV_MIG_REARM), 0);
        EXPECT_EQ(state_of(*a), IBV_MIG_REARM);
        expect_works();
        EXPECT_EQ(state_of(*a), IBV_MIG_ARMED);
        EXPECT_EQ(state_of(*b), IBV_MIG_ARMED);
    }
};

TEST_F(Migration, BothEndsArmOnceBothHaveAsked) {
    EXPECT_EQ(state_of(*a), IBV_MIG_MIGRATED);
    ASSERT_EQ(load(*a, *b, IBV_MIG_REARM), 0);
    expect_works();
    EXPECT_EQ(state_of(*a), IBV_MIG_REARM) << "the peer has not asked";
    ASSERT_EQ(load(*b, *a, IBV_MIG_REARM), 0);
    expect_works();
    EXPECT_EQ(state_of(*a), IBV_MIG_ARMED);
    EXPECT_EQ(state_of(*b), IBV_MIG_ARMED);
    EXPECT_EQ(a->query().alt_timeout, 15);
    EXPECT_TRUE(a->events().empty());
}

TEST_F(Migration, WithoutAnAlternateOrAnArmedPeerIsRefused) {
    EXPECT_EQ(set(*a, IBV_MIG_REARM), EINVAL);
    EXPECT_EQ(set(*a, IBV_MIG_ARMED), EINVAL);
    EXPECT_EQ(set(*a, IBV_MIG_MIGRATED), 0);
}

TEST_F(Migration, UsedUpRetriesTakeTheOtherPathAndThePeerFollows) {
    arm();
    ASSERT_EQ(simverbs_drop_nth("h0-s0", "h0", 1, nullptr), 0);
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 64)).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS) << "retry_cnt is 0: without the path it would fail";
    EXPECT_EQ(b->wait().wr_id, 1U);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_PATH_MIG});
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_PATH_MIG});
    EXPECT_EQ(state_of(*a), IBV_MIG_MIGRATED);
    EXPECT_EQ(a->query().timeout, 15) << "the alternate's";
    expect_works();
}

TEST_F(Migration, TheConsumerMayMigrate) {
    arm();
    ASSERT_EQ(set(*a, IBV_MIG_MIGRATED), 0);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_PATH_MIG});
    expect_works();
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_PATH_MIG});
}

TEST_F(Migration, APathThatIsNotOursIsAnErrorAndItsPacketsAreDropped) {
    ASSERT_EQ(load(*a, *b, IBV_MIG_REARM), 0);
    ASSERT_EQ(load(*b, *a, IBV_MIG_REARM, 99), 0);
    expect_works();
    ASSERT_EQ(set(*a, IBV_MIG_MIGRATED), 0);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_PATH_MIG});
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 64)).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_PATH_MIG_ERR});
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
}

}  // namespace
}  // namespace verbs_test
