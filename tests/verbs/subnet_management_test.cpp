// Who manages the subnet of an embedded world: SIMVERBS_SM. What the start-up subnet manager does
// to ports is in port_changes_test.cpp; here a sweeping one does it by datagrams, or nobody.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class SweptSubnet : public TwoHosts {
  protected:
    void SetUp() override {
        setenv("SIMVERBS_SM", "sweep", 1);
        TwoHosts::SetUp();
    }
    void TearDown() override {
        TwoHosts::TearDown();
        unsetenv("SIMVERBS_SM");
    }
    static ibv_port_attr query(const End& end) {
        ibv_port_attr attr{};
        EXPECT_EQ(ibv_query_port(end.context, 1, &attr), 0);
        return attr;
    }
};

TEST_F(SweptSubnet, IsUpWhenTheWorldBegins) {
    connect();
    const ibv_port_attr port = query(*b);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(port.lid, 2);
    EXPECT_EQ(port.sm_lid, 1);
    EXPECT_GT(now_us(), 0) << "it took its time";
    expect_works();
    expect_silence();
}

TEST_F(SweptSubnet, ThePortOfTheManagerSaysSo) {
    connect();
    constexpr std::uint32_t kIsSm = 1U << 1;  // IBV_PORT_SM
    EXPECT_NE(query(*a).port_cap_flags & kIsSm, 0U) << "the manager is at h0";
    EXPECT_EQ(query(*b).port_cap_flags & kIsSm, 0U);
}

TEST_F(SweptSubnet, ChangesPortsAsSoonAsTheyAreTold) {
    connect();
    ASSERT_EQ(simverbs_port_set_lid("h1", 1, 77), 0);
    EXPECT_EQ(query(*b).lid, 2) << "no time has passed";
    pass(1);
    EXPECT_EQ(query(*b).lid, 77);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_LID_CHANGE});
    EXPECT_TRUE(a->events().empty());
    EXPECT_EQ(simverbs_port_set_lid("h1", 1, 1), EINVAL) << "another port's";

    const std::uint16_t pkeys[] = {0xFFFF, 0x8001};
    ASSERT_EQ(simverbs_port_set_pkeys("h0", 1, pkeys, 2), 0);
    ASSERT_EQ(simverbs_port_reregister("h1", 1), 0);
    pass(1);
    EXPECT_EQ(a->events(), std::vector{IBV_EVENT_PKEY_CHANGE});
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_CLIENT_REREGISTER});
    std::uint8_t gid[16] = {1};
    EXPECT_EQ(simverbs_port_set_gid("h1", 1, 0, gid), EOPNOTSUPP);
}

TEST_F(SweptSubnet, ComesBackWithItsLink) {
    connect();
    ASSERT_EQ(simverbs_set_link("h1-s0", 0), 0);
    pass(1);
    EXPECT_EQ(query(*b).state, IBV_PORT_DOWN);
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_PORT_ERR});
    ASSERT_EQ(simverbs_set_link("h1-s0", 1), 0);
    pass(10);
    EXPECT_EQ(query(*b).state, IBV_PORT_ACTIVE);
    EXPECT_EQ(b->events(), (std::vector{IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_PORT_ACTIVE}));
    expect_works();
}

TEST(UnmanagedSubnet, MayNotHaveSwitchesWiderThanDatagramsCanName) {
    setenv("SIMVERBS_SM", "sweep", 1);
    ASSERT_EQ(simverbs_restart(), 0);
    ASSERT_EQ(simverbs_set_topology("star:255"), 0);
    int count = -1;
    ibv_free_device_list(ibv_get_device_list(&count));
    EXPECT_EQ(count, 0);
    unsetenv("SIMVERBS_SM");
    EXPECT_EQ(simverbs_restart(), 0);
}

TEST(UnmanagedSubnet, StaysInInitAndLeavesPortsAlone) {
    setenv("SIMVERBS_SM", "none", 1);
    ASSERT_EQ(simverbs_restart(), 0);
    int count = 0;
    ibv_device** devices = ibv_get_device_list(&count);
    ASSERT_GT(count, 0);
    ibv_context* context = ibv_open_device(devices[0]);
    ASSERT_NE(context, nullptr);
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(context, 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_INIT);
    EXPECT_EQ(port.lid, 0);
    EXPECT_EQ(simverbs_port_set_lid("h0", 1, 5), EOPNOTSUPP);
    EXPECT_NE(std::strstr(simverbs_last_error(), "SIMVERBS_SM"), nullptr);
    EXPECT_EQ(ibv_close_device(context), 0);
    ibv_free_device_list(devices);
    unsetenv("SIMVERBS_SM");
    EXPECT_EQ(simverbs_restart(), 0);
}

}  // namespace
}  // namespace verbs_test
