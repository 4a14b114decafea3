// A test of verbs code as a user of simverbs writes one: plain verbs.h, found through find_package.
#include <gtest/gtest.h>

#include <infiniband/verbs.h>

namespace {

TEST(Consumer, FindsSimulatedDevices) {
    int count = 0;
    ibv_device** devices = ibv_get_device_list(&count);
    ASSERT_NE(devices, nullptr);
    ASSERT_GT(count, 0);
    EXPECT_EQ(devices[count], nullptr);
    ibv_free_device_list(devices);
}

TEST(Consumer, OpensADeviceAndAllocatesFromIt) {
    ibv_device** devices = ibv_get_device_list(nullptr);
    ASSERT_NE(devices, nullptr);
    ibv_context* context = ibv_open_device(devices[0]);
    ASSERT_NE(context, nullptr);
    ibv_free_device_list(devices);  // does not close what was opened
    ibv_pd* pd = ibv_alloc_pd(context);
    ASSERT_NE(pd, nullptr);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(ibv_close_device(context), 0);
}

TEST(Consumer, GetsTheStringsOfTheLibraryItLinked) {
    EXPECT_STREQ(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR), "transport retry counter exceeded");
}

}  // namespace
